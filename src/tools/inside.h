/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of cordon-tool share: one call, its checked arguments, and how it says no.
 *
 * Takes:   arguments that a schema has passed; a descriptor of the guest's file system.
 * Gives:   an answer as JSON; texts in it are data, with nothing that acts on a reader.
 * Never:   follows a link; opens anything but regular files and folders beneath /workspace and /tmp.
 * Runs in: cordon-tool, confined.
 */
#ifndef TOOLS_INSIDE_H
#define TOOLS_INSIDE_H

#include "base/buf.h"
#include "base/limits.h"
#include "base/naming.h"
#include "tools/process.h"
#include "tools/tools.h"

#include <dirent.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct tools_call {
    const char *name;
    json_t *args; /* an object that the schema has passed */
    int files;    /* the root of the guest's file system; -1: the run has none */
    uint64_t limits[TOOLS_LIMITS];
    const struct naming_rule *naming; /* for files that are written */
    size_t nnaming;
    int base;                     /* an index that is only read; -1: none */
    struct tools_indexed indexed; /* what whoever brought it up to date says of it */
    char reason[208];             /* or why nobody did; empty: somebody did */
    struct buf text;              /* of a tool that guest code made: its file */
    json_t *answer;               /* what the tool gives; NULL: nothing yet */
    char refusal[400];            /* or why it does not */
    uint64_t neutralised;         /* characters and markers in the answer that were replaced */
    size_t listed;                /* bytes of the answer that its list takes */
};

enum tools_end tools_refuse(struct tools_call *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
enum tools_end tools_fail(struct tools_call *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Carries the call out. */
enum tools_end tools_do(struct tools_call *c);

const char *tools_text(const struct tools_call *c, const char *name, const char *otherwise);
uint64_t tools_number(const struct tools_call *c, const char *name, uint64_t otherwise);

/* What does not fit an answer beside the name of SHOWN is left for another call, and the answer says so: whoever chose the names may have chosen
 * them so long that no answer had room for all. tools_add takes ONE; false: it is not in LIST. */
bool tools_fits(const json_t *text, const char *shown);
bool tools_add(struct tools_call *c, json_t *list, json_t *one, const char *shown);

/* ---- schema.c ---- */

/* GIVEN is what a guest sent: {"args": [...], "kwargs": {...}}. 0: *ret_args is the checked object, the caller's.
 * -1: WHY has a sentence for whoever called. SCHEMA NULL: *ret_args is what was given. */
int tools_check(const char *schema, const void *given, size_t len, json_t **ret_args, char *why,
                size_t size);

/* The same arguments for a record, whether or not they fit, and as they were sent: the audit knows a secret by its name. What was
 * sent by its place has the name of the property there; what comes twice has NAME_again the second time, and of what has no name
 * only count and bytes are told. NULL: GIVEN is no JSON. The caller's. */
json_t *tools_named(const char *schema, const void *given, size_t len);

/* ---- host.c ---- */

/* Of SCHEMA, the properties of format `file`: what each argument names is opened, and the argument becomes the path that the
 * command of a host tool finds it by. *RET_COUNT descriptors, the caller's. */
enum tools_end tools_host_files(struct tools_call *c, const char *schema, int fds[LIMIT_TOOL_FILES],
                                size_t *ret_count);
/* What the command wrote becomes the answer, as data. */
enum tools_end tools_host_answer(struct tools_call *c, enum tools_wrote kind, const void *bytes,
                                 size_t len);

/* ---- goal.c ---- */

/* LINES: TOOLS_WROTE_GOALS. Goal and ModifyGoal answer by them. */
enum tools_end tools_goal_answer(struct tools_call *c, const char *lines, size_t len);

/* ---- program.c ---- */

/* Of a tool that starts a program: a word about it and its source, as the arguments have them; both empty where it
 * starts none. Of a search the word is its collection. */
struct tools_program {
    const char *word, *source;
    size_t len;
};
enum tools_end tools_program(struct tools_call *c, struct tools_program *ret);
/* What that program gave becomes the answer, as data. */
enum tools_end tools_program_answer(struct tools_call *c, const struct tools_run *run);

/* ---- made.c ---- */

/* CreateTool: the arguments become the file of the tool, in `text`; then it is written. */
enum tools_end tools_made_new(struct tools_call *c);
enum tools_end tools_do_create(struct tools_call *c);
/* A call of such a tool: its file is read into `text`; *RET_SCHEMA is the schema in it, the caller's to free. */
enum tools_end tools_made_schema(struct tools_call *c, char **ret_schema);
/* LoadModule: the file of the module is read into `text`; then its source is the answer, byte by byte. */
enum tools_end tools_module(struct tools_call *c);
enum tools_end tools_do_load(struct tools_call *c);
enum tools_end tools_made_answer(struct tools_call *c, const struct tools_run *run);

/* ---- mark.c ---- */

/* Bytes as a text that is data: control and bidi characters shown, markers of a speaker's turn broken. */
json_t *tools_mark(struct tools_call *c, const void *bytes, size_t len);
json_t *tools_mark_all(struct tools_call *c, const json_t *value); /* every text in it */

/* ---- paths.c ---- */

/* A place as the guest names it: the open folder that it lies in, and its last name there ("." for the folder). */
struct tools_place {
    int dir;
    char name[256];
    char shown[4200]; /* as the answer names it */
};
/* MAKE: folders on the way are made. TOOLS_OK, or refused by name. */
enum tools_end tools_place_open(struct tools_call *c, const char *path, bool make,
                                struct tools_place *ret);
void tools_place_close(struct tools_place *p);
/* A regular file, or a folder. The caller's to close. */
enum tools_end tools_open_file(struct tools_call *c, const struct tools_place *p, int *ret_fd,
                               struct stat *ret_st);
enum tools_end tools_open_folder(struct tools_call *c, const struct tools_place *p, int *ret_fd);
int tools_open_beneath(int dir, const char *name, int flags); /* one name; no link is followed */
/* Reads at most MOST bytes from OFFSET. */
enum tools_end tools_read(struct tools_call *c, int fd, uint64_t offset, size_t most,
                          struct buf *out);

/* The file that PATH names, all of it in OUT; one above MOST bytes is refused. RET is the caller's to close in any case. */
enum tools_end tools_read_whole(struct tools_call *c, const char *path, size_t most,
                                struct tools_place *ret, struct stat *ret_st, struct buf *out);

/* Each regular file and folder below a folder, sorted by name, a folder before what lies in it. The visitor
 * gets the folder's descriptor; false ends the walk. */
struct tools_walk {
    void *ctx;
    bool (*visit)(void *ctx, int dir, const char *name, const char *shown, const struct stat *st);
    uint64_t left; /* names that may still be looked at */
    bool cut;      /* some were not */
    uint64_t shut; /* folders that could not be opened */
};
void tools_walk(struct tools_walk *w, int folder, const char *shown);
/* All names of FOLDER but the dots, sorted, each and the array to be freed; -1: errno says why. */
int tools_names(int folder, struct dirent ***ret_names);

/* ---- write.c ---- */

/* A file as WriteFile writes it; folders on the way are made. The answer says where it is. */
enum tools_end tools_write(struct tools_call *c, const char *path, const char *text, size_t len);

/* ---- one file a group of tools ---- */

enum tools_end tools_do_read(struct tools_call *c);
enum tools_end tools_do_list(struct tools_call *c);
enum tools_end tools_do_info(struct tools_call *c);
enum tools_end tools_do_find(struct tools_call *c);
enum tools_end tools_do_grep(struct tools_call *c);
enum tools_end tools_do_jq(struct tools_call *c);
enum tools_end tools_do_write(struct tools_call *c);
enum tools_end tools_do_edit(struct tools_call *c);

/* ---- served.c ---- */

/* Requests of wire/files.h from TOOLS_SOCKET, one after the other, until its end: 0. -1: one was no request. */
int tools_serve_files(void);

/* ---- served_paths.c ---- */

/* Opens what is served: the guest's own two folders in FILES, and SHARES, whose descriptors are ours then. Before the process is confined: a
 * file that is shared by itself is opened once, here. */
int tools_served_open(int files, const struct tools_share *shares, size_t count);

/* A path beneath something that is served; "." is that itself. */
struct tools_served {
    const struct tools_served_root *root;
    char path[4100];
};
/* 0, or an errno; WIRE_FILES_OUTSIDE: nothing there is served. */
int tools_served_find(const void *path, size_t len, struct tools_served *ret);
bool tools_served_writable(const struct tools_served *p);
/* Whether a name can be moved from one to the other. */
bool tools_served_together(const struct tools_served *a, const struct tools_served *b);
/* Each -1 with errno: beneath its root, through no link, into no other file system; a regular file; the folder that it
 * lies in, and its last name there. */
int tools_served_beneath(const struct tools_served *p, int flags);
int tools_served_regular(const struct tools_served *p, int flags);
int tools_served_above(const struct tools_served *p, const char **ret_name);

#endif
