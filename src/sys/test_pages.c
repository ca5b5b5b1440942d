/* SPDX-License-Identifier: Apache-2.0 */
/* After it data and stack are touched without a page fault; what is shared, and what is long, is as it was. */
#include "sys/pages.h"

#include "base/tap.h"
#include "sys/kernel.h"

#include <sys/mman.h>
#include <sys/resource.h>

enum { PAGE = 4096, PAGES = 16 };

static long faults(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_minflt;
}

__attribute__((noinline, no_sanitize("address", "undefined"))) static void touch(volatile char *at,
                                                                                 size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        at[i * PAGE] = 1;
}

__attribute__((noinline, no_sanitize("address", "undefined"))) static void touch_stack(void)
{
    char deep[SYS_PAGES_STACK / 2];
    touch(deep, sizeof deep / PAGE);
}

/* Between two pages that nobody may touch, so that it stays a map of its own. */
static char *map(size_t len, int kind)
{
    char *at = mmap(NULL, len + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at += PAGE;
    return mmap(at, len, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_ANONYMOUS | kind, -1, 0);
}

static long faults_of(char *at)
{
    const long before = faults();
    touch(at, PAGES);
    return faults() - before;
}

int main(void)
{
    char *own = map(SYS_PAGES_WRITTEN, MAP_PRIVATE), *shared = map(PAGES * PAGE, MAP_SHARED),
         *large = map(SYS_PAGES_WRITTEN + PAGE, MAP_PRIVATE);
    if (madvise(own, 0, MADV_POPULATE_READ) < 0) {
        tap_skip("pages are fetched ahead", "this kernel is older than Linux 5.14");
        return tap_done();
    }
    (void)faults(); /* what measures is there before */
    sys_pages_fetch();
    tap_eq_int(faults_of(own), 0, "data that was never touched is written without a page fault");
    const long before = faults();
    touch_stack();
    tap_eq_int(faults() - before, 0, "the stack below the caller is written without a page fault");
    tap_ok(faults_of(shared) > 0, "a map that others share is left alone");
    tap_ok(faults_of(large) > 0, "a map that is longer than the longest is left alone");
    return tap_done();
}
