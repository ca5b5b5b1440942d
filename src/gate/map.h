/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the state that is on the way of every run: one file, mapped by all who use it.
 *
 * Takes:   the state folder.
 * Gives:   tables of slots, clients, breakers, tasks and buckets, under one lock.
 * Never:   trusts a number in the file as an index without looking; waits for its lock without end.
 * Runs in: the supervisor. Not after fork: a lock belongs to the open file.
 */
#ifndef GATE_MAP_H
#define GATE_MAP_H

#include "base/err.h"
#include "gate/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GATE_ROWS = 256, /* executions that run or wait in the queue */
    GATE_CLIENTS = 128,
    GATE_BREAKERS = 256,
    GATE_TASKS = 512,
    GATE_BUCKETS = 32,
    GATE_COUNTERS_MAX = 32,
};

enum gate_row_state { /* the numbers are in the file */
                      GATE_ROW_FREE = 0,
                      GATE_ROW_WAITING = 1,
                      GATE_ROW_RUNNING = 2,
                      GATE_ROW_PARKED = 3, /* a person or the arena is asked: takes no slot */
};

/* One execution. Its owner holds a lock on the row's byte: the kernel drops it when the owner
 * is killed, so a row without a lock is free. */
struct gate_row {
    uint32_t state;  /* written last when a row is taken, first when it is given back */
    uint32_t bell;   /* futex: changes when the state does */
    uint32_t client; /* index */
    int32_t pid;
    uint64_t number;   /* of the ticket: never used twice */
    uint64_t since_ns; /* in this state */
    char run[40], tool[32];
    uint64_t counted;              /* it has had its turn of the rate: it was parked in between */
    uint64_t space;                /* the pid namespace in which `pid` means something */
    uint32_t most, most_of_client; /* at once, by the policy that it came with; most 0: not said */
};

struct gate_client_row {
    char id[64];
    uint64_t last_ns;
    uint64_t turn;   /* number of the last slot it was given: whose turn it is */
    uint64_t pushed; /* executions in all: the newest stamp is at (pushed - 1) % GATE_RATE_MAX */
    uint64_t steps;  /* since the last checkpoint of EVERY_N */
    uint64_t refused, refused_ns; /* refusals within the window, and when it began */
    uint64_t spare[10];
    uint64_t stamps[GATE_RATE_MAX];
};

struct gate_breaker_row {
    uint32_t state, failures;
    uint64_t error;     /* hash of the normalised error of the last failure */
    uint64_t last_ns;   /* when that was */
    uint64_t opened_ns; /* when it opened last */
    uint64_t probe;     /* ticket number of the probe */
    char tool[32], client[64], text[96];
    uint64_t spare[3];
};

struct gate_task_row {
    uint64_t key, count, last_ns;
};

struct gate_bucket_row {
    char name[48];
    uint64_t micro, last_ns; /* millionths of a token */
};

/* What a run writes lies in two pages: the first one, and its client's. */
struct gate_shared {
    char magic[16];
    char boot[40]; /* the kernel's id of this boot: times of another one mean nothing */
    uint32_t stopped;
    uint32_t answers; /* futex: changes when an approval was answered */
    uint64_t numbers; /* tickets and turns given out */
    uint64_t counters[GATE_COUNTERS_MAX];
    uint64_t stopped_at; /* seconds since 1970 */
    char stopped_by[96], stopped_why[240];
    uint32_t rows_high; /* rows from here on are free: a search ends here */
    uint32_t head_spare[87];
    uint64_t client_keys[GATE_CLIENTS]; /* hash of the id; 0: free */
    struct gate_row rows[GATE_ROWS];
    uint64_t breaker_keys[GATE_BREAKERS]; /* 0: free */
    struct gate_breaker_row breakers[GATE_BREAKERS];
    struct gate_task_row tasks[GATE_TASKS];
    struct gate_bucket_row buckets[GATE_BUCKETS];
    _Alignas(4096) struct gate_client_row clients[GATE_CLIENTS];
};

/* A handle: the map, its file, and which rows are ours (the kernel does not tell us of our own locks). */
struct gate_map {
    struct gate_shared *at;
    int dir, fd, stop_fd;
    bool locked;
    bool late;        /* the last wait for the lock timed out: the next is brief */
    bool readonly;    /* the folder is: what runs can be seen and told, nothing can be written */
    uint64_t lock_ms; /* how long to wait for the lock */
    uint64_t space;   /* our pid namespace */
    uint8_t mine[GATE_ROWS];
};

/* DIR stays the caller's and open. Makes the files at first use. READONLY: makes and writes nothing, and never locks. */
ERR_MUST_USE int gate_map_open(struct gate_map *m, int dir, bool readonly, uint64_t lock_ms,
                               struct err *err);
void gate_map_close(struct gate_map *m);
/* Whether the names still lead to what is open, and nobody said stop since. */
bool gate_map_is_current(const struct gate_map *m);

ERR_MUST_USE int gate_map_lock(struct gate_map *m, struct err *err);
ERR_MUST_USE int gate_map_lock_within(struct gate_map *m, uint64_t ms, struct err *err);
void gate_map_unlock(struct gate_map *m);

/* Under the lock. The row is ours and has a number; its state is still free. */
ERR_MUST_USE int gate_row_take(struct gate_map *m, uint32_t *ret_row, struct err *err);
void gate_row_free(struct gate_map *m, uint32_t row);
bool gate_row_alive(const struct gate_map *m, uint32_t row);
void gate_row_set(struct gate_map *m, uint32_t row, enum gate_row_state state, uint64_t now);
uint32_t gate_rows_high(const struct gate_shared *s);
unsigned gate_rows_reap(
    struct gate_map *m); /* frees the rows of processes that were killed; returns how many */

/* Sleeps while *WORD is SEEN, at most MS. */
void gate_bell_sleep(uint32_t *word, uint32_t seen, uint64_t ms);
void gate_bell_ring(uint32_t *word); /* changes it and wakes all */

/* The durable part of the stop flag: the file `stopped`, or, where there is no room for it, the mapped file itself. */
ERR_MUST_USE int gate_stop_keep(const struct gate_map *m, struct err *err);
ERR_MUST_USE int gate_stop_file_remove(int dir, struct err *err);

uint64_t gate_hash(const void *data, size_t len, uint64_t seed); /* never 0; not against an enemy */
uint64_t gate_boot_ns(void); /* monotonic, and goes on while the machine sleeps */

#define gate_load(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define gate_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

#endif
