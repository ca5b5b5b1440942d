/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest wrote, made clean for a reader: no binary, no internal path, no secret, no flood.
 *
 * Takes:   the guest's bytes as they come, in any chunks; the rules that say what is internal.
 * Gives:   text: valid UTF-8, scrubbed, redacted, cut to the cap (head, marker, tail), escaped; and exact counts.
 * Never:   depends on how the bytes were cut into chunks; takes more than linear time; shows a secret or
 *          a path in half where the cut or the end of the stream went through it.
 * Runs in: the supervisor.
 *
 * The order is fixed: binary, scrub and redact, cut, escape. What is cut away was scrubbed before, so a
 * secret that lies across the cut is already gone; what is escaped was cut before, so no escape is halved.
 *
 *     struct output_rules *rules;                       once a process or a policy
 *     output_rules_new(known, count, OUTPUT_SCRUB | OUTPUT_REDACT, &rules, &err);
 *     struct output_clean c;                            one a stream
 *     output_clean_init(&c, rules, cap, OUTPUT_BYTES);
 *     output_clean_add(&c, data, len);                  for each chunk
 *     output_clean_end(&c);
 *     output_clean_text(&c, OUTPUT_ESCAPE_HTML, &text); what goes into JSON
 *     output_clean_done(&c);
 */
#ifndef OUTPUT_CLEAN_H
#define OUTPUT_CLEAN_H

#include "base/buf.h"
#include "output/capture.h"
#include "output/visible.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_BINARY "[Binary output detected and removed]"

enum output_escape {
    OUTPUT_ESCAPE_NONE,
    OUTPUT_ESCAPE_HTML,     /* & < > " ' as &amp; &lt; &gt; &quot; &#x27; */
    OUTPUT_ESCAPE_TERMINAL, /* control sequences made visible: output/visible.h */
};

enum output_unit { OUTPUT_BYTES, OUTPUT_CHARACTERS };

enum { OUTPUT_SCRUB = 1, OUTPUT_REDACT = 2 }; /* paths; secrets */

/* A string that only the supervisor knows, and what stands in its place. A path counts only as a whole
 * path (`/work/x` is not in `/work/xy`, nor in `/net/work/x`); a secret counts anywhere. */
struct output_known {
    const char *text;
    size_t len;
    const char
        *label; /* whole replacement: "/STATE", "[REDACTED:API_KEY]"; borrowed for the call */
    bool secret;
};

#define OUTPUT_KNOWN_MAX  512 /* strings that one set of rules knows */
#define OUTPUT_SECRET_MIN 8   /* bytes: a shorter value is not looked for */

struct output_rules; /* compiled once, then only read: many streams share them */

/* Paths that name nothing in particular (`/`, `/tmp`, `/usr` and what else every jail has) and secrets
 * below 8 bytes are left out. ERR_LIMIT past OUTPUT_KNOWN_MAX or 256 KiB of text. */
ERR_MUST_USE int output_rules_new(const struct output_known *known, size_t count, unsigned what,
                                  struct output_rules **ret_rules, struct err *err);
void output_rules_free(struct output_rules *rules);

/* The values in ENV (environ's form) whose names look like a secret's: *_KEY, *TOKEN*, *SECRET*,
 * *PASSWORD*, ...; 8 bytes and more. Fills OUT, returns how many; label points into static text. */
size_t output_env_secrets(const char *const *env, size_t nenv, struct output_known *out,
                          size_t max);

bool output_secret_name(const char *name, size_t len);

struct output_span {
    size_t start, end; /* in what is held */
    uint32_t string;
};
#define OUTPUT_SPANS 8
struct output_known_state { /* of known.c */
    uint32_t node;
    int before;      /* the byte before what is held; -1: the beginning */
    struct buf held; /* looked at, not yet passed on; what lies before `from` was */
    size_t from;
    struct output_span spans[OUTPUT_SPANS];
    size_t nspans;
};
struct output_pattern_state { /* of patterns.c */
    int swallow;              /* the class that is being swallowed; 0: none */
    unsigned step;            /* how far into the end of a private key */
    int before;
    struct buf held;
};

struct output_clean {
    const struct output_rules *rules;
    struct output_known_state known;
    struct output_pattern_state pattern;
    struct output_capture kept;
    struct output_visible visible;
    unsigned char part[4]; /* the beginning of a UTF-8 sequence that a chunk cut */
    size_t npart;
    size_t shown; /* of the head */
    bool binary, ended, told;
    bool lost;                   /* no memory: nothing more is shown */
    uint64_t bytes_in;           /* all that came, as it came */
    uint64_t scrubbed, redacted; /* replacements made */
};

void output_clean_init(struct output_clean *c, const struct output_rules *rules, uint64_t cap,
                       enum output_unit unit);
void output_clean_done(struct output_clean *c);

/* Without memory nothing fails: what is missing counts as cut, and the text says so. */
void output_clean_add(struct output_clean *c, const void *data, size_t len);
void output_clean_end(struct output_clean *c); /* no more will come */

bool output_clean_truncated(const struct output_clean *c);
uint64_t output_clean_cut(const struct output_clean *c); /* units between head and tail */

/* The whole text, after the end. ERR_LIMIT or ERR_MEMORY of OUT. */
ERR_MUST_USE int output_clean_text(const struct output_clean *c, enum output_escape escape,
                                   struct buf *out);

/* For a reader who watches: what has become final since the last call. Whoever uses this uses it to the
 * end, with the same escape; a stream that turns out to be binary is shown up to there, then said so. */
ERR_MUST_USE int output_clean_show(struct output_clean *c, enum output_escape escape,
                                   struct buf *out);

/* One text in one call: a message, a value, an operand. */
ERR_MUST_USE int output_clean_once(const struct output_rules *rules, const void *data, size_t len,
                                   uint64_t cap, enum output_unit unit, enum output_escape escape,
                                   struct buf *out);

#endif
