/* SPDX-License-Identifier: Apache-2.0 */
/* The signal is blocked, not ignored, while no code of the guest runs: an interrupt that arrives while a call is judged is
 * raised as soon as the call begins, instead of being lost. The language's own handler is used, so that a program
 * which sets another one behaves as under its usual interpreter. A program that ignores the signal is ended by the supervisor: a second
 * interrupt within two seconds is no signal (jail/supervisor/keys.c). */
#include "worker/frame/interrupt.h"

#include "worker/frame/language.h"

#include <signal.h>
#include <time.h>

static bool ready; /* the handler is set, and the signal waits */

static void mask(int how)
{
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    (void)sigprocmask(how, &interrupt, NULL);
}

int worker_interrupt_expect(void)
{
    mask(SIG_BLOCK);
    if (!ready && worker_language->set_interrupt() < 0)
        return -1;
    ready = true;
    return 0;
}

void worker_interrupt_drop(void)
{
    const struct timespec at_once = {0};
    sigset_t interrupt;
    if (!ready)
        return;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    while (sigtimedwait(&interrupt, NULL, &at_once) == SIGINT)
        ;
    worker_language->drop_interrupt();
}

void worker_interrupt_let(bool through)
{
    mask(through ? SIG_UNBLOCK : SIG_BLOCK);
    if (!through)
        worker_language->drop_interrupt();
}
