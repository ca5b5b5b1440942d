/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is fetched as a page of our own, what is read is mapped: the kernel does both for a whole map in one call
 * (Linux 5.14; an older one refuses, and each page is fetched when it is touched). The stack and the heap grow first, since
 * a map ends where nothing has been touched yet. */
#include "sys/pages.h"

#include "sys/fd.h"
#include "sys/kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TEXT = 256 * 1024 }; /* of /proc/self/maps */

__attribute__((noinline)) static void grow_stack(void)
{
    volatile char pages[SYS_PAGES_STACK];
    for (size_t i = 0; i < sizeof pages; i += 4096)
        pages[i] = 0;
}

/* The C library keeps what is freed: src/prog/cordon/ready.c tells it so. */
static void grow_heap(void)
{
    void *volatile more = malloc(SYS_PAGES_HEAP);
    free(more);
}

static void fetch(const char *line)
{
    unsigned long from, to;
    char rights[5];
    if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || rights[0] != 'r' ||
        to - from > SYS_PAGES_LONGEST || strstr(line, "[v")) /* the kernel's own */
        return;
    const bool own =
        rights[1] == 'w' && rights[3] == 'p'; /* what is shared would have to go to the disk */
    (void)madvise((void *)from, to - from, own ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

void sys_pages_fetch(void)
{
    grow_stack();
    grow_heap();
    char *text = mmap(NULL, TEXT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED)
        return;
    if (fd_read_file(AT_FDCWD, "/proc/self/maps", text, TEXT) > 0)
        for (char *line = text, *next; line && *line; line = next) {
            next = strchr(line, '\n');
            if (next)
                *next++ = 0;
            fetch(line);
        }
    munmap(text, TEXT);
}
