/* Whether two paths show the same folder although they lie under different mounts. A bind mount shows a part of a file
 * system at a second place; going up from there with `..` never meets the folders above the first place, so what
 * is compared is where both lie in the file system itself.
 *
 * Takes:   /proc/self/mountinfo, once; paths.
 * Gives:   whether one path's files can be reached through another one.
 * Never:   says no where it cannot tell.
 * Runs in: `cordon`.
 */
#ifndef SYS_MOUNTS_H
#define SYS_MOUNTS_H

#include "base/err.h"

#include <stdbool.h>

struct mounts;
ERR_MUST_USE int mounts_read(struct mounts **ret, struct err *err);
void mounts_free(struct mounts *m);

/* Whether KEPT lies in SHARED or in something that is mounted below it; with TREE also whether SHARED, or something that is
 * mounted below it, lies in KEPT. Something that is not there is in nothing. */
bool mounts_reach(const struct mounts *m, const char *shared, const char *kept, bool tree);

#endif
