/* SPDX-License-Identifier: Apache-2.0 */
/* Assembly, because glibc's clone() makes only the older call, and clone3 returns in two processes on two stacks: C has no
 * way to say what the new process does on its own. */
#include "sys/clone.h"

#include "sys/raw.h"

#include <errno.h>
#include <sched.h>

pid_t sys_clone(const struct sys_clone_args *args, int (*run)(void *), void *ctx)
{
#if defined(__aarch64__)
    register long number __asm__("x8") = SYS_clone3;
    register long result __asm__("x0") = (long)args;
    register long size __asm__("x1") = sizeof *args;
    __asm__ volatile("svc #0\n"
                     "cbnz x0, 1f\n"
                     "mov x29, xzr\n"
                     "mov x0, %[ctx]\n"
                     "blr %[run]\n"
                     "mov x8, %[leave]\n"
                     "svc #0\n"
                     "1:"
                     : "+r"(result)
                     : "r"(number), "r"(size), [run] "r"(run), [ctx] "r"(ctx), [leave] "i"(SYS_exit)
                     : "memory");
#elif defined(__x86_64__)
    long result;
    __asm__ volatile("syscall\n"
                     "test %%rax, %%rax\n"
                     "jnz 1f\n"
                     "xor %%ebp, %%ebp\n"
                     "mov %[ctx], %%rdi\n"
                     "call *%[run]\n"
                     "mov %%eax, %%edi\n"
                     "mov %[leave], %%eax\n"
                     "syscall\n"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone3), "D"(args),
                       "S"(sizeof *args), [run] "r"(run), [ctx] "r"(ctx), [leave] "i"(SYS_exit)
                     : "rcx", "r11", "memory");
#else
#error "no system call instruction for this architecture"
#endif
    return (pid_t)result;
}

pid_t sys_clone_numbered(struct sys_clone_args *args, pid_t number, int (*run)(void *), void *ctx)
{
    args->set_tid = (uint64_t)(uintptr_t)&number;
    args->set_tid_size = 1;
    pid_t pid = sys_clone(args, run, ctx);
    args->set_tid = args->set_tid_size = 0;
    /* before Linux 5.5, or the number is taken: then it is whichever comes next */
    return pid < 0 && pid != -EAGAIN ? sys_clone(args, run, ctx) : pid;
}
