/* SPDX-License-Identifier: Apache-2.0 */
/* A limit that makes no sense is refused here, by its option's name, before anything is built. */
#include "jail/spec.h"

#include <stddef.h>
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

int jail_spec_check(const struct jail_spec *spec, struct err *err)
{
    const struct jail_limits *l = &spec->limits;
    const struct {
        const char *option;
        uint64_t value, least, most;
        const char *unit;
    } rows[] = {
        {"--timeout", l->wall_ms, 1, LIMIT_WALL_MS_MAX, " ms"},
        {"--cpu", l->cpu_ms, 1, LIMIT_WALL_MS_MAX, " ms"},
        {"--memory", l->memory, LIMIT_MEMORY_MIN, LIMIT_MEMORY_MAX, " bytes"},
        {"--descriptors", l->descriptors, LIMIT_DESCRIPTORS_MIN, LIMIT_DESCRIPTORS_MAX, ""},
        {"--disk", l->disk, LIMIT_DISK_MIN, LIMIT_DISK_MAX, " bytes"},
        {"--inodes", l->inodes, LIMIT_INODES_MIN, LIMIT_INODES_MAX, ""},
        {"--processes", l->processes, 0, LIMIT_PROCESSES_MAX, ""},
        {"--threads", l->threads, 0, LIMIT_THREADS_MAX, ""},
        {"--output", l->output, 1, LIMIT_OUTPUT_MAX, " bytes"},
    };
    if (spec->kind == JAIL_KIND_TEMPLATE)
        return 0; /* its limits bind nobody: each child has its own */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value < rows[i].least || rows[i].value > rows[i].most)
            return err_set(err, ERR_USAGE, "%s: %llu%s is outside %llu to %llu", rows[i].option,
                           (unsigned long long)rows[i].value, rows[i].unit,
                           (unsigned long long)rows[i].least, (unsigned long long)rows[i].most);
    for (size_t i = 0; spec->mode == JAIL_LANDLOCK && i < spec->nbinds; i++)
        if (spec->binds[i].moved)
            return err_set(err, ERR_USAGE,
                           "--mode landlock cannot show %.80s at another place: it has no mounts",
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
