/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon workspace`: reads the command line, opens what the command needs, takes the lock, and becomes cordon-workspace,
 * which gives up everything but these descriptors. So names that a person wrote are looked up with the person's rights
 * and before anything of a guest's is read, and libgit2 costs no other command a microsecond.
 *
 * Waits: fsync in give_name; the disk; none (the kernel's own); the file has no name yet
 *        sys_child_wait in run_export; an export; LIMIT_WORKSPACE_MS; it is killed, and the file is not there */
#include "base/limits.h"
#include "commands.h"
#include "flow/context.h"
#include "naming_check.h"
#include "options.h"
#include "result.h"
#include "sys/child.h"
#include "sys/fd.h"
#include "workspace_note.h"
#include "workspace_order.h"
#include "workspace_verify.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WHO "cordon workspace"

struct workspace_options {
    const char *message, *name, *lines, *tar, *bundle;
    struct workspace_verify verify;
    bool patch, stat, json, help;
};

static const struct verb {
    const char *name;
    size_t least, most; /* words behind it, the workspace's name included */
    enum workspace_hold hold;
} verbs[] = {
    {"create", 1, 1, HOLD_CHANGE},  {"import", 2, 2, HOLD_CHANGE},   {"log", 1, 1, HOLD_READ},
    {"diff", 1, 3, HOLD_READ},      {"snapshot", 1, 1, HOLD_CHANGE}, {"restore", 2, 2, HOLD_CHANGE},
    {"clone", 1, 2, HOLD_CHANGE},   {"verify", 1, 1, HOLD_NONE},     {"merge", 1, 1, HOLD_CHANGE},
    {"discard", 1, 1, HOLD_CHANGE}, {"export", 1, 2, HOLD_READ},     {"delete", 1, 1, HOLD_ALONE},
    {"list", 0, 0, HOLD_NONE},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static void help(const struct option_row *rows, size_t count)
{
    puts("usage: cordon workspace create W | import W FOLDER | log W | diff W [FROM [TO]] |\n"
         "       snapshot W | restore W SNAPSHOT | clone W [NAME] | verify W@NAME |\n"
         "       merge W@NAME | discard W@NAME | export W [SNAPSHOT] | delete W | list\n\n"
         "Files that outlive runs. Every state is a commit of a bare git store in the state "
         "folder:\n"
         "any git client can read it. A SNAPSHOT is head, head~2, genesis, a name, or the "
         "beginning\n"
         "of an id. diff compares head~1 with head unless told otherwise. W@NAME is a clone of W:\n"
         "a disposable line of its own, which every command and --workspace takes.\n");
    options_print(rows, count);
    exits_print(EXITS_OTHER);
    puts("\n  cordon workspace create demo\n"
         "  cordon workspace import demo ./project\n"
         "  cordon workspace diff demo genesis head");
}

/* ---- export: to a file that is whole or not there ---- */

/* A file without a name in the folder of FILE, which gets its name when it is whole: who is killed before leaves nothing. File
 * systems without such files get one with a name, which is removed after a failure. */
static int open_unnamed(const char *file, bool *ret_unnamed, struct err *err)
{
    char folder[4096];
    const char *slash = strrchr(file, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - file) + 1 : 2,
             slash ? file : "./");
    if (faccessat(AT_FDCWD, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(err, ERR_USAGE, "%.150s exists already", file);
    int fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    *ret_unnamed = fd >= 0;
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
        fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : err_sys(err, "make %.150s", file);
}

/* The name is given at once and only if nobody has it. */
static int give_name(int fd, const char *file, struct err *err)
{
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (fsync(fd) < 0 || linkat(AT_FDCWD, self, AT_FDCWD, file, AT_SYMLINK_FOLLOW) < 0)
        return errno == EEXIST ? err_set(err, ERR_USAGE, "%.150s exists already", file)
                               : err_sys(err, "name %.150s", file);
    return 0;
}

static int run_export(struct workspace_order *o, struct err *err)
{
    const pid_t us = getpid();
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        struct err why = ERR_INIT;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == us)
            (void)!workspace_order_become(o, &why);
        if (why.code) /* else nobody is there to be told */
            result_complain(WHO, why.msg);
        _exit(EXIT_FAILED);
    }
    if (pid < 0)
        return err_sys(err, "fork");
    if (sys_child_wait(pid, LIMIT_WORKSPACE_MS, &status) < 0)
        return err_sys(err, "the export took too long");
    return WIFEXITED(status) ? WEXITSTATUS(status)
                             : err_set(err, ERR_STATE, "the export was killed");
}

static int export_file(struct workspace_order *o, const char *file, struct err *err)
{
    bool unnamed = false;
    FD_AUTO fd = open_unnamed(file, &unnamed, err);
    if (fd < 0)
        return fd;
    o->other = fd;
    int r = run_export(o, err);
    if (r == 0 && unnamed)
        r = give_name(fd, file, err);
    if (r != 0 && !unnamed && unlink(file) < 0)
        return err_sys(err, "remove the unfinished %.150s", file);
    return r;
}

static int export_to(struct workspace_order *o, const struct workspace_options *p, struct err *err)
{
    const char *file = p->tar ? p->tar : p->bundle;
    if (!p->tar == !p->bundle)
        return err_set(err, ERR_USAGE, "export needs --tar FILE or --bundle FILE");
    if (p->bundle && strcmp(o->words[1], "head") != 0)
        return err_set(err, ERR_USAGE, "a bundle holds the whole history: give no snapshot");
    o->words[0] = p->tar ? "tar" : "bundle";
    return strcmp(file, "-") == 0 ? workspace_order_become(o, err) : export_file(o, file, err);
}

/* ---- the verbs' words ---- */

static bool is(const struct verb *verb, const char *name)
{
    return strcmp(verb->name, name) == 0;
}

/* What the verb takes behind the workspace's name. */
static void set_words(const struct verb *verb, const struct option_list *words,
                      const struct workspace_options *p, struct workspace_order *o)
{
    const char *second = words->count > 2 ? words->items[2] : NULL;
    if (is(verb, "log")) {
        o->words[0] = p->lines ? p->lines : "";
    } else if (is(verb, "diff")) {
        o->words[0] = second ? second : "head~1";
        o->words[1] = words->count > 3 ? words->items[3] : "head";
    } else if (is(verb, "export")) {
        o->words[1] = second ? second : "head";
    } else {
        const bool named = is(verb, "restore") || is(verb, "clone");
        const char *name = named ? second : p->name;
        o->words[0] = p->message ? p->message : "";
        o->words[1] = name ? name : "";
    }
}

/* Beside the id, which is for scripts. */
static void say_done(const struct verb *verb, const struct option_list *words)
{
    const char *name = words->items[1];
    char line[480] = "";
    if (is(verb, "create"))
        snprintf(
            line, sizeof line,
            "%s is made, and has no files yet. cordon workspace import %s FOLDER puts some in; "
            "cordon run --workspace %s FILE works on them",
            name, name, name);
    else if (is(verb, "restore"))
        snprintf(
            line, sizeof line,
            "%s has the files of %.60s; what was committed since stays in cordon workspace log "
            "%s",
            name, words->items[2], name);
    if (*line)
        result_note("workspace", line);
}

/* What changes a workspace is bounded by the policy, and on record. */
static int order(const struct verb *verb, const struct option_list *words,
                 const struct workspace_options *p, const char *form, struct flow_context *context,
                 struct err *err)
{
    struct workspace_order o = WORKSPACE_ORDER_INIT;
    o.form = form;
    int r = workspace_order_open(&o, verb->name, words->count > 1 ? words->items[1] : "",
                                 verb->hold, err);
    if (r < 0)
        return r;
    set_words(verb, words, p, &o);
    if (is(verb, "export"))
        return export_to(&o, p, err);
    if (is(verb, "import")) {
        o.other = open(words->items[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (o.other < 0)
            return err_set(err, ERR_USAGE, "%.150s: %s", words->items[2], strerror(errno));
        char warning[NAMING_WARNING];
        r = naming_check_copy(context->policy, o.other, "", warning, err);
        if (r < 0)
            return r;
        if (warning[0])
            result_complain(WHO, warning);
    }
    if (verb->hold == HOLD_READ || verb->hold == HOLD_NONE)
        return workspace_order_become(&o, err);
    o.policy = context->policy;
    r = workspace_note_run(&o, context, err);
    if (r == 0 && !p->json)
        say_done(verb, words);
    return r;
}

/* The policy comes first: it may pin the state folder, which the workspaces are in. */
static int act(const struct verb *verb, const struct option_list *words,
               const struct workspace_options *p, struct err *err)
{
    struct flow_context context = {0};
    char form[4] = "";
    snprintf(form, sizeof form, "%s%s",
             p->json    ? "j"
             : p->stat  ? "s"
             : p->patch ? "p"
                        : "",
             isatty(STDOUT_FILENO) ? "t" : "");
    int r = flow_context_open(&context, p->verify.policy, err);
    if (r == 0)
        r = is(verb, "verify") ? workspace_verify(words->items[1], &p->verify, p->json, err)
                               : order(verb, words, p, form, &context, err);
    flow_context_close(&context);
    return r;
}

static const struct verb *find_verb(const struct option_list *words, struct err *err)
{
    const char *word = words->count ? words->items[0] : "";
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(word, verbs[i].name) == 0) {
            if (words->count - 1 >= verbs[i].least && words->count - 1 <= verbs[i].most)
                return &verbs[i];
            err_set(err, ERR_USAGE, "%s: too %s arguments; see --help", word,
                    words->count - 1 < verbs[i].least ? "few" : "many");
            return NULL;
        }
    const char *names[VERBS];
    for (size_t i = 0; i < VERBS; i++)
        names[i] = verbs[i].name;
    options_no_verb(words->count ? word : NULL, names, VERBS, err);
    return NULL;
}

int cmd_workspace(int argc, char **argv)
{
    struct workspace_options p = {0};
    struct option_list words = {0};
    struct err err = ERR_INIT;
    const struct option_row rows[] = {
        {"message", OPTION_STRING, &p.message, "TEXT",
         "import, snapshot, restore: kept in the log"},
        {"name", OPTION_STRING, &p.name, "NAME", "snapshot: a name to restore it by"},
        {"profile", OPTION_STRING, &p.verify.profile, "NAME",
         "verify: the rules for changed sources (strict)"},
        {"policy", OPTION_STRING, &p.verify.policy, "FILE", "a policy on top of the machine's"},
        {"lines", OPTION_STRING, &p.lines, "N", "log: at most so many commits"},
        {"patch", OPTION_FLAG, &p.patch, NULL, "log: with what each commit changed"},
        {"stat", OPTION_FLAG, &p.stat, NULL, "diff: lines added and deleted, a line a file"},
        {"tar", OPTION_STRING, &p.tar, "FILE", "export: the files of a snapshot; - is stdout"},
        {"bundle", OPTION_STRING, &p.bundle, "FILE", "export: the history, for git clone"},
        {"json", OPTION_FLAG, &p.json, NULL, "all but discard, export and delete: JSON"},
        {"help", OPTION_FLAG, &p.help, NULL, "this text"},
    };
    int r = options_parse_mixed(argc, argv, rows, sizeof rows / sizeof *rows, &words, &err);
    if (r == 0 && p.help) {
        help(rows, sizeof rows / sizeof *rows);
        return EXIT_DONE;
    }
    const struct verb *verb = r == 0 ? find_verb(&words, &err) : NULL;
    if (verb)
        r = act(verb, &words, &p, &err);
    if (verb && r >= 0)
        return r;
    result_complain(WHO, err.msg);
    return err.code == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED;
}
