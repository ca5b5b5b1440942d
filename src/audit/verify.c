/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on the whole log. Records are walked from the anchor (or from number 1) to the end, and the
 * end is held against the signed head: what a chain alone cannot show, that its last links are there.
 *
 * Three things at the end are a crash's and not a forger's, and are told without failing: signed records
 * that the head does not know yet, the beginning of a line, and, after a restart of the machine, records
 * that were never acknowledged (recover.c has the reasons). */
#include "audit/walk.h"

#include "audit/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void broken(struct audit_verdict *v, uint64_t seq, const char *file, uint64_t line,
                   const char *why)
{
    if (!v->good)
        return;
    v->good = false;
    v->bad_seq = seq;
    v->bad_line = line;
    snprintf(v->bad_file, sizeof v->bad_file, "%s", file);
    snprintf(v->why, sizeof v->why, "%s", why);
}

/* The head that counts (NULL: none is ours), and whether the machine was restarted since. */
static bool head_of(struct audit_walk *w, struct audit_head *now, struct audit_head *disk,
                    bool *ret_rebooted, struct err *err)
{
    struct audit_writer self;
    bool terminal, have = audit_head_pick(w->sets, &w->key, now);
    if (!audit_head_pick(w->sets + AUDIT_HEAD_SET, &w->key, disk))
        memset(disk, 0, sizeof *disk);
    else if (!have) {
        *now = *disk;
        have = true;
    }
    *ret_rebooted = have && audit_writer_self(&self, &terminal, err) == 0 &&
                    memcmp(self.boot, now->boot, AUDIT_BOOT) != 0;
    return have;
}

static void hold_against_head(struct audit_walk *w, struct audit_verdict *v,
                              const uint8_t at_head[AUDIT_HASH], const struct audit_head *now,
                              const struct audit_head *disk, bool rebooted)
{
    char why[200], file[AUDIT_FILE_MAX];
    uint64_t last = w->seq - 1;
    audit_day_name(now->day ? now->day : 19700101, file);
    if (now->seq > last) {
        /* what was acknowledged: synced, or promised without */
        uint64_t owed =
            rebooted ? (disk->seq > now->unsynced ? disk->seq : now->unsynced) : now->seq;
        if (last >= owed) {
            v->unsynced = now->seq - last;
            return;
        }
        snprintf(why, sizeof why, "the log ends with record %llu, the signed head knows %llu%s",
                 (unsigned long long)last, (unsigned long long)now->seq,
                 rebooted && now->unsynced > disk->seq
                     ? " (written with fsync off, and the machine was restarted)"
                     : "");
        broken(v, last + 1, file, 0, why);
        return;
    }
    if (now->seq && now->seq > w->anchor.seq && memcmp(at_head, now->last.hash, AUDIT_HASH) != 0)
        broken(v, now->seq, file, 0, "this record is not the one that the signed head knows");
    v->ahead = last - now->seq;
}

static void count_open(struct audit_verdict *v, const struct audit_step *s)
{
    const char *text;
    size_t len;
    if (s->kind == AUDIT_BEGIN)
        v->open_runs++;
    if ((s->kind == AUDIT_END || s->kind == AUDIT_LOST) && v->open_runs &&
        audit_line_member(s->text, s->len, "begin_seq", &text, &len) &&
        strtoull(text, NULL, 10) > v->removed)
        v->open_runs--;
}

static bool last_file(const struct audit_walk *w)
{
    for (size_t i = 0; i < w->files.count; i++)
        if (!w->files.items[i].done && w->files.items[i].size)
            return false;
    return true;
}

static void look_at(struct audit_walk *w, const struct audit_step *s, bool rebooted,
                    struct audit_verdict *v)
{
    if (s->wrong && w->torn_file && last_file(w) && (w->torn < AUDIT_RECORD_MAX || rebooted)) {
        v->torn_bytes = w->torn;
    } else if (s->wrong) {
        broken(v, s->seq, s->file, s->line, s->wrong);
    } else if (s->kind == AUDIT_TAMPERED) {
        broken(v, s->seq, s->file, s->line,
               "this record says that the log was tampered with before it");
    } else {
        v->records++;
        v->first_seq = v->first_seq ? v->first_seq : s->seq;
        v->last_seq = s->seq;
        count_open(v, s);
    }
}

static void hold_against_note(const struct audit_walk *w, struct audit_verdict *v,
                              const struct audit_noted *noted, bool seen)
{
    char why[200];
    if (seen || noted->seq <= w->anchor.seq) /* compared as it went by; or retention took it */
        return;
    snprintf(why, sizeof why, "the log ends with record %llu, but %llu was noted",
             (unsigned long long)(w->seq - 1), (unsigned long long)noted->seq);
    broken(v, w->seq, "audit/", 0, why);
}

int audit_verify(const char *state, const struct audit_noted *noted, struct audit_verdict *ret,
                 struct err *err)
{
    struct audit_walk *w;
    struct audit_head now, disk;
    struct audit_step s;
    uint8_t at_head[AUDIT_HASH] = {0};
    bool rebooted, seen = false;
    int r = audit_walk_new(state, &w, err);
    if (r < 0)
        return r;
    *ret = (struct audit_verdict){.good = true, .removed = w->anchor.seq};
    struct audit_index_check *index = audit_index_check_new(w->seal, ret);
    bool have = head_of(w, &now, &disk, &rebooted, err);
    if (w->anchor_bad)
        broken(ret, 1, "seal/anchor", 0, "the anchor of retention is not signed by our key");
    while (ret->good && (r = audit_walk_next(w, &s, err)) == 1) {
        look_at(w, &s, rebooted, ret);
        if (index && !s.wrong)
            audit_index_check_record(index, w->file, &s, w->line_at);
        if (have && !s.wrong && s.seq == now.seq)
            memcpy(at_head, w->prev, AUDIT_HASH);
        if (noted && !s.wrong && s.seq == noted->seq) {
            char hash[2 * AUDIT_HASH + 1];
            audit_hex(w->prev, AUDIT_HASH, hash);
            seen = true;
            if (strcmp(hash, noted->hash) != 0)
                broken(ret, s.seq, s.file, s.line, "it does not have the hash that was noted");
        }
    }
    ret->files = w->nfiles;
    audit_index_check_free(index);
    if (r >= 0 && ret->good && !have && (ret->records || w->anchor.seq))
        broken(ret, w->seq, "seal/head", 0, "the signed head is gone, or not signed by our key");
    if (r >= 0 && ret->good && have)
        hold_against_head(w, ret, at_head, &now, &disk, rebooted);
    if (r >= 0 && ret->good && noted)
        hold_against_note(w, ret, noted, seen);
    audit_hex(w->prev, AUDIT_HASH, ret->head);
    audit_walk_free(w);
    return r < 0 ? r : 0;
}
