/* SPDX-License-Identifier: Apache-2.0 */
/* What a fork costs is what it copies: an entry for each page that the template ever wrote, and later, one by
 * one, the pages that the child writes, since counting references is writing. A page of a file that is mapped
 * privately needs no entry before it is touched. So the template writes its heap, its objects, its data and the constants
 * that the loader wrote into files in memory, seals them, and maps them over where they were.
 *
 * Which pages a child will touch is seen in a rehearsal: a fork of the template serves one small program and then
 * looks at its own page table. Children fetch them with one call a range, which is cheaper by half than one
 * fault a page, and need not run such a program themselves. There are two: what a program writes that only prints,
 * every program will write, and that is fetched also when somebody waits already; the rest while nobody does.
 *
 * `make gains GAINS=--alone` (2 CPUs, aarch64) says by how much longer it takes without each:
 *   REMAP           a run with no warm child 23 %, a fork of a session 35 %, two clients that never pause 50 %
 *   REMAP_HUGE      a run with no warm child 32 %
 *   REMAP_CODE      the same 6 %
 *   REMAP_CONSTANTS the same 1 to 2 %
 *   REHEARSE        a warm run 10 %, with no warm child 12 %, two clients that never pause 35 %
 *   REHEARSE_TWICE  a run with no warm child 10 %, two clients that never pause 6 %
 *   FEW_MAPS        a fork of a session 5 %: of the 123 maps of a template of strict 91 are left, and a fork copies each
 *                   (x86-64: that a library's constants are one map, 4 % of it: a child of strict has 121 maps and not 143)
 *
 * Only what the C library never moves is remapped: its main heap, data of libraries, the interpreter's
 * arenas. A block that it got by mmap could be grown by mremap, and behind the file's end there is nothing.
 *
 * Where one of this is not to be had (no page map, a kernel before 5.14), a child runs its small program as well
 * and takes the faults itself: slower, and else the same. */
#include "worker/frame/remap.h"

#include "base/speed.h"
#include "sys/fd.h"
#include "sys/kernel.h"
#include "worker/frame/language.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

enum {
    RANGES = 1024,      /* maps, and arenas; with pandas there are some 400 */
    NEEDS = 1024,       /* ranges of pages that a child writes; windows that it reads */
    ASK = 8,            /* after so many calls */
    WINDOW = 64 * 1024, /* what the kernel maps around a page of a file that is read */
    HUGE_PAGE = 2 << 20,
    LONGEST = 1 << 30,
    FEW = 256 * 1024,   /* constants that a template copies to have a map less */
    MUCH = 12,          /* windows of one library's code, from which on it is remapped, too */
    MAPS = 1024 * 1024, /* the longest text of /proc/self/maps */
};

struct range {
    uintptr_t at;
    size_t len;
};

/* ---- arenas ---- */

static struct {
    struct range at[RANGES];
    size_t count;
    bool watched;
} arenas;

void worker_remap_watch(void)
{
    arenas.watched = true;
    if (worker_language->watch)
        worker_language->watch();
}

void worker_remap_add(const void *p, size_t size)
{
    if (arenas.watched && arenas.count < RANGES) /* one that is not known is copied as ever */
        arenas.at[arenas.count++] = (struct range){(uintptr_t)p, size};
}

void worker_remap_remove(const void *p)
{
    for (size_t i = 0; arenas.watched && i < arenas.count; i++)
        if (arenas.at[i].at == (uintptr_t)p)
            arenas.at[i] = arenas.at[--arenas.count];
}

/* ---- maps ---- */

enum kind {
    DATA,  /* of a file, written: a library's, or what is remapped */
    HEAP,  /* of the C library */
    OTHER, /* written, and of no file */
    CODE,  /* of a file */
    READ,  /* constants */
    SPACE, /* of a file, and not to be touched: between a library's code and its data */
};
struct map {
    struct range r;
    enum kind kind;
};

static bool parse_map(const char *line, struct map *ret)
{
    unsigned long from, to;
    char rights[5], path[8] = "";
    if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %7s", &from, &to, rights, path) < 3 ||
        to - from > LONGEST) /* a sanitizer's shadow: nobody could look through it */
        return false;
    const bool file = path[0] == '/', written = strcmp(rights, "rw-p") == 0;
    *ret = (struct map){{from, to - from}, OTHER};
    if (written && file)
        ret->kind = DATA;
    else if (written && strcmp(path, "[heap]") == 0)
        ret->kind = HEAP;
    else if (file && strcmp(rights, "r-xp") == 0)
        ret->kind = CODE;
    else if (file && strcmp(rights, "r--p") == 0)
        ret->kind = READ;
    else if (file && strcmp(rights, "---p") == 0)
        ret->kind = SPACE;
    else
        return written && !path[0];
    return true;
}

/* Memory that goes again, or NULL. Shared: parse_map passes over it. A private one would be listed, and what lies there later,
 * in a rehearsal, would count as pages that a child needs: a child, which has none there, could then fetch nothing. */
static void *map_scratch(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* How many there are; 0: they cannot be read. */
static size_t find_maps(int proc, struct map *maps)
{
    size_t count = 0;
    char *text = map_scratch(MAPS);
    if (!text)
        return 0;
    if (fd_read_file(proc, "self/maps", text, MAPS) > 0)
        for (char *line = text, *next = line; next && count < RANGES; line = next) {
            next = strchr(line, '\n');
            if (next)
                *next++ = 0;
            count += parse_map(line, &maps[count]);
        }
    munmap(text, MAPS);
    return count;
}

/* ---- the file ---- */

static int make_file(void)
{
    static const char name[] = "cordon-template";
    int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (file < 0 && errno == EINVAL) /* before Linux 6.3 */
        file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return file;
}

/* Where a range goes, if the file ends at END: a long one so that it can be mapped with few and large entries. */
static off_t place(const struct range *r, off_t end)
{
    const uintptr_t unit = r->len >= 2 * HUGE_PAGE ? HUGE_PAGE : r->len >= 4 * WINDOW ? WINDOW : 1;
    return end + (off_t)((r->at - (uintptr_t)end) % unit);
}

static bool copy_range(int file, const struct range *r, off_t to)
{
    for (size_t done = 0; done < r->len;) {
        ssize_t n = pwrite(file, (const char *)r->at + done, r->len - done, to + (off_t)done);
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* A large page is mapped and unmapped as one: a child starts and ends faster. When the kernel has none left, each further
 * try costs time. */
static void make_huge(int file, size_t len)
{
    char *p =
        mmap(NULL, len + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return;
    char *at = p + (-(uintptr_t)p) % HUGE_PAGE;
    bool all = mmap(at, len, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == at;
    for (size_t i = 0; all && i < len; i += HUGE_PAGE)
        all = madvise(at + i, HUGE_PAGE, MADV_COLLAPSE) == 0;
    munmap(p, len + HUGE_PAGE);
}

static bool may_map(int file, int rights)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p = mmap(NULL, page, rights, MAP_PRIVATE, file, 0);
    return p != MAP_FAILED && munmap(p, page) == 0;
}

/* The files that are mapped and sealed, each open for reading until its large pages are made. */
static struct {
    struct {
        int read;
        size_t len;
    } at[3];
    size_t count;
} files;

static void close_files(void)
{
    while (files.count)
        fd_close(files.at[--files.count].read);
}

/* Large pages come when the rehearsals are over: one of them is mapped whole, and nobody could see which of its pages a
 * child needs. */
static void make_files_huge(void)
{
    for (size_t i = 0; SPEED_REMAP_HUGE && i < files.count; i++)
        if (files.at[i].read >= 0)
            make_huge(files.at[i].read, files.at[i].len);
    close_files();
}

static int open_again(int proc, int file)
{
    char path[32];
    snprintf(path, sizeof path, "self/fd/%d", file);
    return openat(proc, path, O_RDONLY | O_CLOEXEC);
}

/* From the copies to the maps nothing may be written in the ranges: there are only plain calls, on our stack. What
 * cannot be had leaves everything as it is. */
static int remap_ranges(int proc, const struct range *ranges, size_t count, int rights)
{
    off_t to[2 * RANGES], end = 0;
    FD_AUTO file = make_file();
    bool good = file >= 0;
    for (size_t i = 0; i < count && good; i++) {
        to[i] = place(&ranges[i], end);
        end = to[i] + (off_t)ranges[i].len;
        good = copy_range(file, &ranges[i], to[i]);
    }
    const size_t len = ((size_t)end + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (!good || ftruncate(file, (off_t)len) < 0 || !may_map(file, rights))
        return 0;
    for (size_t i = 0; i < count; i++) {
        void *at = (void *)ranges[i].at;
        if (mmap(at, ranges[i].len, rights, MAP_PRIVATE | MAP_FIXED, file, to[i]) != at)
            return -1;
    }
    files.at[files.count].len = len;
    files.at[files.count++].read = open_again(proc, file);
    return fcntl(file, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

/* ---- pages, as /proc/self/pagemap tells of them ---- */

#define PAGE_PRESENT   (1ULL << 63)
#define PAGE_OF_FILE   (1ULL << 61)
#define PAGE_EXCLUSIVE (1ULL << 56) /* no other process has it */

typedef void each_page(void *ctx, uintptr_t at, size_t page, uint64_t entry);

static int look_at(int pagemap, const struct range *r, each_page *tell, void *ctx)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = r->len / page;
    uint64_t entries[512];
    for (size_t i = 0; i < pages;) {
        size_t want = pages - i < 512 ? pages - i : 512;
        ssize_t n = pread(pagemap, entries, want * 8, (off_t)((r->at / page + i) * 8));
        if (n < 8)
            return -1;
        for (size_t k = 0; k < (size_t)n / 8; k++, i++)
            tell(ctx, r->at + i * page, page, entries[k]);
    }
    return 0;
}

static void note_written(void *ctx, uintptr_t at, size_t page, uint64_t entry)
{
    (void)at;
    (void)page;
    *(bool *)ctx |= (entry & PAGE_PRESENT) && !(entry & PAGE_OF_FILE);
}

static int remap_data(int proc, const struct map *maps, size_t count)
{
    struct range ranges[2 * RANGES];
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (maps[i].kind == DATA || maps[i].kind == HEAP)
            ranges[n++] = maps[i].r;
    for (size_t i = 0; i < arenas.count; i++)
        if (n && ranges[n - 1].at + ranges[n - 1].len == arenas.at[i].at)
            ranges[n - 1].len += arenas.at[i].len; /* neighbours are one map */
        else
            ranges[n++] = arenas.at[i];
    return remap_ranges(proc, ranges, n, PROT_READ | PROT_WRITE);
}

/* Nothing is ever read there, and every fork would copy each of these maps. The kernel leaves the same gap in the program
 * itself unmapped. */
static int unmap_space(const struct map *maps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (maps[i].kind == SPACE && munmap((void *)maps[i].r.at, maps[i].r.len) < 0)
            return -1;
    return 0;
}

/* MAP, together with the constants of its library's file that lie before it, if those are few: the two become one map. */
static struct range with_map_before(const struct map *map)
{
    const struct map *before = map - 1;
    const bool joins =
        before->kind == READ && before->r.at + before->r.len == map->r.at && before->r.len <= FEW;
    return joins ? (struct range){before->r.at, before->r.len + map->r.len} : map->r;
}

/* Constants that the loader wrote before it made them constant (RELRO): of libcrypto alone 90 pages. */
static int remap_constants(int proc, const struct map *maps, size_t count)
{
    struct range ranges[RANGES];
    size_t n = 0;
    FD_AUTO pagemap = openat(proc, "self/pagemap", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; pagemap >= 0 && i < count; i++) {
        bool written = false;
        if (maps[i].kind == READ && look_at(pagemap, &maps[i].r, note_written, &written) == 0 &&
            written)
            ranges[n++] = SPEED_FEW_MAPS && i ? with_map_before(&maps[i]) : maps[i].r;
    }
    return n ? remap_ranges(proc, ranges, n, PROT_READ) : 0;
}

/* ---- the rehearsal ---- */

/* What a child will need. */
static struct needs {
    struct range write[NEEDS];
    uintptr_t read[NEEDS]; /* a page of each window */
    size_t writes, reads;
    size_t always; /* of the writes, how many at their beginning are every program's */
} needs;

static void need(void *ctx, uintptr_t at, size_t page, uint64_t entry)
{
    struct needs *seen = ctx;
    struct range *last = seen->writes ? &seen->write[seen->writes - 1] : NULL;
    const bool again = seen->reads && (seen->read[seen->reads - 1] ^ at) < WINDOW;
    if (!(entry & PAGE_PRESENT))
        return;
    if (entry & PAGE_OF_FILE) {
        if (!again && seen->reads < NEEDS)
            seen->read[seen->reads++] = at;
    } else if (entry & PAGE_EXCLUSIVE) {
        if (last && at >= last->at && at <= last->at + last->len)
            last->len = at + page - last->at;
        else if (seen->writes < NEEDS)
            seen->write[seen->writes++] = (struct range){at, page};
    }
}

/* Not in the template's data: what a fork writes there to look at itself, no child would write. */
static struct needs *make_needs(void)
{
    return map_scratch(sizeof(struct needs));
}

/* Ends a fork that was made to look: what it found goes through a pipe. */
static _Noreturn void tell_needs(int to, const struct needs *seen)
{
    _exit(write(to, seen, sizeof *seen) == (ssize_t)sizeof *seen ? 0 : 1);
}

/* In a fork: does what a child will do, and tells which pages that took. */
static _Noreturn void rehearsal(int proc, int tell, const struct map *maps, size_t count,
                                worker_remap_rehearse *rehearse, const char *with, bool only_print)
{
    FD_AUTO pagemap = openat(proc, "self/pagemap", O_RDONLY | O_CLOEXEC);
    struct needs *seen = make_needs();       /* before the rehearsal, which may be refused it */
    for (size_t i = 0; i < files.count; i++) /* and no child writes that count */
        fd_close(files.at[i].read);
    if (!seen || rehearse(with, only_print) < 0)
        _exit(1);
    int r = pagemap < 0 ? -1 : 0;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = look_at(pagemap, &maps[i].r, need, seen);
    if (r < 0) /* such a kernel */
        seen->writes = seen->reads = 0;
    tell_needs(tell, seen);
}

static bool take_needs(pid_t pid, const int told[2])
{
    int status = -1;
    size_t have = 0;
    close(told[1]);
    for (ssize_t n = pid; n > 0 && have<sizeof needs; have += n> 0 ? (size_t)n : 0)
        n = read(told[0], (char *)&needs + have, sizeof needs - have);
    close(told[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return have == sizeof needs && status == 0;
}

static bool hold_rehearsal(int proc, worker_remap_rehearse *rehearse, const char *with,
                           bool only_print)
{
    struct map maps[RANGES];
    int told[2];
    size_t count = find_maps(proc, maps);
    if (count == 0 || pipe2(told, O_CLOEXEC) < 0)
        return false;
    pid_t pid =
        _Fork(); /* handlers of pthread_atfork are code of packages, and children run none either */
    if (pid == 0)
        rehearsal(proc, told[1], maps, count, rehearse, with, only_print);
    return take_needs(pid, told);
}

static void add_write(struct needs *to, uintptr_t at, uintptr_t end)
{
    if (at < end && to->writes < NEEDS)
        to->write[to->writes++] = (struct range){at, end - at};
}

/* Those of LEAST to the beginning, and none of them twice. Both lists are in the order of addresses. */
static void put_first(struct needs *least, const struct needs *usual)
{
    const size_t count = least->always = least->writes;
    for (size_t i = 0; i < usual->writes; i++) {
        uintptr_t at = usual->write[i].at, end = at + usual->write[i].len;
        for (size_t k = 0; k < count; k++) {
            const struct range *had = &least->write[k];
            if (had->at + had->len <= at || had->at >= end)
                continue;
            add_write(least, at, had->at);
            at = had->at + had->len;
        }
        add_write(least, at, end);
    }
    memcpy(least->read, usual->read, sizeof least->read);
    least->reads = usual->reads;
}

/* A profile may refuse what was loaded ahead for others, and a kernel may not tell. What is written down on the way is
 * in memory that goes again: every fork would copy it. */
static void find_needs(int proc, worker_remap_rehearse *rehearse, const char *with)
{
    struct needs *least = make_needs();
    const bool known = SPEED_REHEARSE_TWICE && least && hold_rehearsal(proc, rehearse, NULL, true);
    if (known)
        *least = needs;
    memset(&needs, 0, sizeof needs);
    if (!hold_rehearsal(proc, rehearse, with, false) &&
        (!with || !hold_rehearsal(proc, rehearse, NULL, false)))
        memset(&needs, 0, sizeof needs);
    if (known && needs.writes) {
        put_first(least, &needs);
        needs = *least;
    }
    if (least)
        munmap(least, sizeof *least);
}

/* The code that every child runs: the interpreter's and the C library's. Other libraries' would cost more memory
 * than it gains. */
static int remap_code(int proc)
{
    struct map maps[RANGES];
    struct range ranges[RANGES];
    size_t count = find_maps(proc, maps), n = 0;
    for (size_t i = 0; i < count; i++) {
        size_t windows = 0;
        for (size_t k = 0; k < needs.reads; k++)
            windows += needs.read[k] - maps[i].r.at < maps[i].r.len;
        if (maps[i].kind == CODE && windows >= MUCH)
            ranges[n++] = maps[i].r;
    }
    return n ? remap_ranges(proc, ranges, n, PROT_READ | PROT_EXEC) : 0;
}

static void note_entry(void *ctx, uintptr_t at, size_t page, uint64_t entry)
{
    (void)at;
    (void)page;
    *(uint64_t *)ctx = entry;
}

/* In a fork: fetches as a child will, and tells which windows were not there by then. */
static _Noreturn void fetch_once(int proc, int tell)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), reads = needs.reads;
    FD_AUTO pagemap = openat(proc, "self/pagemap", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < needs.writes; i++)
        (void)madvise((void *)needs.write[i].at, needs.write[i].len, MADV_POPULATE_WRITE);
    needs.reads = 0;
    for (size_t i = 0; i < reads; i++) {
        const struct range window = {needs.read[i], page};
        uint64_t entry = 0;
        if (look_at(pagemap, &window, note_entry, &entry) == 0 && (entry & PAGE_PRESENT))
            continue;
        (void)madvise((void *)window.at, page, MADV_POPULATE_READ);
        needs.read[needs.reads++] = window.at;
    }
    tell_needs(tell, &needs);
}

/* Where a page is large the kernel maps more than one window at once: how much depends on the kernel. So a fork of the
 * template fetches once, and sees which windows a child need not ask for: of 102 of a template of strict 43 are left
 * (Linux 6.18; `strace -f -e madvise -p` the template counts them). A fork that cannot tell leaves nothing to fetch. */
static void drop_reads(int proc)
{
    int told[2];
    if (!needs.reads || pipe2(told, O_CLOEXEC) < 0)
        return;
    pid_t pid = _Fork();
    if (pid == 0)
        fetch_once(proc, told[1]);
    if (!take_needs(pid, told))
        memset(&needs, 0, sizeof needs);
}

int worker_remap(int proc, worker_remap_rehearse *rehearse, const char *with, struct err *err)
{
    struct map maps[RANGES];
    arenas.watched = false;
    const size_t count = find_maps(proc, maps);
    if (!SPEED_REMAP)
        return 0;
    if (remap_data(proc, maps, count) < 0 || (SPEED_FEW_MAPS && unmap_space(maps, count) < 0) ||
        (SPEED_REMAP_CONSTANTS && remap_constants(proc, maps, count) < 0))
        return err_sys(err, "remap the template's memory");
    if (SPEED_REHEARSE)
        find_needs(proc, rehearse, with);
    int r = SPEED_REMAP_CODE ? remap_code(proc) : 0;
    make_files_huge();
    drop_reads(proc);
    return r < 0 ? err_sys(err, "remap the template's code") : 0;
}

/* A few calls take less than it takes somebody to notice. */
static bool enough(size_t i, bool (*stop)(void))
{
    return i % ASK == 0 && stop();
}

bool worker_remap_fetch(bool (*stop)(void))
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < needs.writes; i++) {
        if (i >= needs.always && enough(i - needs.always, stop))
            return true;
        if (madvise((void *)needs.write[i].at, needs.write[i].len, MADV_POPULATE_WRITE) < 0)
            return false; /* an older kernel */
    }
    for (size_t i = 0; i < needs.reads && !enough(i, stop); i++)
        (void)madvise((void *)needs.read[i], page, MADV_POPULATE_READ);
    return needs.writes > 0;
}
