/* Encoding keeps the field order of WIRE_MESSAGES; the decoder takes the same order and copies every
 * string into its arena, so the frame can be thrown away. */
#include "jail/spec.h"

#include "wire/msg.h"

#include <string.h>

enum { FLAG_PROC = 1, FLAG_RLIMIT = 2, FLAG_DETACHED = 4, FLAG_RUN_WRITTEN = 8 };

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
    } rows[] = {
        {"--timeout", l->wall_ms, 1, LIMIT_WALL_MS_MAX},
        {"--cpu", l->cpu_ms, 1, LIMIT_WALL_MS_MAX},
        {"--memory", l->memory, LIMIT_MEMORY_MIN, LIMIT_MEMORY_MAX},
        {"--descriptors", l->descriptors, LIMIT_DESCRIPTORS_MIN, LIMIT_DESCRIPTORS_MAX},
        {"--disk", l->disk, LIMIT_DISK_MIN, LIMIT_DISK_MAX},
        {"--inodes", l->inodes, LIMIT_INODES_MIN, LIMIT_INODES_MAX},
        {"--processes", l->processes, 0, LIMIT_PROCESSES_MAX},
        {"--threads", l->threads, 0, LIMIT_THREADS_MAX},
        {"--output", l->output, 1, LIMIT_OUTPUT_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value < rows[i].least || rows[i].value > rows[i].most)
            return err_set(err, ERR_USAGE, "%s %llu is outside %llu to %llu", rows[i].option,
                           (unsigned long long)rows[i].value, (unsigned long long)rows[i].least,
                           (unsigned long long)rows[i].most);
    return 0;
}

int jail_spec_encode(const struct jail_spec *s, struct buf *out)
{
    const char *sources[LIMIT_BINDS], *dests[LIMIT_BINDS];
    uint64_t writable[LIMIT_BINDS];
    const uint64_t limits[] = {
#define X(name) s->limits.name,
        JAIL_LIMITS(X)
#undef X
    };
    base_assert(s->nbinds <= LIMIT_BINDS);
    for (size_t i = 0; i < s->nbinds; i++) {
        sources[i] = s->binds[i].source;
        dests[i] = s->binds[i].dest;
        writable[i] = s->binds[i].writable;
    }
    struct wire_writer w;
    wire_begin(&w, out, WIRE_SPEC);
    wire_put_uint(&w, s->mode);
    wire_put_uint(&w, (s->proc ? FLAG_PROC : 0U) | (s->memory_by_rlimit ? FLAG_RLIMIT : 0U) |
                          (s->binds_detached ? FLAG_DETACHED : 0U) |
                          (s->run_written ? FLAG_RUN_WRITTEN : 0U));
    wire_put_uint(&w, s->switches);
    wire_put_uint(&w, s->inner_id);
    wire_put_text(&w, s->filter);
    wire_put_bytes(&w, s->program, strlen(s->program));
    wire_put_bytes(&w, s->cwd, strlen(s->cwd));
    wire_put_strings(&w, s->argv, s->argc);
    wire_put_strings(&w, s->env, s->envc);
    wire_put_strings(&w, sources, s->nbinds);
    wire_put_strings(&w, dests, s->nbinds);
    wire_put_uints(&w, writable, s->nbinds);
    wire_put_uints(&w, limits, sizeof limits / sizeof *limits);
    return wire_end(&w);
}

static const char **take_list(struct wire_reader *r, struct arena *mem, size_t most, size_t *ret_n)
{
    size_t n = wire_get_list(r);
    const char **list = n <= most ? arena_alloc(mem, (n + 1) * sizeof *list) : NULL;
    bool good = list != NULL;
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *s = wire_next(r, &len);
        if (good)
            good = !memchr(s, 0, len) && (list[i] = arena_memdup(mem, s, len)) != NULL;
    }
    *ret_n = n;
    return good ? list : NULL;
}

static const char *take_bytes(struct wire_reader *r, struct arena *mem)
{
    size_t len;
    const char *s = wire_get_bytes(r, &len);
    return memchr(s, 0, len) ? NULL : arena_memdup(mem, s, len);
}

int jail_spec_decode(const void *frame, size_t len, struct arena *mem, struct jail_spec *ret_spec,
                     struct err *err)
{
    struct wire_reader r;
    struct jail_spec s = {0};
    int e = wire_open(&r, frame, len, err);
    if (e < 0)
        return e;
    if (r.type != WIRE_SPEC)
        return err_set(err, ERR_STATE, "%s where a SPEC was due", wire_name(r.type));
    uint64_t mode = wire_get_uint(&r), flags = wire_get_uint(&r);
    s.mode = mode == JAIL_LANDLOCK ? JAIL_LANDLOCK : JAIL_FULL;
    s.proc = flags & FLAG_PROC;
    s.memory_by_rlimit = flags & FLAG_RLIMIT;
    s.binds_detached = flags & FLAG_DETACHED;
    s.run_written = flags & FLAG_RUN_WRITTEN;
    s.switches = wire_get_uint(&r);
    s.inner_id = wire_get_uint(&r);
    char filter[32];
    wire_get_text(&r, filter, sizeof filter);
    s.filter = arena_strdup(mem, filter);
    s.program = take_bytes(&r, mem);
    s.cwd = take_bytes(&r, mem);
    size_t nsources, ndests;
    s.argv = take_list(&r, mem, LIMIT_ARGS, &s.argc);
    s.env = take_list(&r, mem, LIMIT_ENV + 8, &s.envc);
    const char **sources = take_list(&r, mem, LIMIT_BINDS, &nsources);
    const char **dests = take_list(&r, mem, LIMIT_BINDS, &ndests);
    uint64_t writable[LIMIT_BINDS], limits[16];
    size_t nwritable = wire_get_uints(&r, writable, LIMIT_BINDS);
    size_t nlimits = wire_get_uints(&r, limits, 16), want = 0;
    s.binds = arena_alloc(mem, LIMIT_BINDS * sizeof *s.binds);
    if (!s.filter || !s.program || !s.cwd || !s.argv || !s.argc || !s.env || !sources || !dests ||
        !s.binds || nsources != ndests || nsources != nwritable)
        return err_set(err, ERR_FORMAT, "the SPEC's lists do not fit together");
#define X(name) s.limits.name = limits[want++];
    JAIL_LIMITS(X)
#undef X
    if (nlimits != want)
        return err_set(err, ERR_FORMAT, "the SPEC has %zu limits", nlimits);
    s.nbinds = nsources;
    for (size_t i = 0; i < s.nbinds; i++)
        s.binds[i] = (struct jail_bind){sources[i], dests[i], writable[i] != 0};
    *ret_spec = s;
    return jail_spec_check(ret_spec, err);
}
