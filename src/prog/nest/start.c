/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-nest has no C library below it: one would take longer to start than all that the program does.
 * What is left of one is here: the entry that the kernel jumps to, and what the compiler takes for granted. */
#include "start.h"
#include "base/err.h"
#include "sys/raw.h"

#include <stdlib.h>
#include <string.h>

/* The kernel leaves argc and argv on the stack, aligned as a call wants it. */
#if defined(__aarch64__)
__asm__(".globl _start\n"
        "_start: mov x29, xzr\n"
        "        mov x30, xzr\n"
        "        mov x0, sp\n"
        "        b start_here\n");
#elif defined(__x86_64__)
__asm__(".globl _start\n"
        "_start: xor %ebp, %ebp\n"
        "        mov %rsp, %rdi\n"
        "        call start_here\n");
#else
#error "no entry for this architecture"
#endif

_Noreturn void start_exit(int status)
{
    for (;;)
        raw_syscall(SYS_exit_group, status, 0, 0, 0, 0);
}

_Noreturn __attribute__((used)) void start_here(const long *stack);
_Noreturn void start_here(const long *stack)
{
    start_exit(main((int)stack[0], (char **)(stack + 1)));
}

/* The empty statement keeps the compiler from making a loop a call of what it is the body of. */
void *memset(void *to, int byte, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        ((unsigned char *)to)[i] = (unsigned char)byte;
        __asm__ volatile("");
    }
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
        __asm__ volatile("");
    }
    return to;
}

size_t strlen(const char *s)
{
    size_t len = 0;
    while (s[len]) {
        len++;
        __asm__ volatile("");
    }
    return len;
}

/* A buffer of ours has its room from the start; nothing here grows. */
void *realloc(void *p, size_t size)
{
    (void)p;
    (void)size;
    return NULL;
}

void err_assert_failed(const char *what, const char *file, int line)
{
    (void)what;
    (void)file;
    (void)line;
    start_exit(134);
}
