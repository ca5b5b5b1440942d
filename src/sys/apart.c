/* Three system calls of the scheduler. What a process may use is asked of the kernel each time: it is its owner's, who
 * may change it, and a set that does not fit ours (more than a thousand processors) turns all of this off. */
#include "sys/apart.h"

#include "base/clock.h"
#include "sys/raw.h"

#include <stdint.h>

static uint64_t end_ns;

void sys_apart_note_end(void)
{
    __atomic_store_n(&end_ns, clock_now_ns(), __ATOMIC_RELAXED);
}

bool sys_apart_worth(void)
{
    enum { PAUSE = 4 * CLOCK_NS_PER_MS };
    return clock_now_ns() - __atomic_load_n(&end_ns, __ATOMIC_RELAXED) > PAUSE;
}

static bool set(pid_t pid, const cpu_set_t *where)
{
    return raw_syscall(SYS_sched_setaffinity, pid, sizeof *where, (long)where, 0, 0) == 0;
}

static bool ask(pid_t pid, cpu_set_t *ret)
{
    CPU_ZERO(ret); /* the kernel fills in what it has */
    return raw_syscall(SYS_sched_getaffinity, pid, sizeof *ret, (long)ret, 0, 0) >= 0;
}

/* What it may use is the other one's own and is given back as it was, whoever that is by now. */
void sys_apart_begin(struct sys_apart *a, pid_t other)
{
    a->on = a->asked = false;
    a->here = 0; /* the kernel writes it, which no analyzer sees */
    if (raw_syscall(SYS_getcpu, (long)&a->here, 0, 0, 0, 0) < 0 || !ask(other, &a->theirs))
        return;
    cpu_set_t others = a->theirs;
    CPU_CLR(a->here, &others);
    a->on = CPU_COUNT(&others) > 0 && set(other, &others);
}

void sys_apart_begun(const struct sys_apart *a, pid_t other)
{
    if (a->on)
        set(other, &a->theirs);
}

void sys_apart_stay(struct sys_apart *a)
{
    cpu_set_t one;
    if (!a->on)
        return;
    a->asked = a->asked || ask(0, &a->ours);
    CPU_ZERO(&one);
    CPU_SET(a->here, &one);
    a->on = a->asked && set(0, &one);
}

void sys_apart_stayed(const struct sys_apart *a)
{
    if (a->on)
        set(0, &a->ours);
}

void sys_apart_move(pid_t pid)
{
    struct sys_apart a;
    sys_apart_begin(&a, pid);
    sys_apart_begun(&a, pid);
}
