/* SPDX-License-Identifier: Apache-2.0 */
/* What a refused call was is told by the table's signal handler, in memory that nobody else writes. */
#include "worker/frame/compute.h"

#include "jail/compute.h"
#include "jail/template.h"
#include "worker/frame/channel.h"
#include "worker/frame/language.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t guest;
static bool rehearses;

void worker_compute_rehearse(void)
{
    rehearses = true;
}

bool worker_compute_pending(const struct policy_profile *profile)
{
    return profile->compute_only && !jail_computes_only() && !rehearses;
}

/* ---- telling ---- */

static unsigned char told[1024 / 8]; /* in this run */

/* In a signal handler. Each call once a run: a flood of refused calls is one line. */
static void tell(const struct jail_filter *f, const struct jail_call *call)
{
    static char message[1024]; /* not the channel's: it may be half written */
    struct buf b = {.data = message, .cap = sizeof message, .max = sizeof message - 1};
    struct wire_writer w;
    if (!guest || call->nr >= 8 * sizeof told || told[call->nr / 8] >> call->nr % 8 & 1)
        return;
    told[call->nr / 8] |= (unsigned char)(1 << call->nr % 8);
    wire_begin(&w, &b, WIRE_EVENT);
    wire_put_text(&w, jail_call_layer(f, call));
    wire_put_text(&w, worker_language->compute_rule);
    wire_put_text(&w, jail_call_name(f, call));
    wire_put_text(
        &w, "a program of this profile only computes: its data comes in by its standard input "
            "(cordon run --stdin FILE)");
    wire_put_uint(&w, 0);
    if (wire_end(&w) == 0)
        (void)!send(WORKER_CHANNEL, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void worker_compute_guest(bool running)
{
    if (running)
        memset(told, 0, sizeof told);
    guest = running;
}

/* ---- closing ---- */

/* A variable that is set is compared, and its file read once; without one the C library asks for the file's date
 * again and again. */
int worker_compute_zone(void)
{
    static const char file[] = "/etc/localtime";
    if (!getenv("TZ") && setenv("TZ", access(file, R_OK) == 0 ? file : "UTC0", 1) < 0)
        return -1;
    tzset();
    return 0;
}

int worker_compute_close(struct err *err)
{
    if (jail_branch_prepare() < 0)
        return err_sys(err, "ask for what a branch needs");
    return jail_compute_only(tell, err);
}
