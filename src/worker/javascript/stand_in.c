/* SPDX-License-Identifier: Apache-2.0 */
/* The engine numbers the shapes of its objects by their places in one range of addresses, 4 GB at a multiple of 4 GB. It asks for
 * twice as much, to find such a multiple in it, and if that is refused for less and less: 2 GB and the 4, 1 GB and the 4, and so on.
 * The first request whose own part is JS_SHAPES is granted, without the 4 GB: at a multiple, so that nothing is left to cut off before it
 * or behind it. So the address space of a process is what it may fill, and RLIMIT_AS bounds both.
 *
 * Where the stack lies the C library reads in /proc/self/maps, which a jail has not. The engine scans the stack for values, and stops a program
 * before its end: so it is told here. The name of the program lies above every frame of it. */
#undef _FORTIFY_SOURCE
#include "stand_in.h"

#include "base/limits.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNIT ((size_t)4 << 30)

enum {
    FIRST =
        4, /* the multiples of UNIT that are tried: above what a program at a fixed address has, ... */
    COUNT =
        56, /* ... and below where the smallest kernel, of 39 bits, puts programs and libraries */
    TRIES = 32
};

static void *reserve(size_t len, int prot, int flags)
{
    for (int i = 0; i < TRIES; i++) {
        uint8_t chance = (uint8_t)i;
        (void)!getrandom(&chance, sizeof chance, GRND_NONBLOCK);
        void *at = (void *)((FIRST + chance % COUNT) * UNIT);
        /* the engine unmaps what it takes for the rest of the 4 GB behind it: nothing else may lie there */
        void *got = (void *)syscall(SYS_mmap, at, len, prot, flags | MAP_FIXED_NOREPLACE, -1, 0L);
        if (got == at)
            return got;
        if (got != MAP_FAILED)
            (void)syscall(SYS_munmap, got, len);
    }
    errno = ENOMEM;
    return MAP_FAILED;
}

/* Under both names that the C library has for it; headers would make one of them the other. */
void *js_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset) __asm__("mmap");
void *js_mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset) __asm__("mmap64");

void *js_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    const bool reserves = !at && fd == -1 && (flags & MAP_NORESERVE) && len >= UNIT;
    if (reserves && len == UNIT + JS_SHAPES)
        return reserve(JS_SHAPES, prot, flags);
    if (reserves) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

void *js_mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    return js_mmap(at, len, prot, flags, fd, offset);
}

/* There is no other thread to go on, and the table of computation has no such call. */
int sched_yield(void)
{
    return 0;
}

/* Of the one thread that there is. */
int pthread_getattr_np(pthread_t thread, pthread_attr_t *ret)
{
    const uintptr_t page = 4096, top = (getauxval(AT_EXECFN) + page) & ~(page - 1);
    struct rlimit limit;
    (void)thread;
    if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur > LIMIT_STACK)
        limit.rlim_cur = LIMIT_STACK;
    const size_t size = limit.rlim_cur & ~(page - 1);
    int r = pthread_attr_init(ret);
    return r ? r : pthread_attr_setstack(ret, (void *)(top - size), size);
}
