/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a process that waits for work, fetched before the work comes: otherwise its first run is the first to touch
 * them, at the price of a page fault each.
 *
 * Takes:   nothing.
 * Gives:   nothing: it is for speed alone, and a call that fails changes nothing.
 * Never:   touches what is longer than SYS_PAGES_LONGEST, or what nobody may read.
 * Runs in: a runner, before it has a request.
 */
#ifndef SYS_PAGES_H
#define SYS_PAGES_H

#define SYS_PAGES_LONGEST                                                                          \
    (32UL << 20) /* of one map: a sanitizer's shadow is longer than any memory */
#define SYS_PAGES_STACK (256UL << 10) /* below the caller */
#define SYS_PAGES_HEAP  (256UL << 10) /* beyond what the heap has */

void sys_pages_fetch(void);

#endif
