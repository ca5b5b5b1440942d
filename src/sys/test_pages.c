/* SPDX-License-Identifier: Apache-2.0 */
/* After it, code, data, heap and stack are touched without a page fault. */
#include "sys/pages.h"

#include "base/tap.h"
#include "sys/kernel.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { PAGE = 4096, PAGES = 64 };
static char data[PAGES * PAGE];

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

int main(void)
{
    char *large = mmap(NULL, SYS_PAGES_LONGEST + PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool able = madvise(none, 0, MADV_POPULATE_READ) == 0;
    mallopt(M_TRIM_THRESHOLD, 64 << 20); /* as a runner has it */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    if (!able) {
        tap_skip("pages are fetched ahead", "this kernel is older than Linux 5.14");
        return tap_done();
    }
    (void)faults(); /* what measures is there before */
    sys_pages_fetch();
    long before = faults();
    touch(data, PAGES);
    tap_eq_int(faults() - before, 0, "data that was never touched is written without a page fault");
    before = faults();
    touch_stack();
    tap_eq_int(faults() - before, 0, "the stack below the caller is written without a page fault");
    char *heap = malloc(SYS_PAGES_HEAP / 4);
    before = faults();
    touch(heap, SYS_PAGES_HEAP / 4 / PAGE);
    tap_eq_int(faults() - before, 0, "a new piece of the heap is written without a page fault");
    free(heap);
    before = faults();
    touch(large, 1);
    tap_ok(faults() > before, "a map that is longer than the longest is left alone");
    return tap_done();
}
