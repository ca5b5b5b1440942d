/* SPDX-License-Identifier: Apache-2.0 */
/* The words that the holder and its clients share: ceilings, defaults, names, reasons.
 *
 * Takes:   nothing.
 * Gives:   constants and small checks.
 * Never:   depends on the machine.
 * Runs in: `cordon`, cordon-holder.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include "base/languages.h"
#include "base/limits.h"
#include "jail/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a holder keeps at most. Every table of its loop has one of these as its size. */
#define POOL_CLIENTS   256 /* connections at once */
#define POOL_TEMPLATES 8
#define POOL_SESSIONS  64 /* that live */
/* The same, those that come and those that go, and those of sessions that share folders with the host. */
#define POOL_TEMPLATES_HELD (2 * POOL_TEMPLATES + POOL_SESSIONS)
#define POOL_REMEMBERED     64 /* that are over and can still be asked about */
#define POOL_WARM           64 /* children ahead, each template */
#define POOL_LIMITS         11 /* numbers of struct jail_limits on the wire */

#define POOL_NAME     32 /* letters of a session's name */
#define POOL_PROFILE  64 /* as many as the policy lets one have */
#define POOL_LANGUAGE 23
#define POOL_ROLE     32
#define POOL_REASON   200
#define POOL_NOTE     224 /* what a client of a session leaves to the next one */
#define POOL_RULES                                                                                 \
    (200 * KIB) /* bytes of the rules that a template is told, at most: they fit a frame */

/* Defaults. */
#define POOL_WARM_DEFAULT    4
#define POOL_IDLE_EXIT_MS    (10ULL * 60 * 1000) /* a holder that nobody asks for anything ends */
#define POOL_RENEW_MS        (60ULL * 60 * 1000) /* a template is replaced after so long */
#define POOL_RENEW_RUNS      1000ULL             /* ... and after so many children */
#define POOL_SESSION_IDLE_MS (30ULL * 60 * 1000) /* so does a session */
#define POOL_REMEMBER_MS     (30ULL * 60 * 1000) /* that is how long its end is remembered */
#define POOL_HALF_OPEN_MS    5000ULL             /* a connection that says nothing */
#define POOL_PATIENCE_MS     30000ULL /* a wait for a child; its template may load first, slowly */
#define POOL_ANSWER_MS       2000ULL  /* how long a holder is waited for that people ask */
#define POOL_RUN_ANSWER_MS   50ULL    /* ... by a run, which can go without */
#define POOL_BUDGET          (512 * MIB) /* memory for children that wait */
#define POOL_CHILD_COST      (2 * MIB)   /* what one is taken to cost, packages loaded: */
#define POOL_PACKAGES_COST   (4 * MIB)
#define POOL_LOG             (8 * MIB)  /* records of one session */
#define POOL_LOGS            (64 * MIB) /* of all */
#define POOL_RECORD          (4 * MIB)  /* one record */

/* Limits of a session (docs/session.md). */
#define POOL_CALL_MS     120000ULL /* one call */
#define POOL_CALL_OUTPUT 100000ULL /* characters of output */
#define POOL_REST_MS     100ULL    /* CPU time between two calls: what being stopped may take */
#define POOL_HOST_CALLS  50ULL     /* calls of tools, all calls together */

/* What a request for a session that is not there is told: a format with its name. */
#define POOL_NO_SESSION "there is no session '%s'; `cordon session list` names those there are"

/* Why a holder says no: the words of DECLINED, for programs. */
#define POOL_WHY_COLD     "cold"     /* the template is not up yet; it is being started */
#define POOL_WHY_EMPTY    "empty"    /* no child ready, and the caller does not wait */
#define POOL_WHY_LIMITS   "limits"   /* children of the pool are locked tighter than asked */
#define POOL_WHY_BROKEN   "broken"   /* the template fails again and again */
#define POOL_WHY_MEMORY   "memory"   /* the machine is short of memory */
#define POOL_WHY_BUDGET   "budget"   /* idle sessions hold too much memory */
#define POOL_WHY_FULL     "full"     /* a table is full */
#define POOL_WHY_UNKNOWN  "unknown"  /* no such session, no such profile */
#define POOL_WHY_EXISTS   "exists"   /* a session of that name lives */
#define POOL_WHY_BUSY     "busy"     /* another call is under way */
#define POOL_WHY_ENDED    "ended"    /* the session is over; the sentence says why */
#define POOL_WHY_REST     "rest"     /* the session is over: it used CPU time between two calls */
#define POOL_WHY_ORDER    "order"    /* asked at the wrong moment */
#define POOL_WHY_STOPPING "stopping" /* the holder is about to end */

/* A lower-case letter or digit first, then also - and _; 1 to POOL_NAME of them. */
bool pool_name_good(const char *name);

/* The environment of every program, unless it was given more. */
#define POOL_ENV 10
extern const char *const pool_env[POOL_ENV + 1];

/* strict, locked, standard, open: the profiles that have a template. */
bool pool_profile_good(const char *profile);

/* The language of that name, if it has a worker; the default one for an empty name. NULL: there is none. */
const struct language *pool_language(const char *name);

/* A template's name: its profile, +packages where the packages of the virtual environment are loaded ahead; before it
 * LANGUAGE: where that is not the default one. */
#define POOL_TEMPLATE_NAME (POOL_LANGUAGE + POOL_PROFILE + 16)
void pool_template_name(const struct language *language, const char *profile, bool packages,
                        char *out, size_t size);

/* struct jail_limits and its numbers in the order of JAIL_LIMITS. */
void pool_limits_pack(const struct jail_limits *l, uint64_t out[POOL_LIMITS]);
void pool_limits_unpack(const uint64_t in[POOL_LIMITS], struct jail_limits *ret);

/* NULL when a child that was locked with HAS can serve what is asked by WANT; else the name of the
 * first limit that it cannot widen. Wall time, CPU time, memory and output are tightened by whoever
 * supervises; the others must be the same. */
const char *pool_limits_cannot(const struct jail_limits *has, const struct jail_limits *want);

/* What installed packages keep outside /usr and read when they are loaded: files that are there, read-only.
 * Returns how many, at most POOL_SETTINGS. */
#define POOL_SETTINGS 2
size_t pool_settings(struct jail_bind *out);

#endif
