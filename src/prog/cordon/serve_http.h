/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket and the token of `cordon serve --http`.
 *
 * Takes:   an address, the file of a token.
 * Gives:   a socket at which the front accepts, and the token as a sealed file in memory.
 * Never:   puts the token on a command line or into an environment; listens beyond loopback unless the operator named hosts.
 * Runs in: `cordon`, before it becomes cordond.
 */
#ifndef PROG_CORDON_SERVE_HTTP_H
#define PROG_CORDON_SERVE_HTTP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct serve_http_options {
    const char *where; /* [ADDRESS:]PORT */
    const char
        *token; /* a file; NULL: the one in the state folder, which is made where it is not there */
    bool no_token;     /* the front serves test tools alone */
    const char *names; /* hosts with commas between them; NULL: those of loopback alone */
};

/* GIVEN: a socket that listens already, instead of `where`; -1: none. On success descriptors SERVE_HTTP_FD, the socket, and SERVE_TOKEN_FD are open and stay so over exec, and standard error
 * has told where. */
enum { SERVE_HTTP_FD = 6, SERVE_TOKEN_FD = 7, SERVE_METRICS_FD = 8 };
ERR_MUST_USE int serve_http_listen(const struct serve_http_options *o, int given, struct err *err);
/* Descriptor AT listens at WHERE, which must be loopback's, and stays open over exec; URL is told. OPTION begins each message. */
ERR_MUST_USE int serve_http_listen_loopback(const char *option, const char *where, int at,
                                            char *url, size_t size, struct err *err);
/* WHERE must be loopback's: what is told there needs no token. On success SERVE_METRICS_FD is open and stays so over exec. */
ERR_MUST_USE int serve_http_listen_metrics(const char *where, struct err *err);

#endif
