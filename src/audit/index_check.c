/* SPDX-License-Identifier: Apache-2.0 */
/* What `verify` says of the index. It walks every record anyway, so each entry is held against its record: number, position,
 * execution and time. The log stays good whatever is found here: the index is a hint, and nothing is lost with it. But it
 * could hide a record from `show` and `--since`, so what is wrong is named.
 *
 * Missing entries are no fault: a writer that was killed between a record and its entry leaves a gap, which readers read
 * across. They are counted, since each one costs readers time. */
#include "audit/index.h"

#include "audit/read.h"
#include "audit/walk.h"
#include "sys/fd.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

struct audit_index_check {
    struct audit_verdict *verdict;
    int seal;
    uint32_t day;            /* 0: none yet */
    int log;                 /* of that day; borrowed */
    bool have;               /* `entry` is the next one, not held against a record yet */
    bool gap;                /* an entry was missing: a newest time may be too old from then on */
    uint64_t seq, newest_ms; /* of the records so far */
    uint64_t missing;        /* entries, since the last that was there */
    struct audit_entry entry;
    struct audit_index_reader reader;
};

static void wrong(struct audit_index_check *c, const char *why)
{
    struct audit_verdict *v = c->verdict;
    c->gap = true;
    if (v->index_wrong++)
        return;
    char name[AUDIT_NAME_MAX];
    audit_index_name(c->day, name);
    snprintf(v->index_file, sizeof v->index_file, "seal/%s", name);
    snprintf(v->index_why, sizeof v->index_why, "%s", why);
    v->index_entry = c->reader.row + 1;
}

/* The next entry that may be the one of a record to come. */
static void advance(struct audit_index_check *c)
{
    while ((c->have = audit_index_next_any(&c->reader, &c->entry))) {
        const struct audit_entry *e = &c->entry;
        if (e->check != audit_index_entry_check(e))
            wrong(c, "it is damaged: its check does not fit");
        else if (e->seq >
                 c->seq) /* else written twice: a writer was killed before it wrote the head */
            return;
    }
}

static void end_of_day(struct audit_index_check *c)
{
    struct stat st;
    while (c->have) { /* records that came after this moment have entries, too */
        if (fstat(c->log, &st) == 0 && c->entry.offset >= (uint64_t)st.st_size)
            wrong(c, "it points behind the end of the log");
        c->seq = c->entry.seq;
        advance(c);
    }
    if (c->missing > AUDIT_INDEX_WAITING) /* so many entries at the end may still wait in memory */
        c->verdict->index_missing += c->missing;
    c->missing = 0;
    if (c->day)
        fd_close(c->reader.fd);
}

struct audit_index_check *audit_index_check_new(int seal, struct audit_verdict *verdict)
{
    struct audit_index_check *c = calloc(1, sizeof *c);
    if (c) {
        c->seal = seal;
        c->verdict = verdict;
    }
    return c;
}

void audit_index_check_record(struct audit_index_check *c, const struct audit_file *f,
                              const struct audit_step *s, uint64_t offset)
{
    if (c->day != f->day) {
        end_of_day(c);
        c->day = f->day;
        c->log = f->fd;
        c->gap = false;
        c->newest_ms = 0;
        c->have = audit_index_open(&c->reader, c->seal, f->day);
        c->seq = s->seq - 1;
        if (c->have)
            advance(c);
    }
    c->newest_ms = s->ts > c->newest_ms ? s->ts : c->newest_ms;
    c->seq = s->seq;
    if (!c->have || c->entry.seq > s->seq) {
        c->missing++;
        c->gap = true;
        return;
    }
    c->verdict->index_missing += c->missing;
    c->missing = 0;
    const struct audit_entry *e = &c->entry;
    if (e->offset != offset)
        wrong(c, "it points elsewhere than to its record");
    else if (e->key != audit_index_key_of_line(s->text, s->len))
        wrong(c, "it names another execution than its record");
    else if (e->newest_ms < s->ts || e->newest_ms > c->newest_ms ||
             (!c->gap && e->newest_ms != c->newest_ms))
        wrong(c, "its time is not the newest of the records up to it");
    advance(c);
}

void audit_index_check_free(struct audit_index_check *c)
{
    if (c)
        end_of_day(c);
    free(c);
}
