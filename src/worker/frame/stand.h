/* SPDX-License-Identifier: Apache-2.0 */
/* Where a session's process stands when its /workspace was mounted anew.
 *
 * Takes:   nothing.
 * Gives:   the same path as its folder again, or /workspace where that is gone.
 * Never:   moves a process whose folder is the one that its path leads to.
 * Runs in: the worker, before each call of a session.
 */
#ifndef WORKER_FRAME_STAND_H
#define WORKER_FRAME_STAND_H

void worker_stand_anew(void);

#endif
