/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter walks some chains of objects by recursion in C and counts it nowhere; in CPython: nested iterators, the causes of an
 * exception, hashes of nested tuples, deallocation of nested deques. A program without any C code can so reach the end of the C
 * stack, and then the kernel kills the process. The jail therefore raises RLIMIT_STACK before it executes the
 * worker: the kernel places the memory maps below that room at exec, and maps the stack page by page when it is
 * touched, so room that nobody uses costs nothing, neither memory nor address space (RLIMIT_AS).
 *
 * What is deeper still must end, and says why: the handler runs on a stack of its own and sends one message that was
 * not allocated. Then it sends the signal again, which ends the process, as the handler is reset by then. The supervisor
 * sees that call, and looks whether memory was short: much code writes to what it was refused without a look. */
#include "worker/frame/stack.h"

#include "base/limits.h"
#include "worker/frame/channel.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
    THREAD = 8 * 1024 * 1024, /* the stack of a thread, as the C library has it by default */
    OWN = 64 * 1024, /* the handler's; the largest register file of an x86-64 takes 11 KB of it */
    GUARD = 2 * 1024 * 1024, /* below the end: the kernel's guard gap and a large frame */
};

static char own[OWN] __attribute__((aligned(16)));
static uintptr_t lowest, highest; /* addresses that belong to the main thread's stack */
static volatile sig_atomic_t guest;

int worker_stack_threads(struct err *err)
{
    pthread_attr_t a;
    int r = pthread_attr_init(&a);
    if (r == 0) {
        r = pthread_attr_setstacksize(&a, THREAD);
        if (r == 0)
            r = pthread_setattr_default_np(&a);
        pthread_attr_destroy(&a);
    }
    return r == 0 ? 0 : err_set(err, ERR_SYS, "the size of a thread's stack: %s", strerror(r));
}

static void tell(void)
{
    static char storage[512]; /* not the channel's: it may be half written */
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    wire_begin(&w, &b, WIRE_FAULT);
    wire_put_text(&w, WIRE_FAULT_STACK);
    wire_put_text(&w, "");
    wire_put_uint(&w, 0);
    if (wire_end(&w) == 0)
        (void)!send(WORKER_CHANNEL, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)context;
    const uintptr_t at = (uintptr_t)info->si_addr;
    const bool sent = info->si_code <= 0; /* by somebody, and no fault */
    if (guest && !sent && at >= lowest && at < highest)
        tell();
    (void)raise(signal);
}

void worker_stack_watch(void)
{
    struct rlimit limit;
    struct sigaction a = {.sa_sigaction = on_fault,
                          .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND};
    stack_t where = {.ss_sp = own, .ss_size = sizeof own};
    if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur > LIMIT_STACK)
        limit.rlim_cur = LIMIT_STACK;
    highest = (uintptr_t)__builtin_frame_address(0);
    lowest = highest - limit.rlim_cur - GUARD;
    sigemptyset(&a.sa_mask);
    /* without them a fault has no name, and nothing else is different */
    if (sigaltstack(&where, NULL) == 0)
        (void)sigaction(SIGSEGV, &a, NULL);
}

void worker_stack_guest(bool running)
{
    guest = running;
}
