/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a request, whole: the one object that the command line prints and clients get.
 *
 * Takes:   a verdict, an outcome of the jail, captured streams, what the worker said.
 * Gives:   status, reason, violations, streams, value, and the JSON object of the contract.
 * Never:   leaves a key out: a reader never has to ask whether one is there.
 * Runs in: the supervisor.
 */
#ifndef FLOW_RESULT_H
#define FLOW_RESULT_H

#include "audit/audit.h"
#include "base/buf.h"
#include "base/jsonw.h"
#include "check/report.h"
#include "intake/intake.h"
#include "jail/run.h"
#include "output/clean.h"
#include "policy/profile.h"

#include <stdbool.h>

enum flow_status {
    FLOW_OK,
    FLOW_ERROR,
    FLOW_BLOCKED,
    FLOW_DENIED,
    FLOW_TIMEOUT,
    FLOW_MEMORY,
    FLOW_OUTPUT,
    FLOW_CRASHED,
    FLOW_REFUSED,
};
const char *flow_status_name(enum flow_status s);

/* What became of it. Harmless: libraries try it when they start and do well without; recorded, not announced. */
enum flow_violation_end { FLOW_WAS_DENIED, FLOW_WAS_SEEN, FLOW_WAS_HARMLESS, FLOW_WAS_UNDONE };

#define FLOW_PLACES 16
struct flow_violation {
    enum flow_violation_end end;
    char layer[16], rule[64], detail[320], hint[LIMIT_HINT];
    unsigned line, column;
    uint64_t times;
    /* of what the judge found several times: the first so many places, the one above among them */
    struct check_place places[FLOW_PLACES];
    size_t place_count;
};

struct flow_file {
    char *path; /* as the guest sees it */
    uint64_t bytes;
    bool changed;     /* the file was there before the run */
    const char *type; /* of an image; NULL: none that is known */
    char *saved;      /* where on the host it was taken to; NULL: nowhere */
    char *
        unsaved; /* why it was not taken, though it was asked for; NULL: it was taken, or not asked for */
};

#define FLOW_STEPS_MAX 15

/* What came of the files of a run in a workspace. */
struct flow_snapshot {
    char workspace[130]; /* empty: it was in none */
    char id[41];         /* of the commit that is the head now; empty: nothing was committed */
    bool changed;        /* that commit is this run's */
    unsigned percent;    /* of the room for its store that is used; 0: unknown */
    char why[240];       /* nothing was committed, because */
    struct buf left; /* path and reason of each file that is not in it, each with a NUL behind it */
};

#define FLOW_NOTES_MAX 8

struct flow_result {
    char id[40];
    enum flow_status status;
    unsigned line;        /* of the error; 0: none */
    const char *layer;    /* the one that ended it, or NULL */
    const char *category; /* of the error */
    char reason[400];     /* empty when it ran to its end */
    char type[80], message[1100];
    char hint[400];    /* what to do about the error; empty: nobody knows */
    int retry_after_s; /* the gate's word; 0: none */

    struct flow_violation *violations;
    size_t violation_count, violation_cap;
    uint64_t violations_total;

    const char *notes[FLOW_NOTES_MAX]; /* sentences of ours about how it ran, each once */
    size_t note_count;

    /* where it ran: */
    uint64_t wall_us, cpu_us, memory;
    uint64_t mapped; /* as in jail_outcome */
    const char *memory_by;
    int exit_code, signal;
    int stopped_by; /* as in jail_outcome */
    struct jail_layers layers;
    struct buf streams[2]; /* capped and cleaned */
    uint64_t bytes[2];     /* by stream, all that was written */
    struct buf value, final;
    struct flow_file *files;
    size_t file_count;
    uint64_t host_calls;                     /* that it made */
    struct audit_span steps[FLOW_STEPS_MAX]; /* that it went through, and the time of each */
    size_t nsteps;
    char session[64];
    struct flow_snapshot snapshot;
    struct intake_source
        intake; /* what was taken from the text; `code` is NULL where it is the program itself */

    uint64_t changed_ns;            /* the newest stamp of change in /workspace; 0: nobody looked */
    bool ran;                       /* the program was started */
    bool judged, cleaned, recorded; /* layers input, output, audit */
    bool truncated, has_value, is_final;
    bool files_cut;     /* there were more */
    bool files_touched; /* something in /workspace was made, changed or removed by this call */
    bool files_gone;    /* the listed files were dropped with the run: nobody asked for them */
    bool unsaved;       /* one that was asked for was not taken */
    bool alive;         /* the session goes on */
    bool left_itself;   /* the program ended with SystemExit */
    bool warm;          /* a child of the pool ran it */

    struct flow_left
        *left; /* descriptors of a child that is dead: closed when the result has been read */
};

void flow_result_init(struct flow_result *r); /* a new id, status ok */
void flow_result_done(struct flow_result *r);

/* Past 2 * LIMIT_VIOLATIONS they are counted, not kept. */
void flow_result_violation(struct flow_result *r, const struct flow_violation *v);
/* SENTENCE stays where it is. False: it was there already, or there is no room for it. */
static inline bool flow_result_note(struct flow_result *r, const char *sentence)
{
    for (size_t i = 0; i < r->note_count; i++)
        if (r->notes[i] == sentence)
            return false;
    if (r->note_count == FLOW_NOTES_MAX)
        return false;
    r->notes[r->note_count++] = sentence;
    return true;
}

void flow_result_take(struct flow_result *r, const struct jail_violation *from);

const char *flow_violation_end_name(enum flow_violation_end end); /* denied, seen, harmless */
/* outcomes.c: which violations were only seen, by the rules of PROFILE (NULL: none was), and which are harmless. */
/* STARTS: the program was let start others. */
void flow_result_ends(struct flow_result *r, const struct policy_profile *profile, bool starts);

/* From how the jail saw it end. */
void flow_result_outcome(struct flow_result *r, const struct jail_outcome *o,
                         const struct jail_limits *limits);

/* Lists what a browser would run in what the program wrote (FLOW_RULE_MARKUP), for a result that is data and not escaped. */
#define FLOW_RULE_MARKUP "output.markup"
void flow_result_markup(struct flow_result *r);

/* It never ran: the jail could not be built, or (UsageError) what was asked for is not there. */
void flow_result_refuse(struct flow_result *r, const struct err *why);

/* Sets the status and what is said about it, in one slot. TYPE: the `error.type` of docs/exec.md. */
void flow_result_say(struct flow_result *r, enum flow_status status, const char *layer,
                     const char *category, const char *type, const char *reason);

/* The guest's words beside its streams (value, final, message, reason, details) made as clean as those. CAP: characters
 * of value and final. What never ran is scrubbed and not escaped. */
void flow_result_clean(struct flow_result *r, const struct output_rules *rules,
                       enum output_escape escape, uint64_t cap);

/* Words of a guest that others keep or tell, as clean as in a result; S has room for SIZE bytes. */
void flow_words_clean(char *s, size_t size, const struct output_rules *rules);

/* The object of the contract, one line with its newline. */
void flow_violation_json(struct jsonw *j, const char *key, const struct flow_violation *v);
ERR_MUST_USE int flow_result_json(const struct flow_result *r, struct buf *out);

#endif
