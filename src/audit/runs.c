/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs have begun and not ended, without reading the log: a table beside it, one slot a run. A
 * slot is written before the record that it speaks of, and says where that record will be; so after a
 * crash between the two the log itself answers whether the record is there.
 *
 * The table is not synced. After a restart of the machine it means nothing, and the log is read from
 * the oldest run on that may have been open.
 *
 * Waits: fdatasync in audit_runs_park; the disk, where a record could not be written; none (the kernel's
 *          own); holds no lock but in put_begin */
#include "audit/inside.h"

#include "base/limits.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOT        512
#define SLOTS_FIRST 128
#define SLOTS_MAX   65536
#define YOUNG_MS    10000 /* no pid is given again within this time */
#define USED        0x736e7552U

/* Three parts, written one after the other as the run goes on, each with a signature of its own: a part that was being
 * written when its writer was killed counts as not written. The number of the begin is in each, so that what an earlier
 * run left in the slot is none of ours. */
struct slot {
    uint32_t used;
    struct begun {
        uint64_t seq, ms;
        struct audit_pos pos;
        struct audit_writer writer;
    } begun;
    uint8_t begun_mac[AUDIT_HASH];
    struct ended {
        uint64_t seq;
        struct audit_pos pos;
    } ended;
    uint8_t ended_mac[AUDIT_HASH];
    struct parked {
        uint64_t seq;
        struct audit_late late;
    } parked;
    uint8_t parked_mac[AUDIT_HASH];
};
_Static_assert(sizeof(struct slot) <= SLOT, "a slot of the table of runs");

static struct slot *slot_of(const struct audit *a, int n)
{
    base_assert(n >= 0 && ((size_t)n + 1) * SLOT <= a->runs_size);
    return (struct slot *)((char *)a->runs_map + (size_t)n * SLOT);
}

static int remap(struct audit *a, size_t size, struct audit *lock, struct err *err)
{
    void *map;
    int r = audit_map(a->runs_fd, lock, size, "runs", &map, err);
    if (r < 0)
        return r;
    audit_unmap(a->runs_map, a->runs_size);
    a->runs_map = map;
    a->runs_size = size;
    return 0;
}

/* The whole table, as long as others have made it. LOCK: as in audit_map. */
static int see_all(struct audit *a, struct audit *lock, struct err *err)
{
    struct stat st;
    if (fstat(a->runs_fd, &st) < 0)
        return err_sys(err, "look at the table of runs");
    size_t size =
        st.st_size < SLOTS_FIRST * SLOT ? SLOTS_FIRST * SLOT : (size_t)st.st_size / SLOT * SLOT;
    if (size > (size_t)SLOTS_MAX * SLOT)
        size = (size_t)SLOTS_MAX * SLOT;
    return size == a->runs_size ? 0 : remap(a, size, lock, err);
}

int audit_runs_open(struct audit *a, struct err *err)
{
    return see_all(a, a, err);
}

int audit_runs_claim(struct audit *a, struct err *err)
{
    for (;;) {
        int count = (int)(a->runs_size / SLOT);
        for (int i = 0; i < count; i++) {
            int n = (a->slot_hint + i) % count;
            if (__atomic_load_n(&slot_of(a, n)->used, __ATOMIC_ACQUIRE) != USED)
                return a->slot_hint = n;
        }
        int r = see_all(a, NULL, err); /* another process may have made it longer */
        if (r == 0 && a->runs_size / SLOT == (size_t)count) {
            if (count >= SLOTS_MAX)
                return err_set(err, ERR_LIMIT, "more than %d runs at once", SLOTS_MAX);
            r = remap(a, a->runs_size * 2, NULL, err);
        }
        if (r < 0)
            return r;
        a->slot_hint = count;
    }
}

void audit_runs_begin(struct audit *a, int n, uint64_t seq, const struct audit_pos *begin)
{
    struct slot *s = slot_of(a, n);
    s->begun = (struct begun){.seq = seq, .ms = a->now, .pos = *begin, .writer = a->self};
    audit_sign(&a->key, 'b', &s->begun, sizeof s->begun, s->begun_mac);
    __atomic_store_n(&s->used, USED, __ATOMIC_RELEASE); /* last */
}

void audit_runs_end(struct audit *a, int n, const struct audit_pos *end)
{
    struct slot *s = slot_of(a, n);
    s->ended = (struct ended){.seq = s->begun.seq, .pos = *end};
    audit_sign(&a->key, 'e', &s->ended, sizeof s->ended, s->ended_mac);
}

void audit_runs_free(struct audit *a, int n)
{
    __atomic_store_n(&slot_of(a, n)->used, 0, __ATOMIC_RELEASE);
    a->slot_hint = n;
}

void audit_runs_park(struct audit *a, int n, const struct audit_late *late)
{
    struct slot *s = slot_of(a, n);
    s->parked = (struct parked){.seq = s->begun.seq, .late = *late};
    s->parked.late.known = true;
    audit_sign(&a->key, 'p', &s->parked, sizeof s->parked, s->parked_mac);
    a->parked = true;
    if (fdatasync(a->runs_fd) < 0) /* then a power cut makes it lost instead of late */
        a->parked = true;
}

/* A copy of what is in slot N; false: nothing. */
static bool load(struct audit *a, int n, struct slot *ret, bool *ret_parked)
{
    struct slot *s = slot_of(a, n);
    if (__atomic_load_n(&s->used, __ATOMIC_ACQUIRE) != USED)
        return false;
    memcpy(ret, s, sizeof *ret); /* padding is signed too */
    if (!audit_signed(&a->key, 'b', &ret->begun, sizeof ret->begun, ret->begun_mac))
        return false;
    if (ret->ended.seq != ret->begun.seq ||
        !audit_signed(&a->key, 'e', &ret->ended, sizeof ret->ended, ret->ended_mac))
        memset(&ret->ended, 0, sizeof ret->ended);
    *ret_parked = ret->parked.seq == ret->begun.seq &&
                  audit_signed(&a->key, 'p', &ret->parked, sizeof ret->parked, ret->parked_mac);
    if (!*ret_parked)
        memset(&ret->parked, 0, sizeof ret->parked);
    return true;
}

/* ---- runs whose end is missing ---- */

struct late_ctx {
    int slot;
};

static int before_late(struct audit *a, void *ctx, const struct audit_pos *pos, uint64_t seq,
                       struct err *err)
{
    (void)seq, (void)err;
    audit_runs_end(a, ((struct late_ctx *)ctx)->slot, pos);
    return 0;
}

static int write_late(struct audit *a, const char *line, size_t len, uint64_t seq,
                      const struct audit_late *late, int slot, struct err *err)
{
    struct late_ctx ctx = {slot};
    buf_reset(&a->own);
    int r = audit_body_late(&a->own, line, len, seq, late, &a->self, err);
    const struct audit_append w = {.bodies = a->own.data,
                                   .lens = &a->own.len,
                                   .count = 1,
                                   .open_runs = -1,
                                   .unsynced = a->config.sync != AUDIT_SYNC_ON,
                                   .before = slot >= 0 ? before_late : NULL,
                                   .ctx = &ctx};
    return r < 0 ? r : audit_append(a, &w, err);
}

static bool over(const struct slot *s, bool parked, const struct audit_writer *self, uint64_t now)
{
    const struct audit_writer *w = &s->begun.writer;
    uint64_t age = now > s->begun.ms ? now - s->begun.ms : 0;
    if (parked)
        return true;
    if (age < YOUNG_MS && memcmp(w->boot, self->boot, AUDIT_BOOT) == 0 && w->pid_ns == self->pid_ns)
        return kill((pid_t)w->pid, 0) < 0 && errno == ESRCH;
    return audit_writer_gone(w, self, age);
}

static bool day_is_gone(const struct audit *a, uint32_t day)
{
    char name[AUDIT_NAME_MAX];
    audit_day_name(day, name);
    return faccessat(a->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/* Under the lock. */
static int close_run(struct audit *a, int n, struct err *err)
{
    struct slot s;
    struct buf line;
    bool parked;
    int r = 0;
    if (!load(a, n, &s, &parked) || !over(&s, parked, &a->self, a->now))
        return 0;
    buf_init(&line, AUDIT_RECORD_MAX);
    s.parked.late.writer = s.begun.writer;
    if (audit_pos_holds(a->dir, &s.begun.pos, &a->key, &line)) {
        if (!audit_pos_holds(a->dir, &s.ended.pos, &a->key, NULL))
            r = write_late(a, line.data, line.len, s.begun.seq, &s.parked.late, n, err);
    } else if (day_is_gone(
                   a,
                   s.begun.pos
                       .day)) { /* retention took the begin, or somebody did: lost all the same */
        r = write_late(a, NULL, 0, s.begun.seq, &s.parked.late, n, err);
    }
    if (r == 0)
        audit_runs_free(a, n);
    buf_done(&line);
    return r;
}

int audit_runs_sweep(struct audit *a, struct err *err)
{
    uint64_t now = audit_now(a), before = a->last_seq;
    int r = 0;
    for (int n = 0; r == 0 && n < (int)(a->runs_size / SLOT); n++) {
        struct slot s;
        bool parked;
        if (!load(a, n, &s, &parked) || !over(&s, parked, &a->self, now))
            continue;
        r = audit_lock(a, err);
        if (r == 0) {
            r = close_run(a, n, err);
            audit_unlock(a);
        }
    }
    if (r == 0 && a->last_seq != before && a->config.sync == AUDIT_SYNC_ON)
        r = audit_sync_to(a, a->last_seq, err);
    if (r == 0)
        a->parked = false;
    return r;
}

/* ---- after a restart of the machine ---- */

struct open_run {
    uint64_t seq;
    struct audit_pos pos;
};

struct open_list {
    struct open_run *items;
    size_t count, cap;
};

static int note_line(struct open_list *list, const char *line, size_t len,
                     const struct audit_line *l, const struct audit_pos *pos, struct err *err)
{
    if (l->kind == AUDIT_BEGIN) {
        if (list->count == list->cap) {
            size_t cap = list->cap ? list->cap * 2 : 64;
            struct open_run *more =
                cap <= 16 * SLOTS_MAX ? realloc(list->items, cap * sizeof *more) : NULL;
            if (!more)
                return err_set(err, ERR_MEMORY, "no memory for the list of open runs");
            list->items = more;
            list->cap = cap;
        }
        list->items[list->count++] = (struct open_run){.seq = l->seq, .pos = *pos};
    } else if (l->kind == AUDIT_END || l->kind == AUDIT_LOST) {
        const char *text;
        size_t n;
        uint64_t seq =
            audit_line_member(line, len, "begin_seq", &text, &n) ? strtoull(text, NULL, 10) : 0;
        for (size_t i = list->count; i-- > 0;) /* most ends follow their begin closely */
            if (list->items[i].seq == seq) {
                memmove(&list->items[i], &list->items[i + 1],
                        (--list->count - i) * sizeof *list->items);
                break;
            }
    }
    return 0;
}

/* *NEXT becomes the number that the next file must begin with. */
static int scan_file(struct audit_file *file, uint64_t from, struct open_list *list, uint64_t *next,
                     struct err *err)
{
    struct audit_lines lines;
    struct audit_line l;
    const char *line;
    size_t len;
    uint64_t at;
    int r = 0;
    audit_lines_init(&lines, file->fd, from, file->size);
    while (r == 0 && audit_lines_next(&lines, &line, &len, &at) == 1) {
        struct audit_pos pos = {.day = file->day, .offset = at, .len = (uint32_t)len + 1};
        if (audit_line_parse(line, len, &l))
            continue;
        *next = l.seq + 1;
        memcpy(pos.hash, l.hash, AUDIT_HASH);
        r = note_line(list, line, len, &l, &pos, err);
    }
    audit_lines_done(&lines);
    return r;
}

int audit_runs_after_boot(struct audit *a, struct err *err)
{
    struct open_list list = {0};
    struct audit_files files = {0};
    struct buf line;
    struct audit_pos from = a->head.oldest;
    int r = see_all(a, NULL, err);
    if (r == 0)
        memset(a->runs_map, 0, a->runs_size);
    buf_init(&line, AUDIT_RECORD_MAX);
    if (r == 0 && from.day)
        r = audit_files_open(a->dir, &files, err);
    uint64_t first = 0; /* of the file where the oldest lies */
    for (size_t i = 0; i < files.count; i++)
        if (files.items[i].day == from.day)
            first = files.items[i].first;
    for (size_t i = 0; i < files.count; i++)
        files.items[i].done = files.items[i].first < first;
    for (struct audit_file *file; r == 0 && (file = audit_files_take(&files, first));)
        r = scan_file(file, file->day == from.day ? from.offset : 0, &list, &first, err);
    for (size_t i = 0; i < list.count && r == 0; i++)
        if (audit_pos_holds(a->dir, &list.items[i].pos, &a->key, &line)) {
            struct audit_late late = {0};
            r = write_late(a, line.data, line.len, list.items[i].seq, &late, -1, err);
        }
    if (r == 0) {
        a->head.open_runs = 0;
        a->head.oldest = (struct audit_pos){0};
        a->head.sweep = 0;
        audit_head_store(a, AUDIT_HEAD_NOW);
    }
    audit_files_done(&files);
    free(list.items);
    buf_done(&line);
    return r;
}
