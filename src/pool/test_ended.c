/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of sessions from the holder to the audit, by way of a file. */
#include "base/tap.h"
#include "pool/ended.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct seen {
    int count, fail_at; /* fail_at: the record that cannot be written; 0: none */
    struct pool_ended last;
};

static int record(void *ctx, const struct pool_ended *e, struct err *err)
{
    struct seen *s = ctx;
    if (++s->count == s->fail_at)
        return err_set(err, ERR_STATE, "the disk is full");
    s->last = *e;
    return 0;
}

static int take(int dir, struct seen *s)
{
    struct err err = ERR_INIT;
    return pool_ended_take(dir, record, s, &err);
}

static void write_end(int dir, const char *name, const char *reason, bool rest)
{
    struct pool_ended e = {.ran_at_rest = rest};
    snprintf(e.name, sizeof e.name, "%s", name);
    snprintf(e.role, sizeof e.role, "execute");
    snprintf(e.reason, sizeof e.reason, "%s", reason);
    pool_ended_write(dir, &e);
}

static void there_and_back(int dir)
{
    struct seen s = {0};
    char longest[POOL_REASON + 1];
    memset(longest, 'r', POOL_REASON);
    longest[POOL_REASON] = 0;
    tap_ok(take(dir, &s) == 0 && s.count == 0,
           "where no session has ended there is nothing to record");
    write_end(dir, "one", "idle for 1800 s\n\tno field", false);
    tap_ok(take(dir, &s) == 0 && s.count == 1 && strcmp(s.last.name, "one") == 0 &&
               strcmp(s.last.role, "execute") == 0 && !s.last.ran_at_rest && s.last.ended_ms &&
               strcmp(s.last.reason, "idle for 1800 s  no field") == 0,
           "an end arrives with every field, and its reason in one line: %s", s.last.reason);
    tap_ok(take(dir, &s) == 0 && s.count == 1, "an end that was recorded is not handed out again");
    write_end(dir, "12345678901234567890123456789012", longest, true);
    tap_ok(take(dir, &s) == 0 && s.count == 2 && s.last.ran_at_rest &&
               strlen(s.last.reason) == POOL_REASON && strlen(s.last.name) == POOL_NAME,
           "an end with the longest name and reason fits");
}

static void not_recorded(int dir)
{
    struct seen s = {.fail_at = 2};
    write_end(dir, "one", "idle", false);
    write_end(dir, "two", "idle", false);
    tap_ok(take(dir, &s) == ERR_STATE && s.count == 2,
           "an end that cannot be recorded is an error");
    write_end(dir, "three", "idle", false);
    s = (struct seen){0};
    tap_ok(take(dir, &s) == 0 && s.count == 3 && strcmp(s.last.name, "three") == 0,
           "ends that could not be recorded stay for the next client, with those that came since");
}

static void two_clients(int dir)
{
    struct seen s = {.fail_at = 1};
    write_end(dir, "one", "idle", false);
    tap_ok(take(dir, &s) < 0, "a client takes the file of ends and does not come to its end");
    FD_AUTO other = openat(dir, "sessions-ended.taken", O_RDONLY | O_CLOEXEC);
    tap_ok(other >= 0 && flock(other, LOCK_EX) == 0, "another client that is at it is seen");
    s = (struct seen){0};
    tap_ok(take(dir, &s) == 0 && s.count == 0,
           "a third client leaves the file to the one that is at it");
    write_end(dir, "two", "idle", false);
    fd_close(fd_take(&other));
    tap_ok(take(dir, &s) == 0 && s.count == 2, "ends that the holder wrote meanwhile are not lost");
}

static void broken_lines(int dir)
{
    static const char lines[] = "\n\tone\n../up\tr\t0\t1\tx\none\tr\t0\nwhole\tr\t0\t1\tgood\n";
    struct seen s = {0};
    FD_AUTO fd = openat(dir, "sessions-ended", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    tap_ok(fd >= 0 && write(fd, lines, sizeof lines - 1) == sizeof lines - 1,
           "half lines are written into the file");
    tap_ok(take(dir, &s) == 0 && s.count == 1 && strcmp(s.last.name, "whole") == 0,
           "what is no line of the holder's is left out");
}

int main(void)
{
    char path[] = "/tmp/cordon-ended-XXXXXX";
    FD_AUTO dir = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    tap_ok(dir >= 0, "a folder for the file of ends is made");
    there_and_back(dir);
    not_recorded(dir);
    two_clients(dir);
    broken_lines(dir);
    tap_ok(rmdir(path) == 0, "no file is left in the folder of ends");
    return tap_done();
}
