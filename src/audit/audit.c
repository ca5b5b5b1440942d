/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that other rooms make: each is body, lock, append, unlock, sync, in this order. The body is
 * made before the lock and the sync waits after it, so that the lock is held for a few microseconds. */
#include "audit/inside.h"

#include "base/limits.h"
#include "sys/fd.h"
#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH_MAX (64 * MIB) /* the bodies of one call of audit_events */

/* ---- open, close ---- */

static int open_folders(struct audit *a, struct err *err)
{
    char path[STATE_PATH_MAX];
    const char *state = a->config.state;
    int r = 0;
    if (!state) {
        r = state_path(path, sizeof path, err);
        state = path;
    }
    if (r == 0)
        r = state_open(state, true, &a->state, err);
    if (r == 0)
        r = state_folder(a->state, AUDIT_LOG_DIR, true, &a->dir, err);
    if (r == 0)
        r = state_folder(a->state, AUDIT_SEAL_DIR, true, &a->seal, err);
    if (r == 0)
        r = state_file(a->seal, "head", O_RDWR | O_CREAT, &a->head_fd, err);
    if (r == 0)
        r = state_file(a->seal, "runs", O_RDWR | O_CREAT, &a->runs_fd, err);
    if (r == 0)
        r = state_file(a->seal, "window", O_RDWR | O_CREAT, &a->window_fd, err);
    if (r == 0) {
        void *map;
        r = audit_map(a->head_fd, a, AUDIT_HEAD_FILE, "head", &map, err);
        if (r == 0)
            a->head_map = map;
    }
    if (r == 0)
        r = audit_runs_open(a, err);
    return r == 0 ? audit_window_open(a, err) : r;
}

static bool any_record(struct audit *a, struct err *err)
{
    struct audit_files files;
    bool any = false;
    if (audit_files_open(a->dir, &files, err) < 0)
        return true;
    for (size_t i = 0; i < files.count; i++)
        any = any || files.items[i].size > 0;
    audit_files_done(&files);
    return any;
}

/* The key is made once, under the lock, and never for a log that has records already: they could not be told from
 * forged ones any more. */
static int get_key(struct audit *a, struct err *err)
{
    int r = audit_key_load(a->seal, false, &a->key, err);
    if (r != ERR_SYS || err->sys_errno != ENOENT)
        return r;
    r = audit_lock_bytes(a, err);
    if (r < 0)
        return r;
    r = audit_key_load(a->seal, false, &a->key, err); /* another may have been quicker */
    if (r == ERR_SYS && err->sys_errno == ENOENT) {
        if (any_record(a, err))
            r = err_set(err, ERR_STATE,
                        "the log has records, but its key, seal/key in the state folder, is gone: "
                        "put it back, or move "
                        "audit/ and seal/ away to begin anew");
        else
            r = audit_key_load(a->seal, true, &a->key, err);
    }
    audit_unlock_bytes(a);
    return r;
}

int audit_open(const struct audit_config *config, struct audit **ret, struct err *err)
{
    struct audit *a = calloc(1, sizeof *a);
    if (!a)
        return err_set(err, ERR_MEMORY, "no memory for the audit");
    a->config = *config;
    a->state = a->dir = a->seal = a->head_fd = a->runs_fd = a->window_fd = a->log_fd = a->index_fd =
        a->alert_folder = a->alert_fd = -1;
    buf_init(&a->body, BATCH_MAX);
    buf_init(&a->own, AUDIT_RECORD_MAX);
    buf_init(&a->out, 4 * MIB);
    buf_init(&a->index, 8 * MIB);
    buf_init(&a->line, AUDIT_RECORD_MAX - 1024);
    buf_init(&a->clean, 16 * MIB);
    int r = audit_writer_self(&a->self, &a->terminal, err);
    if (r == 0)
        r = open_folders(a, err);
    if (r == 0)
        r = get_key(a, err);
    struct stat key;
    if (r == 0 && fstatat(a->seal, "key", &key, AT_SYMLINK_NOFOLLOW) == 0)
        a->key_file = key.st_ino;
    if (r == 0)
        r = audit_runs_sweep(a, err);
    if (r < 0) {
        audit_close(a);
        return r;
    }
    audit_alert_open(a);
    *ret = a;
    return 0;
}

bool audit_is_current(const struct audit *a)
{
    char path[STATE_PATH_MAX];
    struct err err = ERR_INIT;
    struct stat key;
    if (!a->config.state && state_path(path, sizeof path, &err) < 0)
        return false;
    if (fstatat(a->seal, "key", &key, AT_SYMLINK_NOFOLLOW) < 0 || key.st_ino != a->key_file)
        return false;
    return state_is_same(AT_FDCWD, a->config.state ? a->config.state : path, a->state) &&
           state_is_same(a->state, AUDIT_LOG_DIR, a->dir) &&
           state_is_same(a->state, AUDIT_SEAL_DIR, a->seal) &&
           state_is_same(a->seal, "head", a->head_fd) &&
           state_is_same(a->seal, "runs", a->runs_fd) &&
           state_is_same(a->seal, "window", a->window_fd);
}

void audit_close(struct audit *a)
{
    if (!a)
        return;
    base_assert(!a->locked);
    const int fds[] = {a->log_fd, a->index_fd, a->window_fd,    a->runs_fd,  a->head_fd,
                       a->seal,   a->dir,      a->alert_folder, a->alert_fd, a->state};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        fd_close(fds[i]);
    for (size_t i = 0; i < AUDIT_DAYS_AHEAD; i++)
        if (a->ahead[i].day)
            fd_close(a->ahead[i].fd);
    buf_done(&a->body);
    buf_done(&a->own);
    buf_done(&a->out);
    buf_done(&a->index);
    buf_done(&a->line);
    buf_done(&a->clean);
    audit_unmap(a->head_map, AUDIT_HEAD_FILE);
    audit_unmap(a->runs_map, a->runs_size);
    audit_window_close(a);
    explicit_bzero(a, sizeof *a);
    free(a);
}

/* ---- one run ---- */

/* The hash of the code, as given or made here; NULL: there is no code. */
static const char *hash_of(const struct audit_facts *f, char hex[2 * AUDIT_HASH + 1])
{
    struct sha256_ctx sha;
    uint8_t hash[AUDIT_HASH];
    if (f->code_hash || !f->code)
        return f->code_hash;
    sha256_init(&sha);
    sha256_update(&sha, f->code_len, (const uint8_t *)f->code);
    sha256_digest(&sha, AUDIT_HASH, hash);
    audit_hex(hash, AUDIT_HASH, hex);
    return hex;
}

static void copy(char *out, size_t size, const char *text)
{
    size_t n = text ? strnlen(text, size - 1) : 0;
    memcpy(out, text ? text : "", n);
    out[n] = 0;
}

static const char *given(const char *text)
{
    return text[0] ? text : NULL;
}

struct begin_ctx {
    int slot;
};

static int before_begin(struct audit *a, void *ctx, const struct audit_pos *pos, uint64_t seq,
                        struct err *err)
{
    struct begin_ctx *c = ctx;
    c->slot = audit_runs_claim(a, err);
    if (c->slot < 0)
        return c->slot;
    audit_runs_begin(a, c->slot, seq, pos);
    return 0;
}

static int put_begin(struct audit *a, uint64_t most_ms, struct audit_ticket *t, struct err *err)
{
    struct begin_ctx ctx = {-1};
    const struct audit_append w = {.bodies = a->body.data,
                                   .lens = &a->body.len,
                                   .count = 1,
                                   .open_runs = 1,
                                   .leaves = AUDIT_LEAVES_ALL,
                                   .unsynced = a->config.sync == AUDIT_SYNC_OFF,
                                   .before = before_begin,
                                   .ctx = &ctx};
    int r = audit_lock(a, err);
    if (r < 0)
        return r;
    audit_retain(a);
    r = audit_append(a, &w, err);
    if (r < 0 &&
        ctx.slot >=
            0) /* settled at the next start: if the record is there after all, it gets an end */
        audit_runs_park(a, ctx.slot, &(struct audit_late){.status = "refused", .ended_ms = a->now});
    t->slot = ctx.slot;
    t->seq = a->last_seq;
    t->begun_ms = a->now;
    if (r == 0)
        audit_days_open_ahead(a, most_ms);
    audit_unlock(a);
    return r;
}

int audit_begin_run(struct audit *a, const struct audit_facts *f, struct audit_ticket *ret,
                    struct err *err)
{
    char hex[2 * AUDIT_HASH + 1] = "";
    struct audit_facts facts = *f;
    struct err ignored = ERR_INIT;
    a->nalerts = 0;
    ret->open = false;
    if (a->parked && audit_runs_sweep(a, &ignored) < 0)
        a->parked = true; /* still no room; the next time */
    facts.code_hash = hash_of(f, hex);
    buf_reset(&a->body);
    int r = audit_code_keep(a, facts.code_hash, f->code, f->code_len, err);
    if (r == 0)
        r = audit_body(a, &a->body, AUDIT_BEGIN, &facts, 0, err);
    if (r == 0)
        r = put_begin(a, f->most_ms, ret, err);
    if (r < 0)
        return r;
    copy(ret->execution_id, sizeof ret->execution_id, f->execution_id);
    copy(ret->client_id, sizeof ret->client_id, f->client_id);
    copy(ret->tool, sizeof ret->tool, f->tool);
    copy(ret->worker_id, sizeof ret->worker_id, f->worker_id);
    copy(ret->session, sizeof ret->session, f->session);
    copy(ret->language, sizeof ret->language, f->language);
    copy(ret->profile, sizeof ret->profile, f->profile);
    copy(ret->role, sizeof ret->role, f->role);
    copy(ret->code_hash, sizeof ret->code_hash, facts.code_hash);
    ret->code_size = f->code_len;
    ret->open = true;
    if (a->config.sync != AUDIT_SYNC_OFF && (r = audit_sync_to(a, ret->seq, err)) < 0) {
        /* the record is in the log, but maybe not on disk: the run is refused, and its end record says so later */
        const struct audit_late late = {
            .known = true, .status = "refused", .ended_ms = ret->begun_ms};
        audit_runs_park(a, ret->slot, &late);
        ret->open = false;
    }
    return r;
}

static int before_end(struct audit *a, void *ctx, const struct audit_pos *pos, uint64_t seq,
                      struct err *err)
{
    (void)seq, (void)err;
    audit_runs_end(a, ((const struct audit_ticket *)ctx)->slot, pos);
    return 0;
}

/* What was blocked or denied has an end, too, and no exit code: its time says nothing of the others'. */
static void sample_of(struct audit_sample *s, const struct audit_facts *f, uint64_t ms)
{
    const struct audit_outcome *o = f->outcome;
    *s = (struct audit_sample){.client = f->client_id,
                               .execution_id = f->execution_id,
                               .code_hash = f->code_hash,
                               .ms = ms,
                               .wall_us = o ? o->wall_us : 0,
                               .blocked = o && o->validation == AUDIT_BLOCKED,
                               .ran = o && o->has_exit_code,
                               .timed_out = o && o->status && strcmp(o->status, "timeout") == 0,
                               .violations = !o                    ? 0
                                             : o->violations_total ? o->violations_total
                                                                   : o->nviolations};
    if (o)
        s->violations -=
            o->violations_harmless < s->violations ? o->violations_harmless : s->violations;
}

static void park(struct audit *a, const struct audit_ticket *t, const struct audit_outcome *o)
{
    struct audit_late late = {.ended_ms = audit_now(a)};
    copy(late.status, sizeof late.status, "error");
    if (o) {
        late.has_exit_code = o->has_exit_code;
        late.exit_code = o->exit_code;
        late.signal = o->signal;
        late.validation = o->validation;
        late.wall_us = o->wall_us;
        late.memory_bytes = o->memory_bytes;
        late.output_bytes = o->output_bytes;
        late.violations = o->violations_total ? o->violations_total : o->nviolations;
        copy(late.status, sizeof late.status, o->status);
        copy(late.layer, sizeof late.layer, o->layer);
        copy(late.error_type, sizeof late.error_type, o->error_type);
    }
    audit_runs_park(a, t->slot, &late);
}

int audit_end_run(struct audit *a, struct audit_ticket *t, const struct audit_facts *f,
                  struct err *err)
{
    const struct audit_facts facts = {.execution_id = given(t->execution_id),
                                      .client_id = given(t->client_id),
                                      .tool = given(t->tool),
                                      .worker_id =
                                          f->worker_id ? f->worker_id : given(t->worker_id),
                                      .session = given(t->session),
                                      .language = given(t->language),
                                      .profile = given(t->profile),
                                      .role = given(t->role),
                                      .code_hash = given(t->code_hash),
                                      .code_len = t->code_size,
                                      .args = f->args,
                                      .nargs = f->nargs,
                                      .outcome = f->outcome};
    struct audit_sample sample;
    if (!t->open)
        return err_set(err, ERR_STATE, "a run that did not begin cannot end");
    t->open = false;
    a->nalerts = 0;
    buf_reset(&a->body);
    int r = audit_body(a, &a->body, AUDIT_END, &facts, t->seq, err);
    const struct audit_append w = {.bodies = a->body.data,
                                   .lens = &a->body.len,
                                   .count = 1,
                                   .open_runs = -1,
                                   .unsynced = a->config.sync != AUDIT_SYNC_ON,
                                   .before = before_end,
                                   .ctx = t};
    if (r == 0)
        r = audit_lock(a, err);
    if (r == 0) {
        r = audit_append(a, &w, err);
        if (r == 0) {
            audit_runs_free(a, t->slot);
            sample_of(&sample, &facts, a->now);
            audit_window_feed(a, &sample);
        }
        audit_unlock(a);
    }
    if (r < 0) {
        park(a, t, f->outcome);
        return r;
    }
    if (a->config.sync == AUDIT_SYNC_ON)
        r = audit_sync_to(a, a->last_seq, err);
    if (a->nalerts)
        audit_alert_raise(a, &sample, 0);
    return r;
}

/* ---- everything else ---- */

int audit_room(struct audit *a, size_t more, struct err *err)
{
    int r = audit_lock(a, err);
    if (r < 0)
        return r;
    r = audit_set_room_aside(a, more, err);
    audit_unlock(a);
    return r;
}

static int feed_refusal(struct audit *a, const struct audit_facts *f, struct err *err)
{
    char hex[2 * AUDIT_HASH + 1];
    struct audit_facts facts = *f;
    struct audit_sample s;
    size_t before = a->nalerts;
    facts.code_hash = hash_of(f, hex);
    int r = audit_lock(a, err);
    if (r < 0)
        return r;
    sample_of(&s, &facts, a->now);
    audit_window_feed(a, &s);
    audit_unlock(a);
    audit_alert_raise(a, &s, before);
    return 0;
}

static int body_of(struct audit *a, const struct audit_item *item, size_t *ret_len, struct err *err)
{
    char hex[2 * AUDIT_HASH + 1];
    struct audit_facts facts = item->facts;
    size_t before = a->body.len;
    if (item->kind == AUDIT_BEGIN || item->kind == AUDIT_END || (unsigned)item->kind >= AUDIT_KINDS)
        return err_set(err, ERR_USAGE, "a run begins and ends by its own calls");
    facts.code_hash = hash_of(&item->facts, hex);
    int r = audit_body(a, &a->body, item->kind, &facts, 0, err);
    *ret_len = a->body.len - before;
    return r;
}

/* The operator's switch is thrown seldom, and most of all where something goes wrong: its records have the room of ends. */
static enum audit_leaves leaves(const struct audit_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (items[i].kind != AUDIT_STOP && items[i].kind != AUDIT_RESUME)
            return AUDIT_LEAVES_ENDS;
    return AUDIT_LEAVES_NOTHING;
}

int audit_events(struct audit *a, const struct audit_item *items, size_t count, struct err *err)
{
    size_t *lens = calloc(count ? count : 1, sizeof *lens);
    int r = 0;
    if (!lens)
        return err_set(err, ERR_MEMORY, "no memory for %zu records", count);
    buf_reset(&a->body);
    a->nalerts = 0;
    for (size_t i = 0; i < count && r == 0; i++)
        r = body_of(a, &items[i], &lens[i], err);
    if (r == 0 && count)
        r = audit_lock(a, err);
    if (r == 0 && count) {
        const struct audit_append w = {.bodies = a->body.data,
                                       .lens = lens,
                                       .count = count,
                                       .leaves = leaves(items, count),
                                       .unsynced = a->config.sync != AUDIT_SYNC_ON};
        audit_retain(a);
        r = audit_append(a, &w, err);
        audit_unlock(a);
        if (r == 0 && a->config.sync == AUDIT_SYNC_ON)
            r = audit_sync_to(a, a->last_seq, err);
    }
    struct err later = ERR_INIT; /* they are written: what comes after is no reason to deny it */
    for (size_t i = 0; i < count && r == 0; i++)
        if (items[i].kind == AUDIT_REFUSAL && feed_refusal(a, &items[i].facts, &later) < 0)
            break;
    free(lens);
    return r;
}

int audit_event(struct audit *a, enum audit_kind kind, const struct audit_facts *f, struct err *err)
{
    const struct audit_item item = {kind, *f};
    return audit_events(a, &item, 1, err);
}

uint64_t audit_last_seq(const struct audit *a)
{
    return a->last_seq;
}

const char *const *audit_alerts(const struct audit *a, size_t *ret_count)
{
    *ret_count = a->nalerts;
    return a->alerts;
}
