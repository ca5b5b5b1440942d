/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share: the head, the chain, positions in the log, the handle itself.
 *
 * Takes:   nothing from outside the room.
 * Gives:   the types and the few calls between the room's files.
 * Never:   is included by another room.
 * Runs in: as audit.h.
 */
#ifndef AUDIT_INSIDE_H
#define AUDIT_INSIDE_H

#include "audit/audit.h"
#include "base/jsonw.h"

#include <nettle/hmac.h>
#include <nettle/sha2.h>
#include <signal.h>
#include <sys/types.h>

#define AUDIT_HASH       32
#define AUDIT_RECORD_MAX (64 * 1024) /* one line */
#define AUDIT_LOG_DIR    "audit"
#define AUDIT_SEAL_DIR   "seal" /* beside the log, not in it: key, head, anchor, open runs, window */
#define AUDIT_BOOT       16
#define AUDIT_NAME_MAX   24 /* 2026-11-15.jsonl */

/* ---- days: 20261115 ---- */
#define AUDIT_DAY_MS 86400000ULL
uint32_t audit_day_of(uint64_t ms);
uint32_t audit_day_minus(uint32_t day, unsigned days);
void audit_day_name(uint32_t day, char out[AUDIT_NAME_MAX]);
uint32_t audit_day_parse(const char *name); /* 0: not the name of a day's file */

/* ---- chain.c: one line, its hash and its signature ---- */
struct audit_line {
    uint64_t seq, ts;
    enum audit_kind kind; /* AUDIT_KINDS: a name that we do not know */
    uint8_t prev[AUDIT_HASH], hash[AUDIT_HASH], mac[AUDIT_HASH];
    size_t hashed; /* the bytes that the hash covers */
};
/* LEN without the newline. NULL, or what is wrong. */
const char *audit_line_parse(const char *line, size_t len, struct audit_line *ret);
/* Whether the bytes have that hash and the key's holder signed it. */
const char *audit_line_check(const char *line, const struct audit_line *l,
                             struct hmac_sha256_ctx *key);
/* The JSON text of a top-level member, as it stands in the line; false if there is none. */
bool audit_line_member(const char *line, size_t len, const char *key, const char **ret,
                       size_t *ret_len);
/* Appends one line to OUT: the header, BODY, hash and signature. HASH: the one before, then this one's. */
ERR_MUST_USE int audit_line_write(struct buf *out, uint64_t seq, uint64_t ts, const char *body,
                                  size_t len, uint8_t hash[AUDIT_HASH],
                                  struct hmac_sha256_ctx *key);
void audit_hex(const uint8_t *bytes, size_t n, char *out); /* 2n digits and a NUL */
bool audit_unhex(const char *text, size_t n, uint8_t *out);
/* Signs DATA for one use, told by TAG, so that a signature of one thing is none of another. */
void audit_sign(struct hmac_sha256_ctx *key, char tag, const void *data, size_t len,
                uint8_t out[AUDIT_HASH]);
bool audit_signed(struct hmac_sha256_ctx *key, char tag, const void *data, size_t len,
                  const uint8_t mac[AUDIT_HASH]);

/* ---- code.c: the code itself, beside the log, where the policy asks for it ---- */
struct audit;
ERR_MUST_USE int audit_code_keep(struct audit *a, const char *hash, const char *code, size_t len,
                                 struct err *err);
void audit_code_expire(struct audit *a,
                       uint64_t before_ms); /* removes programs that nobody ran since */

/* ---- record.c: facts to the middle of a line ---- */
struct audit_writer {
    uint32_t pid;
    uint64_t start, pid_ns;
    uint8_t boot[AUDIT_BOOT];
};
/* Appends the body to OUT. */
ERR_MUST_USE int audit_body(struct audit *a, struct buf *out, enum audit_kind kind,
                            const struct audit_facts *f, uint64_t begin_seq, struct err *err);
/* The end of a run that its writer could not write: what it was is copied from its begin, LINE (which may be NULL). */
struct audit_late; /* runs.c */
ERR_MUST_USE int audit_body_late(struct buf *out, const char *line, size_t len, uint64_t begin_seq,
                                 const struct audit_late *late, const struct audit_writer *w,
                                 struct err *err);

/* ---- redact_options.c: secrets of a command line, word by word ---- */
enum audit_next { AUDIT_NEXT_PLAIN, AUDIT_NEXT_SECRET, AUDIT_NEXT_MAYBE, AUDIT_NEXT_USER };
struct audit_words {
    enum audit_next next;               /* what the word before says of the next one */
    bool takes_password, password_next; /* the program takes -pX; and -p X */
    bool whole; /* the text is one argument of a list: spaces in it separate nothing */
};
/* How many bytes of the word are secret, and where they begin; 0: none. */
size_t audit_option_secret(struct audit_words *w, const char *s, size_t len, size_t *ret_lead);
bool audit_short_secret_name(const char *name, size_t len); /* pwd, db_pass, dbPw */
bool audit_plain_value(const char *s, size_t len);          /* a path, or a number of two digits */

/* ---- redact.c ---- */
/* WORDS: what the arguments before it in a list told; NULL: the text stands alone. */
ERR_MUST_USE int audit_redact(const struct audit_config *c, const char *name, const char *text,
                              size_t len, struct audit_words *words, struct buf *out);
bool audit_secret_name(const char *name, size_t len);

/* ---- writer.c: who we are, and whether another is still there ---- */
ERR_MUST_USE int audit_writer_self(struct audit_writer *ret, bool *ret_terminal, struct err *err);
bool audit_writer_gone(const struct audit_writer *w, const struct audit_writer *self,
                       uint64_t age_ms);

/* ---- seal.c: what lies outside the log folder ---- */
struct audit_pos {
    uint32_t day;
    uint32_t len; /* of the record there, newline included */
    uint64_t offset;
    uint8_t hash[AUDIT_HASH];
};

/* The state after the last record. In the head file twice two slots: `now`, as of the last append, and `disk`, as of the
 * last fsync of the log. Which of the two counts after a power cut: recover.c. */
struct audit_head {
    uint64_t generation, seq;
    uint64_t unsynced; /* the last record that was acknowledged without fsync */
    uint64_t reserved; /* disk space is set aside up to here */
    uint64_t end;      /* the size of the day's file */
    uint32_t day;      /* whose file is written; it may not be there yet while `end` is 0 */
    uint32_t retained; /* the day on which retention last looked */
    uint32_t open_runs;
    uint32_t
        sweep; /* the machine was restarted, and runs that were open then are not settled yet */
    struct audit_pos last;   /* the last record */
    struct audit_pos oldest; /* where the oldest run began that may still be open */
    uint8_t boot[AUDIT_BOOT];
};

enum { AUDIT_HEAD_NOW, AUDIT_HEAD_DISK, AUDIT_HEAD_SETS };
#define AUDIT_HEAD_SLOT 512
#define AUDIT_HEAD_SET  (2 * AUDIT_HEAD_SLOT)
#define AUDIT_HEAD_ALL  (AUDIT_HEAD_SETS * AUDIT_HEAD_SET)
#define AUDIT_HEAD_FILE 4096

/* Bytes of the head file that are locked. Only the first is needed by anybody but for a moment. */
enum {
    AUDIT_LOCK_APPEND, /* log, head, tables */
    AUDIT_LOCK_SYNC,   /* held by whoever syncs for others; nobody depends on it: sync.c */
    AUDIT_LOCK_DISK,   /* the set AUDIT_HEAD_DISK: a few stores */
};

#define AUDIT_INDEX_WAITING 48 /* entries that wait for the index, at most */
#define AUDIT_INDEX_EAGER   32 /* from so many on they are written, by who can */

/* Behind the sets in the same page: advice from one process to the next, not signed. What it says wrongly costs time
 * and nothing else. */
struct audit_advice {
    uint32_t sync_bell;   /* futex: changes when a sync is over */
    uint32_t index_day;   /* index.c: of this day are .. */
    uint64_t index_count; /* .. this many entries that are not in its index yet */
    uint64_t sync_since;  /* monotonic ns: when the sync that is under way began; 0: none is */
    uint64_t index_waiting[AUDIT_INDEX_WAITING][4];
};
_Static_assert(AUDIT_HEAD_ALL + sizeof(struct audit_advice) <= AUDIT_HEAD_FILE,
               "the advice fits behind the sets");

/* ---- map.c: the small files, in memory ---- */
/* LOCK: whose lock is taken where the file must grow; NULL: it is held. */
struct audit;
ERR_MUST_USE int audit_map(int fd, struct audit *lock, size_t size, const char *name, void **ret,
                           struct err *err);
void audit_unmap(void *map, size_t size); /* NULL is nothing */

/* All of it, or an error. 0, or ERR_SYS. */
ERR_MUST_USE int audit_pwrite(int fd, const void *data, size_t len, off_t at, const char *what,
                              struct err *err);
ERR_MUST_USE int audit_key_load(int seal, bool make, struct hmac_sha256_ctx *ret, struct err *err);
void audit_head_encode(const struct audit_head *h, struct hmac_sha256_ctx *key,
                       uint8_t out[AUDIT_HEAD_SLOT]);
bool audit_head_decode(const uint8_t in[AUDIT_HEAD_SLOT], struct hmac_sha256_ctx *key,
                       struct audit_head *ret);
/* The newer of two slots; false if neither is ours. */
bool audit_head_pick(const uint8_t in[AUDIT_HEAD_SET], struct hmac_sha256_ctx *key,
                     struct audit_head *ret);

struct audit_anchor {
    uint64_t seq; /* the last record that retention removed; 0: none */
    uint8_t hash[AUDIT_HASH];
};
/* No anchor is seq 0; one that is not signed by the key is ERR_FORMAT. */
ERR_MUST_USE int audit_anchor_load(int seal, struct hmac_sha256_ctx *key, struct audit_anchor *ret,
                                   struct err *err);
ERR_MUST_USE int audit_anchor_store(int seal, struct hmac_sha256_ctx *key,
                                    const struct audit_anchor *anchor, struct err *err);

/* ---- files.c: the days, in the order of their records ---- */
struct audit_file {
    uint32_t day;
    int fd;
    uint64_t size,
        first; /* first: the number of its first record; 0: it has none that can be read */
    bool done;
};
struct audit_files {
    struct audit_file *items;
    size_t count;
};
ERR_MUST_USE int audit_files_open(int dir, struct audit_files *ret, struct err *err);
void audit_files_done(struct audit_files *f);
/* The file that begins with record SEQ; else the first by name that was not taken yet; NULL: none is left. Marks it. */
struct audit_file *audit_files_take(struct audit_files *f, uint64_t seq);

struct audit_lines {
    int fd;
    uint64_t at, stop; /* the next byte of the file, and the one to stop before */
    char *chunk;
    size_t have, used;
};
void audit_lines_init(struct audit_lines *l, int fd, uint64_t from, uint64_t stop);
void audit_lines_done(struct audit_lines *l);
/* 1 and a line without its newline; 0 at the end; -1 when what is left is no line: torn, or too long. *ret_at is its offset;
 * at -1 *ret_len is what is left of the file. -2 with errno: it cannot be read. */
int audit_lines_next(struct audit_lines *l, const char **ret, size_t *ret_len, uint64_t *ret_at);

/* ---- index.c: where each record stands ---- */
struct audit;
void audit_index_name(uint32_t day, char out[AUDIT_NAME_MAX]);
/* Under the lock: LINE, which is or will be at OFFSET, gets an entry with the next audit_index_write. */
void audit_index_note(struct audit *a, uint64_t seq, uint64_t ms, uint64_t offset, const char *line,
                      size_t len);
void audit_index_write(struct audit *a, uint32_t day);

/* Where the first record of the file of MS or later begins, or a little before it; the file's size: there is none. 0 also
 * where nobody knows. */
uint64_t audit_index_since(int seal, const struct audit_file *f, uint64_t ms);

/* Parts of the log, in the order of their records. */
#define AUDIT_PARTS_MAX (1 << 20)
struct audit_part {
    const struct audit_file *file; /* borrowed */
    uint64_t from, stop;
};
struct audit_parts {
    struct audit_part *items;
    size_t count;
};
/* All that may hold records of the execution ID; others may be among them. False: read everything. */
bool audit_index_find(int seal, const struct audit_files *files, const char *id,
                      struct audit_parts *ret);
void audit_parts_done(struct audit_parts *p);

/* index_check.c: each entry against its record, for verify. The records of a file come in their order. */
struct audit_index_check;
struct audit_verdict;
struct audit_step;
struct audit_index_check *
audit_index_check_new(int seal, struct audit_verdict *verdict); /* NULL: no memory */
void audit_index_check_record(struct audit_index_check *c, const struct audit_file *f,
                              const struct audit_step *s, uint64_t offset);
void audit_index_check_free(struct audit_index_check *c); /* takes NULL */

/* ---- log.c: the handle, the lock, append ---- */
#define AUDIT_ALERTS_MAX 4

/* Days ahead whose files are open already: so many as the longest run may see the beginning of. */
#define AUDIT_DAYS_AHEAD 8
struct audit_ahead {
    uint32_t day; /* 0: none */
    int fd;
};

struct audit {
    struct audit_config config;
    struct audit_writer self;
    struct hmac_sha256_ctx key;
    ino_t key_file; /* its number in the folder of the seal */
    int state, dir, seal, head_fd, runs_fd, window_fd;
    int log_fd; /* of log_day */
    uint32_t log_day;
    struct audit_ahead ahead[AUDIT_DAYS_AHEAD];
    int index_fd; /* of index_day; 0: none that can be used */
    uint32_t index_day;
    dev_t log_dev;
    ino_t log_ino;
    uint8_t *head_map;       /* of AUDIT_HEAD_FILE bytes */
    void *runs_map, *window; /* runs.c, anomaly.c */
    size_t runs_size;
    struct audit_head head; /* right as long as `seen` is what the file says */
    uint8_t seen[AUDIT_HEAD_SET];
    struct buf body, own, out; /* the caller's record, one of ours in between, finished lines */
    struct buf index;          /* entries of records that were just written */
    struct buf line, clean;    /* record.c: one record, and one text of it */
    uint64_t last_seq, now;
    int slot_hint;
    bool locked, parked;
    bool seen_any; /* `seen` was read from the file once */
    bool late;     /* the last wait for the lock timed out */
    bool terminal; /* we have one, and it may stop us */
    bool broken;   /* fsync failed once: what it says afterwards means nothing */
    sigset_t signals;
    const char *alerts[AUDIT_ALERTS_MAX];
    char alert_texts[AUDIT_ALERTS_MAX][160];
    bool alert_quiet[AUDIT_ALERTS_MAX]; /* not for standard error */
    size_t nalerts;
    int alert_folder, alert_fd; /* -1: there is no alert file, or it could not be opened */
};

uint64_t audit_now(const struct audit *a);
ERR_MUST_USE int audit_lock(struct audit *a,
                            struct err *err); /* afterwards the head is right and the log whole */
void audit_unlock(struct audit *a);
/* The lock alone: for what is done before there is a head. */
ERR_MUST_USE int audit_lock_bytes(struct audit *a, struct err *err);
void audit_unlock_bytes(struct audit *a);
/* A process that is stopped from its terminal while it holds a lock would keep everybody out. */
void audit_no_job_control(struct audit *a);
void audit_job_control(struct audit *a);
void audit_head_store(struct audit *a, int set);
/* a->log_fd becomes the file of DAY. Where it is missing: made with MAKE, otherwise ERR_SYS with ENOENT. */
ERR_MUST_USE int audit_day_open(struct audit *a, uint32_t day, bool make, struct err *err);
/* Under the lock: opens the files of the days that begin within MS, and makes them. A supervisor of root's gives up root
 * after this, and others turn the page: without them it could not write the end of its run. What fails is left out. */
void audit_days_open_ahead(struct audit *a, uint64_t ms);

/* What has to be left of the room that is set aside for ends, or a record is refused. */
enum audit_leaves {
    AUDIT_LEAVES_NOTHING, /* it is an end, tells what a crash left, or that all was stopped */
    AUDIT_LEAVES_ENDS,    /* it tells what was done: some of the room is for such records */
    AUDIT_LEAVES_ALL      /* it begins something, whose own record comes later */
};

/* Room for a record of MORE bytes that is written later, with AUDIT_LEAVES_ENDS. */
ERR_MUST_USE int audit_set_room_aside(struct audit *a, size_t more, struct err *err);

/* Appends COUNT records under the lock that is held; their bodies lie one after the other. BEFORE is told where the
 * record (then there is one) will be, before it is written. */
struct audit_append {
    const char *bodies;
    const size_t *lens;
    size_t count;
    int open_runs; /* +1 begins one, -1 ends one */
    enum audit_leaves leaves;
    bool unsynced; /* it will be acknowledged without fsync */
    int (*before)(struct audit *a, void *ctx, const struct audit_pos *pos, uint64_t seq,
                  struct err *err);
    void *ctx;
};
ERR_MUST_USE int audit_append(struct audit *a, const struct audit_append *w, struct err *err);
/* One record of our own, under the lock. */
ERR_MUST_USE int audit_append_own(struct audit *a, enum audit_kind kind,
                                  const struct audit_facts *f, struct err *err);

/* ---- sync.c ---- */
/* Not under the lock. The records up to SEQ are on disk when it returns 0. */
ERR_MUST_USE int audit_sync_to(struct audit *a, uint64_t seq, struct err *err);

/* ---- recover.c ---- */
ERR_MUST_USE int audit_recover(struct audit *a, struct err *err);
/* Whether the record stands where PLACE says. */
bool audit_pos_holds(int dir, const struct audit_pos *p, struct hmac_sha256_ctx *key,
                     struct buf *ret_line);

/* ---- runs.c: the runs that have begun and not ended ---- */
struct audit_late {
    bool known; /* the outcome was kept; otherwise the run is lost */
    bool has_exit_code;
    int32_t exit_code, signal;
    uint32_t validation;
    uint64_t wall_us, memory_bytes, output_bytes, violations, ended_ms;
    char status[16], layer[16], error_type[64];
    struct audit_writer writer; /* who began it */
};
ERR_MUST_USE int audit_runs_open(struct audit *a, struct err *err);
int audit_runs_claim(struct audit *a, struct err *err); /* a free slot, or an error */
void audit_runs_begin(struct audit *a, int slot, uint64_t seq, const struct audit_pos *begin);
void audit_runs_end(struct audit *a, int slot, const struct audit_pos *end);
void audit_runs_free(struct audit *a, int slot);
void audit_runs_park(struct audit *a, int slot, const struct audit_late *late);
ERR_MUST_USE int audit_runs_sweep(struct audit *a,
                                  struct err *err); /* takes the lock if there is work */
ERR_MUST_USE int audit_runs_after_boot(struct audit *a, struct err *err); /* under the lock */

/* ---- retention.c ---- */
void audit_retain(
    struct audit *a); /* under the lock; at most once a day; says in the log what it could not do */

/* ---- anomaly.c, alert.c ---- */
ERR_MUST_USE int audit_window_open(struct audit *a, struct err *err);
void audit_window_close(struct audit *a);
struct audit_sample {
    const char *client, *execution_id, *code_hash;
    uint64_t ms, wall_us, violations;
    bool blocked, ran, timed_out;
};
void audit_window_feed(struct audit *a,
                       const struct audit_sample *s); /* under the lock; adds to a->alerts */
/* Opens the alert file and its folder. What cannot be opened becomes a record with the first alert. */
void audit_alert_open(struct audit *a);
/* Not under the lock: records and tells the alerts from number FROM on. */
void audit_alert_raise(struct audit *a, const struct audit_sample *s, size_t from);

#endif
