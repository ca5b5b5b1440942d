/* Which runs have begun and not ended, without reading the log: a table beside it, one slot a run. A
 * slot is written before the record that it speaks of, and says where that record will be; so after a
 * crash between the two the log itself answers whether the record is there.
 *
 * The table is not synced. After a restart of the machine it means nothing, and the log is read from
 * the oldest run on that may have been open. */
#include "audit/inside.h"

#include "base/limits.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOT       512
#define SLOTS_MAX  65536
#define SLOTS_READ 16
#define YOUNG_MS   10000 /* no pid is given again within this time */
#define MAGIC      0x736e7552U

enum { FREE, BEGUN, PARKED };

struct slot {
    uint32_t magic, state;
    uint64_t seq, begun_ms;
    struct audit_place begin, end;
    struct audit_writer writer;
    struct audit_late late;
    uint8_t mac[AUDIT_HASH];
};
_Static_assert(sizeof(struct slot) <= SLOT, "a slot of the table of runs");

static int store(struct audit *a, int n, struct slot *s, struct err *err)
{
    uint8_t raw[SLOT] = {0};
    s->magic = MAGIC;
    audit_sign(&a->key, 's', s, offsetof(struct slot, mac), s->mac);
    memcpy(raw, s, sizeof *s);
    return audit_pwrite(a->runs_fd, raw, sizeof raw, (off_t)n * SLOT, "the table of runs", err);
}

static bool take(struct audit *a, const uint8_t raw[SLOT], struct slot *ret)
{
    memcpy(ret, raw, sizeof *ret);
    return ret->magic == MAGIC && ret->state != FREE &&
           audit_signed(&a->key, 's', ret, offsetof(struct slot, mac), ret->mac);
}

static bool load(struct audit *a, int n, struct slot *ret)
{
    uint8_t raw[SLOT];
    return pread(a->runs_fd, raw, sizeof raw, (off_t)n * SLOT) == sizeof raw && take(a, raw, ret);
}

int audit_runs_claim(struct audit *a, struct err *err)
{
    uint8_t raw[SLOTS_READ * SLOT];
    for (int first = a->slot_hint, tried = 0; tried < SLOTS_MAX;
         first += SLOTS_READ, tried += SLOTS_READ) {
        if (first >= SLOTS_MAX)
            first = 0;
        ssize_t n = pread(a->runs_fd, raw, sizeof raw, (off_t)first * SLOT);
        if (n < 0)
            return err_sys(err, "read the table of runs");
        for (int i = 0; i < SLOTS_READ; i++) {
            uint32_t state;
            memcpy(&state, raw + (size_t)i * SLOT + offsetof(struct slot, state), sizeof state);
            if (n < (i + 1) * SLOT || state == FREE)
                return a->slot_hint = first + i;
        }
    }
    return err_set(err, ERR_LIMIT, "more than %d runs at once", SLOTS_MAX);
}

int audit_runs_begin(struct audit *a, int n, uint64_t seq, const struct audit_place *begin,
                     struct err *err)
{
    struct slot s;
    memset(&s, 0, sizeof s);
    s.state = BEGUN;
    s.seq = seq;
    s.begun_ms = a->now;
    s.begin = *begin;
    s.writer = a->self;
    return store(a, n, &s, err);
}

int audit_runs_end(struct audit *a, int n, const struct audit_place *end, struct err *err)
{
    struct slot s;
    if (!load(a, n, &s))
        return 0; /* somebody cleared the table; the record itself is what matters */
    s.end = *end;
    return store(a, n, &s, err);
}

void audit_runs_free(struct audit *a, int n)
{
    static const uint8_t zeros[SLOT];
    struct err err = ERR_INIT;
    if (audit_pwrite(a->runs_fd, zeros, sizeof zeros, (off_t)n * SLOT, "the table of runs", &err) ==
        0)
        a->slot_hint = n; /* otherwise the end's place in it says that it is over */
}

void audit_runs_park(struct audit *a, int n, const struct audit_late *late)
{
    struct slot s;
    struct err err = ERR_INIT;
    if (!load(a, n, &s))
        return;
    s.state = PARKED;
    s.late = *late;
    s.late.known = true;
    if (store(a, n, &s, &err) == 0) /* otherwise it stays begun, and is lost when we are gone */
        a->parked = fdatasync(a->runs_fd) == 0;
}

/* ---- runs whose end is missing ---- */

struct late_ctx {
    int slot;
};

static int before_late(struct audit *a, void *ctx, const struct audit_place *place, uint64_t seq,
                       struct err *err)
{
    (void)seq;
    return audit_runs_end(a, ((struct late_ctx *)ctx)->slot, place, err);
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

static bool over(const struct slot *s, const struct audit_writer *self, uint64_t now)
{
    uint64_t age = now > s->begun_ms ? now - s->begun_ms : 0;
    if (s->state == PARKED)
        return true;
    if (age < YOUNG_MS && memcmp(s->writer.boot, self->boot, AUDIT_BOOT) == 0 &&
        s->writer.pid_ns == self->pid_ns)
        return kill((pid_t)s->writer.pid, 0) < 0 && errno == ESRCH;
    return audit_writer_gone(&s->writer, self, age);
}

static bool day_is_gone(const struct audit *a, uint32_t day)
{
    char name[AUDIT_NAME_MAX];
    audit_day_name(day, name);
    return faccessat(a->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/* Under the lock. */
static int settle(struct audit *a, int n, struct err *err)
{
    struct slot s;
    struct buf line;
    int r = 0;
    if (!load(a, n, &s) || !over(&s, &a->self, a->now))
        return 0;
    buf_init(&line, AUDIT_RECORD_MAX);
    if (audit_place_holds(a->dir, &s.begin, &a->key, &line)) {
        if (!audit_place_holds(a->dir, &s.end, &a->key, NULL)) {
            s.late.writer = s.writer;
            r = write_late(a, line.data, line.len, s.seq, &s.late, n, err);
        }
    } else if (day_is_gone(
                   a,
                   s.begin
                       .day)) { /* retention took the begin, or somebody did: lost all the same */
        s.late.writer = s.writer;
        r = write_late(a, NULL, 0, s.seq, &s.late, n, err);
    }
    if (r == 0)
        audit_runs_free(a, n);
    buf_done(&line);
    return r;
}

int audit_runs_sweep(struct audit *a, struct err *err)
{
    uint8_t raw[SLOTS_READ * SLOT];
    uint64_t now = audit_now(a);
    int r = 0;
    uint64_t before = a->last_seq;
    for (int first = 0; first < SLOTS_MAX && r == 0; first += SLOTS_READ) {
        ssize_t n = pread(a->runs_fd, raw, sizeof raw, (off_t)first * SLOT);
        if (n < 0)
            return err_sys(err, "read the table of runs");
        for (int i = 0; r == 0 && i < n / SLOT; i++) {
            struct slot s;
            if (!take(a, raw + (size_t)i * SLOT, &s) || !over(&s, &a->self, now))
                continue;
            r = audit_lock(a, err);
            if (r == 0) {
                r = settle(a, first + i, err);
                audit_unlock(a);
            }
        }
        if (n < (ssize_t)sizeof raw)
            break;
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
    struct audit_place place;
};

struct open_list {
    struct open_run *items;
    size_t count, room;
};

static int note_line(struct open_list *list, const char *line, size_t len,
                     const struct audit_line *l, const struct audit_place *place, struct err *err)
{
    if (l->kind == AUDIT_BEGIN) {
        if (list->count == list->room) {
            size_t room = list->room ? list->room * 2 : 64;
            struct open_run *more =
                room <= 16 * SLOTS_MAX ? realloc(list->items, room * sizeof *more) : NULL;
            if (!more)
                return err_set(err, ERR_MEMORY, "no memory for the list of open runs");
            list->items = more;
            list->room = room;
        }
        list->items[list->count++] = (struct open_run){.seq = l->seq, .place = *place};
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
        struct audit_place place = {.day = file->day, .offset = at, .len = (uint32_t)len + 1};
        if (audit_line_parse(line, len, &l))
            continue;
        *next = l.seq + 1;
        memcpy(place.hash, l.hash, AUDIT_HASH);
        r = note_line(list, line, len, &l, &place, err);
    }
    audit_lines_done(&lines);
    return r;
}

int audit_runs_after_boot(struct audit *a, struct err *err)
{
    struct open_list list = {0};
    struct audit_files files = {0};
    struct buf line;
    struct audit_place from = a->head.oldest;
    int r = ftruncate(a->runs_fd, 0) < 0 ? err_sys(err, "clear the table of runs") : 0;
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
        if (audit_place_holds(a->dir, &list.items[i].place, &a->key, &line)) {
            struct audit_late late = {0};
            r = write_late(a, line.data, line.len, list.items[i].seq, &late, -1, err);
        }
    if (r == 0) {
        a->head.open_runs = 0;
        a->head.oldest = (struct audit_place){0};
        a->head.sweep = 0;
        r = audit_head_store(a, AUDIT_HEAD_NOW, err);
    }
    audit_files_done(&files);
    free(list.items);
    buf_done(&line);
    return r;
}
