/* SPDX-License-Identifier: Apache-2.0 */
/* The index against the log itself: whatever is done to it, `since` and `find` give exactly the records that reading
 * everything gives, also where the clock was set back; and where it is whole, they read little. What is read is counted
 * by the kernel (/proc/self/io). */
#include "audit/index.h"
#include "audit/read.h"
#include "audit/test_folder.h"
#include "base/tap.h"

#include <sys/stat.h>

#define RECORDS 3000
#define IDS     200
#define TRIES   25

static struct folder folder;
static struct {
    uint64_t ts;
    int id;
} all[2 * RECORDS];
static size_t count; /* of `all`, by number */
static uint64_t number = 20261115;

static size_t below(size_t n)
{
    number = number * 6364136223846793005ULL + 1442695040888963407ULL;
    return (size_t)(number >> 33) % n;
}

/* Time goes on, now and then jumps ahead, and is set back. */
static void turn_clock(void)
{
    size_t what = below(1000);
    folder.now += below(20);
    if (what == 0)
        folder.now += 3600000 * below(12);
    else if (what == 1)
        folder.now -= 3600000 * below(6);
    else if (what == 2)
        folder.now -= below(2000);
}

static bool make_log(size_t records)
{
    struct audit_config c;
    struct err err = ERR_INIT;
    audit_config_init(&c);
    c.sync = AUDIT_SYNC_OFF;
    struct audit *a = folder_open(&folder, &c);
    for (size_t i = 0; a && i < records; i++) {
        char id[24];
        snprintf(id, sizeof id, "run-\\%zu\"", below(IDS)); /* to be escaped */
        const struct audit_facts f = {.execution_id = below(10) ? id : NULL, .tool = "t"};
        if (audit_event(a, AUDIT_TOOL, &f, &err) < 0)
            return false;
        turn_clock();
        if (below(1500) == 0) { /* and another process goes on */
            audit_close(a);
            a = folder_open(&folder, &c);
        }
    }
    audit_close(a);
    return a != NULL;
}

static int id_of(const struct audit_step *s)
{
    const char *text;
    size_t len;
    int id = -1;
    if (audit_line_member(s->text, s->len, "execution_id", &text, &len) && *text == '"' &&
        sscanf(text, "\"run-\\\\%d", &id) != 1)
        id = -2;
    return id;
}

/* By reading everything, in order, without any index. */
static bool read_all(void)
{
    struct audit_walk *w;
    struct audit_step s;
    struct err err = ERR_INIT;
    count = 0;
    if (audit_walk_new(folder.path, &w, &err) < 0)
        return false;
    while (audit_walk_next(w, &s, &err) == 1 && !s.wrong && s.seq < 2 * RECORDS) {
        all[s.seq].ts = s.ts;
        all[s.seq].id = id_of(&s);
        count = s.seq;
    }
    audit_walk_free(w);
    return count > 0;
}

static uint64_t bytes_read(void)
{
    char text[512];
    int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return strtoull(text + strlen("rchar: "), NULL, 10);
}

/* Whether the records that come and are wanted are exactly those from `all`. */
static bool agrees(struct audit_walk *w, uint64_t ms, int id)
{
    struct audit_step s;
    struct err err = ERR_INIT;
    uint64_t want = 1;
    bool good = true;
    while (good && audit_walk_next(w, &s, &err) == 1) {
        good = !s.wrong;
        if (s.ts < ms || (id >= 0 && id_of(&s) != id))
            continue;
        while (want <= count && (all[want].ts < ms || (id >= 0 && all[want].id != id)))
            want++;
        if (want != s.seq)
            printf("# record %llu came, %llu was due\n", (unsigned long long)s.seq,
                   (unsigned long long)want);
        good = good && want++ == s.seq;
    }
    while (want <= count && (all[want].ts < ms || (id >= 0 && all[want].id != id)))
        want++;
    return good && want > count;
}

static bool since_agrees(uint64_t ms)
{
    struct audit_walk *w;
    struct err err = ERR_INIT;
    if (audit_walk_new(folder.path, &w, &err) < 0)
        return false;
    audit_walk_since(w, ms);
    bool good = agrees(w, ms, -1);
    audit_walk_free(w);
    return good;
}

static bool find_agrees(int id)
{
    char text[24];
    struct audit_walk *w;
    struct err err = ERR_INIT;
    if (audit_walk_new(folder.path, &w, &err) < 0)
        return false;
    snprintf(text, sizeof text, "run-\\%d\"", id);
    audit_walk_find(w, text);
    bool good = agrees(w, 0, id);
    audit_walk_free(w);
    return good;
}

static void try_all(const char *what)
{
    int since = 0, find = 0;
    for (int i = 0; i < TRIES; i++) {
        since += since_agrees(all[1 + below(count)].ts + below(3));
        find += find_agrees((int)below(IDS + 5));
    }
    tap_eq_int(since, TRIES, "%s: records since a moment are exactly those of the log", what);
    tap_eq_int(find, TRIES, "%s: records of an execution are exactly those of the log", what);
}

/* ---- damage ---- */

static bool index_files(void (*act)(int fd, off_t size))
{
    char path[400], name[AUDIT_NAME_MAX];
    bool any = false;
    for (uint32_t day = audit_day_of(1794744000000ULL) - 5; day < 20261131; day++) {
        audit_index_name(day, name);
        snprintf(path, sizeof path, "%s/seal/%s", folder.path, name);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        struct stat st;
        if (fd < 0 || fstat(fd, &st) < 0)
            continue;
        any = true;
        if (act)
            act(fd, st.st_size);
        else
            unlink(path);
        close(fd);
    }
    return any;
}

static void zero_middle(int fd, off_t size)
{
    static const char zeros[64 * 32];
    off_t at = size / 2 / 32 * 32;
    (void)!pwrite(fd, zeros,
                  (size_t)(size - at) < sizeof zeros ? (size_t)(size - at) : sizeof zeros, at);
}

static void double_some(int fd, off_t size)
{
    char entries[8 * 32];
    if (size >= (off_t)sizeof entries &&
        pread(fd, entries, sizeof entries, size - (off_t)sizeof entries) > 0)
        (void)!pwrite(fd, entries, sizeof entries, size);
}

static void shuffle(int fd, off_t size)
{
    for (int i = 0; i < 20; i++) {
        uint64_t junk[4] = {below(1 << 30), below(1 << 30), below(1 << 30), below(1 << 30)};
        (void)!pwrite(fd, junk, sizeof junk, (off_t)below((size_t)size / 32) * 32);
    }
}

static void cut(int fd, off_t size)
{
    (void)!ftruncate(fd, size / 2 + 7);
}

/* ---- entries that somebody forged: their check is right ---- */

static void put(int fd, off_t n, struct audit_entry *e)
{
    e->check = audit_index_entry_check(e);
    (void)!pwrite(fd, e, sizeof *e, n * (off_t)sizeof *e);
}

/* Some entries, in any order, and always the first, the last and one beside it. */
static void forge(int fd, off_t size, void (*how)(struct audit_entry *e))
{
    const off_t n = size / (off_t)sizeof(struct audit_entry);
    for (off_t i = 0; i < 40 && n > 2; i++) {
        off_t at = i == 0 ? 0 : i == 1 ? n - 1 : i == 2 ? n - 2 : (off_t)below((size_t)n);
        struct audit_entry e;
        if (pread(fd, &e, sizeof e, at * (off_t)sizeof e) != sizeof e)
            continue;
        how(&e);
        put(fd, at, &e);
    }
}

static void beyond(struct audit_entry *e)
{
    e->offset += 1ULL << (20 + below(43));
}

static void inside_record(struct audit_entry *e)
{
    e->offset += 1 + below(60);
}

static void to_the_first(struct audit_entry *e)
{
    e->offset = 0;
}

static void to_the_record_before(struct audit_entry *e)
{
    e->offset -= e->offset < 300 ? 0 : 300;
}

static void point_beyond(int fd, off_t size)
{
    forge(fd, size, beyond);
}

static void point_inside(int fd, off_t size)
{
    forge(fd, size, inside_record);
}

static void point_to_first(int fd, off_t size)
{
    forge(fd, size, to_the_first);
}

static void point_before(int fd, off_t size)
{
    forge(fd, size, to_the_record_before);
}

/* Only one entry: what `verify` names is that one. */
static void other_execution(int fd, off_t size)
{
    struct audit_entry e;
    if (size >= 100 * (off_t)sizeof e && pread(fd, &e, sizeof e, 7 * sizeof e) == sizeof e) {
        e.key ^= 1;
        put(fd, 7, &e);
    }
}

static void other_time(int fd, off_t size)
{
    struct audit_entry e;
    if (size >= 100 * (off_t)sizeof e && pread(fd, &e, sizeof e, 7 * sizeof e) == sizeof e) {
        e.newest_ms += 1;
        put(fd, 7, &e);
    }
}

static void flip(int fd, off_t size)
{
    uint8_t byte;
    off_t at = 7 * 32 + (off_t)below(32);
    if (size >= 100 * 32 && pread(fd, &byte, 1, at) == 1) {
        byte ^= (uint8_t)(1 << below(8));
        (void)!pwrite(fd, &byte, 1, at);
    }
}

static void lose_tail(int fd, off_t size)
{
    (void)!ftruncate(fd, size / 2 / 32 * 32);
}

static bool remake(void)
{
    return folder_remove(&folder) && folder_make(&folder) && make_log(RECORDS / 2) && read_all();
}

static void test_forged(void)
{
    static const struct {
        const char *what;
        void (*act)(int fd, off_t size);
    } forgeries[] = {
        {"entries that point beyond the log", point_beyond},
        {"entries that point into the middle of a record", point_inside},
        {"entries that all point to the first record", point_to_first},
        {"entries that point back", point_before},
    };
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        tap_ok(remake() && index_files(forgeries[i].act), "a log with %s", forgeries[i].what);
        try_all(forgeries[i].what);
    }
}

static void test_verify(void)
{
    static const struct {
        const char *what, *why;
        void (*act)(int fd, off_t size);
        uint64_t entry; /* 0: whichever */
    } faults[] = {
        {"a changed offset", "points", point_inside, 0},
        {"an offset beyond the log", "points", point_beyond, 0},
        {"another execution", "another execution", other_execution, 8},
        {"another time", "time", other_time, 8},
        {"one flipped bit", "damaged", flip, 8},
        {"random entries", "damaged", shuffle, 0},
    };
    struct audit_verdict v;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        tap_ok(remake() && audit_verify(folder.path, NULL, &v, &err) == 0 && v.good &&
                   v.index_wrong == 0 && v.index_missing == 0,
               "verify finds nothing wrong in an index as it was written: %s", v.index_why);
        index_files(faults[i].act);
        bool named = audit_verify(folder.path, NULL, &v, &err) == 0 && v.good && v.index_wrong &&
                     strstr(v.index_why, faults[i].why) && strstr(v.index_file, ".index") &&
                     (!faults[i].entry || v.index_entry == faults[i].entry);
        tap_ok(named, "verify names %s, and the log stays good: %s, entry %llu: %s", faults[i].what,
               v.index_file, (unsigned long long)v.index_entry, v.index_why);
    }
    tap_ok(remake() && index_files(lose_tail) && audit_verify(folder.path, NULL, &v, &err) == 0 &&
               v.good && v.index_wrong == 0 && v.index_missing > 100,
           "verify counts %llu records that lost their entry", (unsigned long long)v.index_missing);
}

/* Writers that cannot open the index leave what waits there to the next one that can. */
static void test_without_rights(void)
{
    static const int with[] = {40, 1, 30, 1, 40}, without[] = {0, 25, 0, 15, 0};
    struct audit_verdict v;
    struct err err = ERR_INIT;
    bool fine = folder_remove(&folder) && folder_make(&folder);
    for (size_t i = 0; fine && i < sizeof with / sizeof *with; i++) {
        struct audit *a = folder_open(&folder, NULL);
        for (int k = 0; fine && k < with[i] + without[i]; k++) {
            folder_rights(&folder, k < with[i]);
            fine = a && audit_event(a, AUDIT_TOOL, &(struct audit_facts){.tool = "t"}, &err) == 0;
        }
        folder_rights(&folder, true);
        audit_close(a);
    }
    tap_ok(fine, "writers with and without the right to open the index take turns: %s", err.msg);
    fine = audit_verify(folder.path, NULL, &v, &err) == 0 && v.good;
    tap_ok(fine && v.index_missing == 0 && v.index_wrong == 0,
           "no record lacks its entry after writers that could not open the index: %llu do %s",
           (unsigned long long)v.index_missing, v.index_why);
}

/* ---- what it costs ---- */

static void test_cost(void)
{
    struct audit_walk *w;
    struct audit_step s;
    struct err err = ERR_INIT;
    uint64_t before = bytes_read();
    read_all();
    uint64_t whole = bytes_read() - before;
    folder.now += 10 * FOLDER_DAY; /* beyond every jump */
    uint64_t moment = folder.now;
    struct audit *a = folder_open(&folder, NULL);
    for (int i = 0; i < 3; i++)
        tap_eq_int(audit_event(a, AUDIT_TOOL, &(struct audit_facts){.execution_id = "rare"}, &err),
                   0, "one more record is written");
    audit_close(a);
    before = bytes_read();
    tap_eq_int(audit_walk_new(folder.path, &w, &err), 0, "records since the last moment are found");
    audit_walk_since(w, moment);
    int seen = 0;
    while (audit_walk_next(w, &s, &err) == 1)
        seen++;
    audit_walk_free(w);
    uint64_t since = bytes_read() - before;
    tap_ok(seen == 3 && since < whole / 20,
           "three records of %zu are found by reading %llu of %llu bytes", count,
           (unsigned long long)since, (unsigned long long)whole);
    before = bytes_read();
    tap_eq_int(audit_walk_new(folder.path, &w, &err), 0,
               "a walk for the records of one execution opens");
    audit_walk_find(w, "rare");
    for (seen = 0; audit_walk_next(w, &s, &err) == 1; seen++)
        ;
    audit_walk_free(w);
    uint64_t find = bytes_read() - before;
    tap_ok(seen == 3 && find < whole / 8,
           "three records of one execution are found by reading %llu bytes: an index entry is 32",
           (unsigned long long)find);
}

int main(void)
{
    if (!tap_ok(folder_make(&folder) && make_log(RECORDS / 2) && read_all(),
                "a log of half the records"))
        return tap_done();
    try_all("the index of half the records is whole");
    tap_ok(index_files(shuffle), "entries are overwritten with random numbers");
    try_all("random entries in a whole index");
    tap_ok(index_files(NULL) && folder_remove(&folder) && folder_make(&folder) &&
               make_log(RECORDS / 2) && read_all(),
           "a new log is begun");
    tap_ok(index_files(zero_middle), "the middle of each index is zeroed");
    try_all("zeros in the index");
    tap_ok(index_files(double_some), "the last entries of each index stand there twice");
    try_all("doubled entries");
    tap_ok(make_log(RECORDS / 4) && read_all(), "writers go on behind doubled entries");
    try_all("a log that went on behind a damaged index");
    tap_ok(index_files(shuffle), "entries are overwritten with random numbers");
    try_all("random entries");
    tap_ok(index_files(cut), "each index is cut in half, inside an entry");
    try_all("half an index");
    tap_ok(make_log(RECORDS / 4) && read_all(), "writers go on behind half an index");
    try_all("a log that went on behind half an index");
    tap_ok(index_files(NULL) && !index_files(NULL), "each index is removed");
    try_all("no index");
    tap_ok(make_log(100) && read_all(), "writers begin a removed index anew");
    try_all("an index of the last records only");
    tap_ok(folder_remove(&folder) && folder_make(&folder) && make_log(RECORDS) && read_all(),
           "a new log is begun");
    test_cost();
    test_forged();
    test_verify();
    test_without_rights();
    tap_ok(remake(), "a new log is begun");
    struct audit_verdict v;
    struct err err = ERR_INIT;
    tap_ok(audit_verify(folder.path, NULL, &v, &err) == 0 && v.good, "verify passes: %s", v.why);
    tap_ok(folder_remove(&folder), "the folder of the log is removed");
    return tap_done();
}
