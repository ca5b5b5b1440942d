/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a process that waits for work, fetched before the work comes: otherwise its first run is the first to touch
 * them, at the price of a page fault each.
 *
 * Takes:   nothing.
 * Gives:   nothing: it is for speed alone, and a call that fails changes nothing.
 * Never:   touches what is shared with others, what is longer than the two lengths below, or what nobody may read.
 * Runs in: a runner, before it has a request.
 */
#ifndef SYS_PAGES_H
#define SYS_PAGES_H

#define SYS_PAGES_READ    (32UL << 20)  /* the longest map of code or constants */
#define SYS_PAGES_WRITTEN (128UL << 10) /* the longest map of data */
#define SYS_PAGES_STACK   (192UL << 10) /* below the caller */

void sys_pages_fetch(void);

#endif
