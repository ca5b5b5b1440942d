/* SPDX-License-Identifier: Apache-2.0 */
/* Where each record stands, so that `audit show` and `--since` read what they print and not the log of a year.
 * One file a day, seal/YYYY-MM-DD.index, 32 bytes a record: its number, a hash of its execution id, a check of the
 * entry, its offset, and the newest time among the records of that file up to it. That time never goes down, whatever the clock
 * does, so the first record of or after a moment is found by halving.
 *
 * The index is a hint and the log is the truth. A writer appends its entries after the records and ignores a
 * failure; what is missing is a gap in the numbers, and a reader reads the log across it. What an entry points
 * to is looked at before it is believed; where that is not the record it speaks of, the log is read as if there
 * were no index. An entry that was damaged is told by its check, and is a gap. One that was forged with a right check
 * could hide a record from `show` and `--since`: it lies in seal/, so whoever can do that has the key as well, and
 * `verify` holds each entry against its record (index_check.c).
 *
 * Writers leave their entries in the head's page, which is shared memory, and one in AUDIT_INDEX_EAGER writes them all:
 * a record costs a copy, not a system call (`bench/run build audit`). What waits there is read from the log, as every
 * end of the log that has no entry yet. A supervisor of root's has given up root when it writes the end of its run, and
 * can open no index then: what it finds waiting waits on, for the next one that begins something.
 *
 * Waits: write in write_waiting; the disk's cache; none (the kernel's own); as the record itself
 *        pread in *; a file of the log; none (the kernel's own); an error */
#include "audit/index.h"

#include "audit/walk.h"

#include "sys/fd.h"
#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void audit_index_name(uint32_t day, char out[AUDIT_NAME_MAX])
{
    snprintf(out, AUDIT_NAME_MAX, "%04u-%02u-%02u.index", day / 10000 % 10000, day / 100 % 100,
             day % 100);
}

static uint64_t fnv(uint64_t h, const void *data, size_t len) /* FNV-1a */
{
    const unsigned char *p = data;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3ULL;
    return h;
}

uint32_t audit_index_key(const char *text, size_t len)
{
    uint64_t h = fnv(0xcbf29ce484222325ULL, text, len);
    uint32_t key = (uint32_t)(h ^ h >> 32);
    return key ? key : 1;
}

uint32_t audit_index_key_of_line(const char *line, size_t len)
{
    const char *id;
    size_t n;
    return audit_line_member(line, len, "execution_id", &id, &n) && n >= 2 && *id == '"'
               ? audit_index_key(id + 1, n - 2)
               : 0;
}

/* Words, not bytes: it is paid for each record. */
uint32_t audit_index_entry_check(const struct audit_entry *e)
{
    uint64_t h = 0x9e3779b97f4a7c15ULL;
    const uint64_t words[] = {e->seq, e->key, e->offset, e->newest_ms};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        h = (h ^ words[i]) * 0xff51afd7ed558ccdULL;
        h ^= h >> 32;
    }
    return (uint32_t)h;
}

/* ---- writing, under the lock ---- */

void audit_index_note(struct audit *a, uint64_t seq, uint64_t ms, uint64_t offset, const char *line,
                      size_t len)
{
    struct audit_entry e = {
        .seq = seq, .key = audit_index_key_of_line(line, len), .offset = offset, .newest_ms = ms};
    if (buf_add(&a->index, &e, sizeof e) < 0)
        buf_reset(&a->index); /* a gap */
}

static struct audit_advice *advice_of(const struct audit *a)
{
    return (struct audit_advice *)(a->head_map + AUDIT_HEAD_ALL);
}

static int open_for(struct audit *a, uint32_t day)
{
    char name[AUDIT_NAME_MAX];
    struct err err = ERR_INIT;
    if (a->index_fd >= 0 && a->index_day == day)
        return 0;
    audit_index_name(day, name);
    fd_close(a->index_fd);
    a->index_fd = -1;
    a->index_day = day;
    return state_file(a->seal, name, O_RDWR | O_APPEND | O_CREAT, &a->index_fd, &err);
}

/* The last whole entry, zeros if there is none. What cannot be trusted at the end of an index is not built upon: the
 * index begins anew, and what was before is a gap. */
static int last_of(int fd, struct audit_entry *ret)
{
    struct stat st;
    memset(ret, 0, sizeof *ret);
    if (fstat(fd, &st) < 0)
        return -1;
    off_t whole = st.st_size - st.st_size % (off_t)sizeof *ret;
    if (whole && (pread(fd, ret, sizeof *ret, whole - (off_t)sizeof *ret) != sizeof *ret ||
                  ret->check != audit_index_entry_check(ret))) {
        memset(ret, 0, sizeof *ret);
        whole = 0;
    }
    return whole != st.st_size ? ftruncate(fd, whole) : 0;
}

/* Those of a writer that was killed after this are written twice, and left out the second time. False: the index cannot be
 * opened by us, and they still wait. */
static bool write_waiting(struct audit *a, struct audit_advice *advice)
{
    struct audit_entry last, out[AUDIT_INDEX_WAITING];
    uint64_t count =
        advice->index_count < AUDIT_INDEX_WAITING ? advice->index_count : AUDIT_INDEX_WAITING;
    size_t n = 0;
    if (count && open_for(a, advice->index_day) < 0)
        return false;
    if (count && last_of(a->index_fd, &last) == 0) {
        for (uint64_t i = 0; i < count; i++) {
            memcpy(&out[n], advice->index_waiting[i], sizeof *out);
            if (out[n].seq <= last.seq)
                continue;
            if (out[n].newest_ms < last.newest_ms)
                out[n].newest_ms = last.newest_ms;
            out[n].check = audit_index_entry_check(&out[n]);
            last = out[n++];
        }
        (void)!write(a->index_fd, out, n * sizeof *out); /* cut to whole entries the next time */
    }
    advice->index_count = 0;
    return true;
}

void audit_index_write(struct audit *a, uint32_t day)
{
    struct audit_advice *advice = advice_of(a);
    size_t count = a->index.len / sizeof(struct audit_entry);
    if (count && advice->index_day != day) {
        if (!write_waiting(a, advice))
            advice->index_count = 0; /* a gap: nobody files them under another day */
        advice->index_day = day;
    }
    for (size_t i = 0; i < count; i++) {
        if (advice->index_count >= AUDIT_INDEX_EAGER && !write_waiting(a, advice) &&
            advice->index_count >= AUDIT_INDEX_WAITING)
            break; /* a gap, of this one alone */
        memcpy(advice->index_waiting[advice->index_count],
               a->index.data + i * sizeof(struct audit_entry), sizeof(struct audit_entry));
        advice->index_count++; /* whoever is killed before this leaves a gap */
    }
    buf_reset(&a->index);
}

/* ---- reading ---- */

static bool good(const struct audit_entry *e)
{
    return e->check == audit_index_entry_check(e);
}

static bool load(const struct audit_index_reader *r, uint64_t n, struct audit_entry *ret)
{
    return pread(r->fd, ret, sizeof *ret, (off_t)(n * sizeof *ret)) == sizeof *ret && good(ret);
}

bool audit_index_next_any(struct audit_index_reader *r, struct audit_entry *ret)
{
    if (r->used == r->have) {
        ssize_t n = pread(r->fd, r->chunk, sizeof r->chunk, (off_t)(r->at * sizeof *ret));
        r->have = n > 0 ? (size_t)n / sizeof *ret : 0;
        r->used = 0;
        r->at += r->have;
    }
    if (r->used == r->have)
        return false;
    r->row = r->at - r->have + r->used;
    *ret = r->chunk[r->used++];
    return true;
}

static bool next(struct audit_index_reader *r, struct audit_entry *ret)
{
    while (audit_index_next_any(r, ret))
        if (good(ret))
            return true;
    return false;
}

bool audit_index_open(struct audit_index_reader *r, int seal, uint32_t day)
{
    char name[AUDIT_NAME_MAX];
    struct err err = ERR_INIT;
    struct stat st;
    audit_index_name(day, name);
    r->fd = -1;
    r->at = r->row = r->have = r->used = r->count = 0;
    if (state_file(seal, name, O_RDONLY, &r->fd, &err) < 0 || fstat(r->fd, &st) < 0)
        return false;
    r->count = (uint64_t)st.st_size / sizeof(struct audit_entry);
    return r->count > 0;
}

/* Whether the line there is the record that the entry speaks of, as far as its first bytes say. */
static bool points(const struct audit_file *f, const struct audit_entry *e)
{
    char want[40], have[40];
    int n = snprintf(want, sizeof want, "{\"seq\": %llu, ", (unsigned long long)e->seq);
    return e->offset < f->size && pread(f->fd, have, (size_t)n, (off_t)e->offset) == n &&
           memcmp(have, want, (size_t)n) == 0;
}

/* Where the line at OFFSET ends, its newline included; 0: it does not. */
static uint64_t end_of(const struct audit_file *f, uint64_t offset)
{
    const char *line;
    size_t len;
    uint64_t at, end = 0;
    struct audit_lines lines;
    uint64_t stop = f->size - offset > AUDIT_RECORD_MAX ? offset + AUDIT_RECORD_MAX : f->size;
    audit_lines_init(&lines, f->fd, offset, stop);
    if (audit_lines_next(&lines, &line, &len, &at) == 1)
        end = offset + len + 1;
    audit_lines_done(&lines);
    return end;
}

/* No gap and nothing twice: one number for each entry. */
static bool dense(const struct audit_index_reader *r, const struct audit_file *f,
                  const struct audit_entry *last)
{
    struct audit_entry first;
    return load(r, 0, &first) && first.seq == f->first && first.offset == 0 &&
           last->seq - first.seq + 1 == r->count;
}

/* Number N of a dense index has the number of the file's first record and N. False: an entry has another. */
static bool halve(const struct audit_index_reader *r, const struct audit_file *f, uint64_t ms,
                  uint64_t *ret)
{
    uint64_t low = 0, high = r->count - 1; /* the last one is new enough: the caller looked */
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct audit_entry e;
        if (!load(r, middle, &e) || e.seq != f->first + middle)
            return false;
        if (e.newest_ms >= ms)
            high = middle;
        else
            low = middle + 1;
    }
    *ret = low;
    return true;
}

/* With gaps: the first entry that is new enough, or the last one before a gap. */
static uint64_t step_through(struct audit_index_reader *r, const struct audit_file *f, uint64_t ms)
{
    struct audit_entry e, before = {.seq = f->first - 1};
    uint64_t row = 0; /* of `before` */
    while (next(r, &e)) {
        if (e.seq > before.seq + 1)
            break;
        if (e.newest_ms >= ms)
            return r->row;
        before = e;
        row = r->row;
    }
    return row;
}

uint64_t audit_index_since(int seal, const struct audit_file *f, uint64_t ms)
{
    struct audit_index_reader *r = malloc(sizeof *r);
    struct audit_entry e, last;
    uint64_t from = 0, n;
    if (!r)
        return 0;
    if (audit_index_open(r, seal, f->day) && load(r, r->count - 1, &last) && points(f, &last)) {
        bool whole = dense(r, f, &last);
        if (last.newest_ms < ms && whole) {
            from = end_of(f, last.offset); /* what has no entry yet comes behind it */
        } else {
            if (!whole || last.newest_ms < ms || !halve(r, f, ms, &n))
                n = step_through(r, f, ms);
            if (load(r, n, &e) && points(f, &e) && e.seq >= f->first)
                from = e.offset;
        }
    }
    fd_close(r->fd);
    free(r);
    return from;
}

static int add_part(struct audit_parts *s, const struct audit_part *part)
{
    struct audit_part *last = s->count ? &s->items[s->count - 1] : NULL;
    if (last && last->file == part->file && last->stop >= part->from) {
        last->stop = part->stop > last->stop ? part->stop : last->stop;
        return 0;
    }
    if (!s->items || s->count % 256 == 0) {
        struct audit_part *more =
            s->count < AUDIT_PARTS_MAX ? realloc(s->items, (s->count + 256) * sizeof *more) : NULL;
        if (!more)
            return -1;
        s->items = more;
    }
    s->items[s->count++] = *part;
    return 0;
}

/* One line, as the log says where it ends, not the next entry. */
static int add_line(struct audit_parts *s, const struct audit_file *f, uint64_t offset)
{
    uint64_t end = end_of(f, offset);
    return add_part(s, &(struct audit_part){f, offset, end ? end : f->size});
}

/* The parts of one file that may hold KEY: the lines that are said to, and what lies in gaps. */
static int parts_of(int seal, struct audit_index_reader *r, const struct audit_file *f,
                    uint32_t key, struct audit_parts *ret)
{
    struct audit_entry e, before = {.seq = f->first - 1};
    bool wanted = false; /* the record of `before` */
    int bad = 0;
    if (!audit_index_open(r, seal, f->day) || f->first == 0)
        return add_part(ret, &(struct audit_part){f, 0, f->size});
    while (bad == 0 && next(r, &e)) {
        if (e.seq <= before.seq) /* written twice: a writer was killed before it wrote the head */
            continue;
        if (e.offset >= f->size || (before.offset && e.offset <= before.offset))
            return -1;
        const bool gap = e.seq > before.seq + 1;
        if (gap && (!points(f, &e) || (before.seq >= f->first && !points(f, &before))))
            return -1; /* what lies between them cannot be told from what an entry says */
        if (gap)
            bad = add_part(ret, &(struct audit_part){f, before.offset, e.offset});
        else if (wanted)
            bad = add_line(ret, f, before.offset);
        wanted = e.key == key;
        if (wanted && !points(f, &e))
            return -1;
        before = e;
    }
    if (before.seq >= f->first && !points(f, &before))
        return -1;
    uint64_t end = before.seq >= f->first ? end_of(f, before.offset) : 0;
    if (bad == 0 && wanted)
        bad = add_part(ret, &(struct audit_part){f, before.offset, end ? end : f->size});
    if (bad == 0 && end < f->size)
        bad = add_part(ret, &(struct audit_part){f, end, f->size});
    return bad;
}

/* The next file in the order of records; those without one do not count. */
static const struct audit_file *file_after(const struct audit_files *files, uint64_t first)
{
    const struct audit_file *found = NULL;
    for (size_t i = 0; i < files->count; i++) {
        const struct audit_file *f = &files->items[i];
        if (!f->done && f->first > first && (!found || f->first < found->first))
            found = f;
    }
    return found;
}

bool audit_index_find(int seal, const struct audit_files *files, const char *id,
                      struct audit_parts *ret)
{
    struct audit_index_reader *r = malloc(sizeof *r);
    struct buf text;
    buf_init(&text, 4096);
    struct jsonw j = {.out = &text};
    bool good = r != NULL;
    *ret = (struct audit_parts){0};
    jsonw_string(&j, NULL, id); /* as a record has it */
    good = good && !j.bad && text.len >= 2;
    for (size_t i = 0; good && i < files->count;
         i++) /* a file that does not begin with a record: read it all */
        good = files->items[i].first != 0 || files->items[i].size == 0;
    const struct audit_file *f = good ? file_after(files, 0) : NULL;
    for (; good && f; f = file_after(files, f->first)) {
        good = parts_of(seal, r, f, audit_index_key(text.data + 1, text.len - 2), ret) == 0;
        fd_close(r->fd);
    }
    if (!good)
        audit_parts_done(ret);
    buf_done(&text);
    free(r);
    return good;
}

void audit_parts_done(struct audit_parts *p)
{
    free(p->items);
    *p = (struct audit_parts){0};
}
