/* SPDX-License-Identifier: Apache-2.0 */
/* A limit that makes no sense is refused here, by its option's name, before anything is built. */
#include "jail/spec.h"

#include "base/units.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void jail_spec_init(struct jail_spec *spec)
{
    *spec = (struct jail_spec){
        .inner_id = 1000,
        .cwd = "/workspace",
        .limits = {.wall_ms = LIMIT_WALL_MS,
                   .cpu_ms = LIMIT_CPU_MS,
                   .memory = LIMIT_MEMORY,
                   .descriptors = LIMIT_DESCRIPTORS,
                   .disk = LIMIT_DISK,
                   .inodes = LIMIT_INODES,
                   .processes = LIMIT_PROCESSES,
                   .threads = LIMIT_THREADS,
                   .output = LIMIT_OUTPUT,
                   .flood = LIMIT_OUTPUT * LIMIT_FLOOD_FACTOR},
    };
}

bool jail_bind_in_workspace(const struct jail_bind *b)
{
    const size_t n = strlen("/workspace");
    return strncmp(b->dest, "/workspace", n) == 0 && (b->dest[n] == '/' || !b->dest[n]);
}

static void count_text(uint64_t n, char out[UNITS_TEXT])
{
    snprintf(out, UNITS_TEXT, "%llu", (unsigned long long)n);
}

int jail_spec_check(const struct jail_spec *spec, struct err *err)
{
    const struct jail_limits *l = &spec->limits;
    const struct {
        const char *option;
        uint64_t value, least, most;
        void (*text)(uint64_t n, char out[UNITS_TEXT]);
    } rows[] = {
        {"--timeout", l->wall_ms, 1, LIMIT_WALL_MS_MAX, units_millis_text},
        {"--cpu", l->cpu_ms, 1, LIMIT_WALL_MS_MAX, units_millis_text},
        {"--memory", l->memory, LIMIT_MEMORY_MIN, LIMIT_MEMORY_MAX, units_bytes_text},
        {"--descriptors", l->descriptors, LIMIT_DESCRIPTORS_MIN, LIMIT_DESCRIPTORS_MAX, count_text},
        {"--disk", l->disk, LIMIT_DISK_MIN, LIMIT_DISK_MAX, units_bytes_text},
        {"--inodes", l->inodes, LIMIT_INODES_MIN, LIMIT_INODES_MAX, count_text},
        {"--processes", l->processes, 0, LIMIT_PROCESSES_MAX, count_text},
        {"--threads", l->threads, 0, LIMIT_THREADS_MAX, count_text},
        {"--output", l->output, 1, LIMIT_OUTPUT_MAX, units_bytes_text},
    };
    if (spec->kind == JAIL_KIND_TEMPLATE)
        return 0; /* its limits bind nobody: each child has its own */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value < rows[i].least || rows[i].value > rows[i].most) {
            char value[UNITS_TEXT], least[UNITS_TEXT], most[UNITS_TEXT];
            rows[i].text(rows[i].value, value);
            rows[i].text(rows[i].least, least);
            rows[i].text(rows[i].most, most);
            return err_set(err, ERR_USAGE, "%s: %s is outside %s to %s", rows[i].option, value,
                           least, most);
        }
    for (size_t i = 0; spec->mode == JAIL_LANDLOCK && i < spec->nbinds; i++)
        if (spec->binds[i].copied)
            return err_set(err, ERR_USAGE,
                           "--mode landlock takes no --in: it has no /workspace of its own; show "
                           "it with --ro %.80s",
                           spec->binds[i].source);
        else if (spec->binds[i].moved)
            return err_set(err, ERR_USAGE,
                           "--mode landlock cannot show %.80s under another path: it has no mounts",
                           spec->binds[i].source);
    if (spec->mode == JAIL_LANDLOCK && spec->proc)
        return err_set(err, ERR_USAGE, "--mode landlock takes no --proc: it has no mounts");
    if (spec->mode == JAIL_LANDLOCK && l->processes)
        return err_set(
            err, ERR_USAGE,
            "--mode landlock takes no --processes: without a pid namespace nothing could end "
            "them all");
    return 0;
}

int jail_switches_from_env(struct jail_spec *spec, struct err *err)
{
#ifdef CORDON_LAYER_SWITCHES
    static const char *const names[] = {
#define X(name) #name,
        JAIL_SWITCHES(X)
#undef X
            "wait_killable", /* simulates a kernel before 5.19 */
    };
    const char *word = getenv("CORDON_TEST_OFF");
    if (!word || !*word)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i]) == 0) {
            spec->switches |= 1ULL << i;
            return 0;
        }
    return err_set(err, ERR_USAGE, "CORDON_TEST_OFF: there is no layer '%.40s'", word);
#else
    (void)spec;
    (void)err;
    return 0;
#endif
}
