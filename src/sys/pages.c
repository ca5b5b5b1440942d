/* SPDX-License-Identifier: Apache-2.0 */
/* What is read is mapped, what is written is fetched as a page of our own: the kernel does both for a whole map in one call
 * (Linux 5.14; an older one refuses, and each page is fetched when it is touched). A page of our own costs a microsecond or
 * two, whether it is used or not, and the next runner waits for that: so the heap, of which a run uses what is there already,
 * and large tables are left out. `make bench BENCH=serve` shows what a call takes. */
#include "sys/pages.h"

#include "sys/fd.h"
#include "sys/kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { TEXT = 64 * 1024 }; /* of /proc/self/maps */

/* Its map ends where nothing has been touched yet. */
__attribute__((noinline)) static void grow_stack(void)
{
    volatile char pages[SYS_PAGES_STACK];
    for (size_t i = 0; i < sizeof pages; i += 4096)
        pages[i] = 0;
}

static void fetch(const char *line)
{
    unsigned long from, to;
    char rights[5];
    if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || rights[0] != 'r' ||
        rights[3] != 'p' || strstr(line, "[v")) /* the kernel's own */
        return;
    const bool written = rights[1] == 'w';
    if (to - from <= (written ? SYS_PAGES_WRITTEN : SYS_PAGES_READ))
        (void)madvise((void *)from, to - from, written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

void sys_pages_fetch(void)
{
    static char text[TEXT];
    grow_stack();
    if (fd_read_file(AT_FDCWD, "/proc/self/maps", text, sizeof text) <= 0)
        return;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        fetch(line);
    }
}
