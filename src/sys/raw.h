/* SPDX-License-Identifier: Apache-2.0 */
/* A system call without errno, for a process that shares another's memory while both run.
 *
 * Takes:   a number by its name and up to five arguments.
 * Gives:   what the kernel returned: a negative errno on failure.
 * Never:   touches memory of the C library.
 * Runs in: the maker of the network namespace; the builder's last step.
 */
#ifndef SYS_RAW_H
#define SYS_RAW_H

#include <sys/syscall.h>

static inline long raw_syscall(long number, long a, long b, long c, long d, long e)
{
#if defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#elif defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
#else
#error "no system call instruction for this architecture"
#endif
}

#endif
