/* SPDX-License-Identifier: Apache-2.0 */
/* A log of 10,000 records over five days; each kind of edit at random places. Verify must fail each time, and name
 * the record. Whoever edits has everything but the key: the chain is computed anew where that helps. */
#include "audit/inside.h"
#include "audit/read.h"
#include "audit/test_folder.h"
#include "base/tap.h"

#include <nettle/sha2.h>
#include <sys/stat.h>

#define RECORDS 10000
#define DAYS    5
#define TRIES   12

static struct folder folder;
static struct {
    char name[AUDIT_NAME_MAX];
    char *data; /* as it was written */
    size_t len, lines, first;
    size_t *at; /* where each line begins, and where the last one ends */
} days[DAYS];

static uint64_t seed = 20261115;
static size_t below(size_t n)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (size_t)(seed >> 33) % n;
}

static void path_of(int day, char out[400])
{
    snprintf(out, 400, "%s/audit/%.20s", folder.path, days[day].name);
}

static bool put_file(int day, const char *data, size_t len)
{
    char path[400];
    path_of(day, path);
    FILE *f = fopen(path, "we");
    bool fine = f && fwrite(data, 1, len, f) == len;
    return f && fclose(f) == 0 && fine;
}

static bool restore(int day)
{
    return put_file(day, days[day].data, days[day].len);
}

static bool make_log(void)
{
    struct audit_config c;
    struct err err = ERR_INIT;
    audit_config_init(&c);
    c.sync = AUDIT_SYNC_OFF;
    struct audit *a = folder_open(&folder, &c);
    for (size_t day = 0; a && day < DAYS; day++, folder.now += FOLDER_DAY) {
        audit_day_name(audit_day_of(folder.now), days[day].name);
        for (size_t i = 0; i < RECORDS / DAYS / 10; i++) {
            struct audit_item items[10] = {0};
            char id[10][24];
            for (size_t k = 0; k < 10; k++) {
                snprintf(id[k], sizeof id[k], "run-%zu-%zu", day, i * 10 + k);
                items[k] = (struct audit_item){
                    AUDIT_TOOL, {.execution_id = id[k], .client_id = "uid:1000", .tool = "run"}};
            }
            if (audit_events(a, items, 10, &err) < 0)
                return false;
        }
    }
    audit_close(a);
    size_t seq = 1;
    for (int day = 0; day < DAYS; day++) {
        char path[400];
        struct stat st;
        path_of(day, path);
        FILE *f = fopen(path, "re");
        if (!f || fstat(fileno(f), &st) < 0)
            return false;
        days[day].len = (size_t)st.st_size;
        days[day].data = malloc(days[day].len);
        days[day].at = calloc(RECORDS, sizeof(size_t));
        if (!days[day].data || fread(days[day].data, 1, days[day].len, f) != days[day].len)
            return false;
        fclose(f);
        days[day].first = seq;
        for (size_t i = 0; i < days[day].len; i++)
            if (days[day].data[i] == '\n')
                days[day].at[++days[day].lines] = i + 1;
        seq += days[day].lines;
    }
    return seq == RECORDS + 1;
}

/* Verify fails and names record SEQ in the day's file. */
static bool found(uint64_t seq)
{
    struct audit_verdict v;
    struct err err = ERR_INIT;
    if (audit_verify(folder.path, NULL, &v, &err) < 0) {
        printf("# verify: %s\n", err.msg);
        return false;
    }
    if (v.good || v.bad_seq != seq)
        printf("# wanted record %llu, got %s %llu (%s:%llu: %s)\n", (unsigned long long)seq,
               v.good ? "good" : "bad", (unsigned long long)v.bad_seq, v.bad_file,
               (unsigned long long)v.bad_line, v.why);
    return !v.good && v.bad_seq == seq;
}

/* The chain from line I of a day's text on, computed anew; the signatures cannot be. */
static void rechain(char *text, const size_t *at, size_t from, size_t lines, const char *prev_hex)
{
    char prev[65];
    memcpy(prev, prev_hex, 65);
    for (size_t i = from; i < lines; i++) {
        char *line = text + at[i], *hash = text + at[i + 1] - 1 - 2 - 64 - 11 - 64;
        struct sha256_ctx sha;
        uint8_t digest[32];
        char *p = strstr(line, "\"prev\": \"");
        memcpy(p + 9, prev, 64);
        sha256_init(&sha);
        sha256_update(&sha, (size_t)(hash - 11 - line), (const uint8_t *)line);
        sha256_digest(&sha, 32, digest);
        audit_hex(digest, 32, prev);
        memcpy(hash, prev, 64);
    }
}

enum edit {
    EDIT,
    REMOVE,
    SWAP,
    INSERT_COPY,
    INSERT_TEXT,
    CUT_LINE,
    SHORTEN,
    RECHAIN,
    DUPLICATE,
    EMPTY,
    EDITS
};
static const char *const edit_names[EDITS] = {"one byte changed",
                                              "one record removed",
                                              "two records swapped",
                                              "a record of another folder inserted",
                                              "a made-up line inserted",
                                              "a record cut short",
                                              "the rest of the file cut off",
                                              "an edit with the chain computed anew",
                                              "a record doubled",
                                              "an empty line inserted"};

/* Applies one edit at a random folder of a random day; returns the number that verify must name. */
static uint64_t apply(enum edit kind, int day)
{
    size_t n = days[day].lines, i = below(n - 1),
           *at = days[day].at; /* never the last line of a day: see the tail tests */
    char *new = malloc(days[day].len * 2), *old = days[day].data;
    size_t len = 0;
    uint64_t seq = days[day].first + i;
#define ADD(from, to) (memcpy(new + len, old + (from), (to) - (from)), len += (to) - (from))
    switch (kind) {
    case EDIT:
        ADD(0, days[day].len);
        {
            size_t where = at[i] + below(at[i + 1] - at[i] - 1);
            char c = (char)(32 + below(95));
            new[where] = c == new[where] ? (char)(c == '~' ? '!' : c + 1) : c;
        }
        break;
    case REMOVE:
        ADD(0, at[i]), ADD(at[i + 1], days[day].len);
        break;
    case SWAP:
        ADD(0, at[i]), ADD(at[i + 1], at[i + 2]), ADD(at[i], at[i + 1]),
            ADD(at[i + 2], days[day].len);
        break;
    case INSERT_COPY: {
        size_t other = below(n);
        ADD(0, at[i]), ADD(at[other], at[other + 1]), ADD(at[i], days[day].len);
        seq += other == i; /* its copy stands first */
        break;
    }
    case INSERT_TEXT:
        ADD(0, at[i]);
        len += (size_t)sprintf(new + len, "{\"seq\": %llu, \"kind\": \"end\"}\n",
                               (unsigned long long)seq);
        ADD(at[i], days[day].len);
        break;
    case CUT_LINE:
        ADD(0, at[i] + 1 + below(at[i + 1] - at[i] - 2));
        new[len++] = '\n';
        ADD(at[i + 1], days[day].len);
        break;
    case SHORTEN:
        ADD(0, at[i] + (below(2) ? 0 : below(at[i + 1] - at[i] - 1)));
        break;
    case RECHAIN: {
        char prev[65], *hit;
        ADD(0, days[day].len);
        new[len] = 0;
        hit = strstr(new + at[i], "uid:1000");
        hit[4] = '2';
        snprintf(prev, sizeof prev, "%.64s", strstr(new + at[i], "\"prev\": \"") + 9);
        rechain(new, at, i, n, prev);
        break;
    }
    case DUPLICATE:
        ADD(0, at[i + 1]), ADD(at[i], days[day].len);
        seq++;
        break;
    case EMPTY:
        ADD(0, at[i]);
        new[len++] = '\n';
        ADD(at[i], days[day].len);
        break;
    default:
        break;
    }
#undef ADD
    if (!put_file(day, new, len))
        printf("# cannot write\n");
    free(new);
    return seq;
}

static void anywhere(void)
{
    for (int kind = 0; kind < EDITS; kind++) {
        int seen = 0;
        for (int i = 0; i < TRIES; i++) {
            int day = (int)below(DAYS);
            seen += found(apply((enum edit)kind, day));
            if (!restore(day))
                break;
        }
        tap_eq_int(seen, TRIES, "%s: found by its number, %d times", edit_names[kind], TRIES);
    }
}

static void whole_days(void)
{
    char path[400], away[420];
    for (int day = 0; day < DAYS; day++) {
        path_of(day, path);
        snprintf(away, sizeof away, "%s.away", path);
        tap_ok(rename(path, away) == 0 && found(days[day].first), "a missing day: %s",
               days[day].name);
        rename(away, path);
        tap_ok(put_file(day, "", 0) && found(days[day].first), "an emptied day: %s",
               days[day].name);
        restore(day);
    }
    char other[400];
    path_of(1, path);
    path_of(2, other);
    snprintf(away, sizeof away, "%s.away", path);
    tap_ok(rename(path, away) == 0 && rename(other, path) == 0 && rename(away, other) == 0,
           "two days change names");
    struct audit_verdict v;
    struct err err = ERR_INIT;
    tap_ok(audit_verify(folder.path, NULL, &v, &err) == 0 && v.good,
           "two days that changed names still verify: records have numbers");
    rename(path, away), rename(other, path), rename(away, other);
    snprintf(other, sizeof other, "%s/audit/2027-01-01.jsonl", folder.path);
    FILE *f = fopen(other, "we");
    fputs("{\"seq\": 10001, \"kind\": \"end\"}\n", f);
    fclose(f);
    chmod(other, 0600);
    tap_ok(found(RECORDS + 1), "a day that was never written");
    unlink(other);
}

static void tail(void)
{
    const int last = DAYS - 1;
    size_t n = days[last].lines, *at = days[last].at;
    tap_ok(put_file(last, days[last].data, at[n - 1]) && found(RECORDS), "the last record removed");
    tap_ok(put_file(last, days[last].data, at[n] - 1) && found(RECORDS),
           "the last record's newline removed");
    tap_ok(put_file(last, days[last].data, at[n - 1] + 5) && found(RECORDS),
           "the last record cut short");
    tap_ok(put_file(last, days[last].data, at[n - 100]) && found(RECORDS - 99),
           "a hundred records removed");
    char *longer = malloc(days[last].len + 4096);
    memcpy(longer, days[last].data, days[last].len);
    size_t line = at[n] - at[n - 1];
    memcpy(longer + days[last].len, days[last].data + at[n - 1], line);
    tap_ok(put_file(last, longer, days[last].len + line) && found(RECORDS + 1),
           "the last record doubled");
    /* the next record, chained as it must be, signed by nobody */
    char *new = longer + days[last].len, number[32], prev[65];
    snprintf(number, sizeof number, "{\"seq\": %d, ", RECORDS + 1);
    memcpy(new, number, strlen(number));
    snprintf(prev, sizeof prev, "%.64s", days[last].data + days[last].len - 1 - 2 - 64 - 11 - 64);
    const size_t starts[2] = {days[last].len, days[last].len + line};
    longer[days[last].len + line] = 0;
    rechain(longer, starts, 0, 1, prev);
    tap_ok(put_file(last, longer, days[last].len + line) && found(RECORDS + 1),
           "a record added by somebody without the key");
    free(longer);
    restore(last);
}

static void seals(void)
{
    struct audit_verdict v;
    struct err err = ERR_INIT;
    char path[400], away[420];
    snprintf(path, sizeof path, "%s/seal/head", folder.path);
    snprintf(away, sizeof away, "%s.away", path);
    FILE *f = fopen(path, "re");
    char head[2048];
    size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    tap_ok(f && n >= 1024, "the head of the log is read");
    fclose(f);
    struct {
        const char *what;
        size_t at;
    } rows[] = {{"sequence number", 16}, {"generation", 8}, {"end", 40}};
    for (size_t i = 0; i < 3; i++) {
        char bad[2048];
        memcpy(bad, head, n);
        for (size_t slot = 0; slot < n; slot += 512)
            bad[slot + rows[i].at] ^= 1;
        f = fopen(path, "we");
        fwrite(bad, 1, n, f);
        fclose(f);
        chmod(path, 0600);
        tap_ok(audit_verify(folder.path, NULL, &v, &err) == 0 && !v.good && strstr(v.why, "head"),
               "a head with another %s: %s", rows[i].what, v.why);
    }
    f = fopen(path, "we");
    fwrite(head, 1, n, f);
    fclose(f);
    tap_ok(audit_verify(folder.path, NULL, &v, &err) == 0 && v.good && v.records == RECORDS,
           "a log whose records are put back verifies");
}

/* A writer that comes after the edit goes on, and says so; verify fails all the same. */
static void afterwards(void)
{
    const int last = DAYS - 1;
    size_t n = days[last].lines, *at = days[last].at;
    struct err err = ERR_INIT;
    folder.now -= FOLDER_DAY;
    tap_ok(put_file(last, days[last].data, at[n - 3]),
           "three records are cut off the end of the log");
    struct audit *a = folder_open(&folder, NULL);
    tap_ok(a && audit_event(a, AUDIT_TOOL, &(struct audit_facts){.tool = "t"}, &err) == 0,
           "a writer goes on behind records that were cut off: %s", err.msg);
    tap_ok(found(RECORDS - 2), "a writer that goes on does not hide that records were cut off");
    char path[400];
    path_of(last, path);
    FILE *f = fopen(path, "ae");
    fputs("{\"a line\": \"of somebody\"}\n", f);
    fclose(f);
    tap_ok(audit_event(a, AUDIT_TOOL, &(struct audit_facts){.tool = "t"}, &err) == 0,
           "lines of somebody else in the log are found: %s", err.msg);
    tap_ok(unlink(path) == 0 &&
               audit_event(a, AUDIT_TOOL, &(struct audit_facts){.tool = "t"}, &err) == 0,
           "a file that is taken away while a writer has it open is found: %s", err.msg);
    tap_ok(access(path, F_OK) == 0 && found(days[last].first),
           "a day's file that was removed is begun again, and verify reports the lost records");
    audit_close(a);
}

/* ---- the head itself ---- */

static bool change_head(const struct folder *p, int how)
{
    static const char zeros[AUDIT_HEAD_FILE];
    char path[400];
    snprintf(path, sizeof path, "%s/seal/head", p->path);
    if (how != 0)
        return (how == 1 ? unlink(path) : truncate(path, 0)) == 0;
    FILE *f = fopen(path, "r+e");
    bool fine = f && fwrite(zeros, 1, sizeof zeros, f) == sizeof zeros;
    return f && fclose(f) == 0 && fine;
}

static void lost_heads(void)
{
    static const char *const hows[] = {"filled with zeros", "removed", "emptied"};
    for (int how = 0; how < 3; how++) {
        struct folder own;
        struct audit_verdict v;
        struct err err = ERR_INIT;
        const struct audit_facts f = {.tool = "t"};
        if (!tap_ok(folder_make(&own), "a log of its own is begun"))
            return;
        struct audit *a = folder_open(&own, NULL);
        for (int i = 0; i < 5; i++)
            tap_eq_int(audit_event(a, AUDIT_TOOL, &f, &err), 0, "record %d", i + 1);
        tap_ok(change_head(&own, how), "the head is %s", hows[how]);
        if (how == 1)
            tap_ok(audit_event(a, AUDIT_TOOL, &f, &err) == ERR_STATE &&
                       strstr(err.msg, "seal/head"),
                   "a writer that had the log open writes no more: %s", err.msg);
        audit_close(a);
        tap_ok(audit_verify(own.path, NULL, &v, &err) == 0 && !v.good &&
                   strcmp(v.bad_file, "seal/head") == 0,
               "a head that was %s is found by its name: %s (%s)", hows[how], v.bad_file, v.why);
        a = folder_open(&own, NULL);
        tap_ok(a && audit_event(a, AUDIT_TOOL, &f, &err) == 0, "the next writer goes on: %s",
               err.msg);
        tap_eq_int((long long)audit_last_seq(a), 7,
                   "the next writer writes a record of its own first, and numbers go on");
        audit_close(a);
        tap_ok(audit_verify(own.path, NULL, &v, &err) == 0 && !v.good && v.bad_seq == 6 &&
                   strstr(v.why, "tampered"),
               "record 6 says that the log was tampered with: %s", v.why);
        tap_ok(folder_remove(&own), "the folder of the log is removed");
    }
    struct folder own;
    struct audit_verdict v;
    struct err err = ERR_INIT;
    char path[400];
    if (!folder_make(&own))
        return;
    struct audit *a = folder_open(&own, NULL);
    tap_eq_int(audit_event(a, AUDIT_TOOL, &(struct audit_facts){.tool = "t"}, &err), 0,
               "a record is written before the key is removed");
    audit_close(a);
    snprintf(path, sizeof path, "%s/seal/key", own.path);
    tap_ok(unlink(path) == 0 && audit_verify(own.path, NULL, &v, &err) == ERR_STATE &&
               strstr(err.msg, "seal/key"),
           "a key that was removed is found by its name: %s", err.msg);
    tap_ok(folder_remove(&own), "the folder of the log is removed");
}

int main(void)
{
    if (!tap_ok(folder_make(&folder) && make_log(), "a log of %d records over %d days", RECORDS,
                DAYS))
        return tap_done();
    struct audit_verdict v;
    struct err err = ERR_INIT;
    tap_ok(audit_verify(folder.path, NULL, &v, &err) == 0 && v.good && v.records == RECORDS &&
               v.files == DAYS,
           "verify passes: %s", v.why);
    anywhere();
    whole_days();
    tail();
    seals();
    afterwards();
    lost_heads();
    for (int i = 0; i < DAYS; i++) {
        free(days[i].data);
        free(days[i].at);
    }
    tap_ok(folder_remove(&folder), "the folder of the log is removed");
    return tap_done();
}
