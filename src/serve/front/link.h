/* SPDX-License-Identifier: Apache-2.0 */
/* Packets between the front and cordond, at the descriptor that the front was started with.
 *
 * Takes:   what the front wants sent.
 * Gives:   packets to cordond, and cordond's to the front.
 * Never:   waits.
 * Runs in: cordon-front, contained.
 */
#ifndef SERVE_FRONT_LINK_H
#define SERVE_FRONT_LINK_H

#include "serve/front/front.h"

#define SERVE_LINK_FD 3

struct serve_link {
    struct serve_front *front;
    size_t sent; /* of the front's frames */
    bool over;   /* cordond is gone */
};

void serve_link_init(struct serve_link *l, struct serve_front *front);
/* For poll. */
short serve_link_events(const struct serve_link *l);
void serve_link_send(struct serve_link *l);
ERR_MUST_USE int serve_link_read(struct serve_link *l, struct err *err);
/* More is to be sent than a client may cause before it is listened to again. */
bool serve_link_full(const struct serve_link *l);

#endif
