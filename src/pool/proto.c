/* SPDX-License-Identifier: Apache-2.0 */
/* Each message's fields stand here once: the same walk over a struct writes and reads it, so the two
 * sides cannot come apart. The wire has checked a frame's shape; here its fields are checked for sense,
 * so that the holder's loop never sees a name that is none or a text that was cut. The structs of numbers
 * are lists of uint64_t on the wire, in the order of their tables. */
#include "pool/proto.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define COUNT(type) (sizeof(struct type) / sizeof(uint64_t))
#define ROOM        sizeof(((struct pool_reply *)0)->numbers)
_Static_assert(sizeof(struct pool_session_numbers) <= ROOM &&
                   sizeof(struct pool_template_numbers) <= ROOM &&
                   sizeof(struct pool_holder_numbers) <= ROOM,
               "room for the longest list");

/* One of the two is set. */
struct walk {
    struct wire_writer *writer;
    struct wire_reader *reader;
    bool bad; /* a text was cut, a list has another length, a truth value is none */
};

static void text(struct walk *w, char *field, size_t size)
{
    char storage[(POOL_NOTE > POOL_REASON ? POOL_NOTE : POOL_REASON) + 2];
    base_assert(size < sizeof storage);
    if (w->writer) { /* a sentence may have been cut in the middle of a letter */
        size_t whole = utf8_valid_prefix(field, strlen(field));
        memcpy(storage, field, whole);
        storage[whole] = 0;
        wire_put_text(w->writer, storage);
        return;
    }
    wire_get_text(w->reader, storage, sizeof storage);
    size_t len = strlen(storage);
    w->bad = w->bad || len >= size;
    len = len < size ? len : size - 1;
    memcpy(field, storage, len);
    field[len] = 0;
}

static void number(struct walk *w, uint64_t *field)
{
    if (w->writer)
        wire_put_uint(w->writer, *field);
    else
        *field = wire_get_uint(w->reader);
}

static void truth(struct walk *w, bool *field)
{
    uint64_t n = *field;
    number(w, &n);
    w->bad = w->bad || n > 1;
    *field = n == 1;
}

static void numbers(struct walk *w, void *list, size_t count)
{
    if (w->writer)
        wire_put_uints(w->writer, list, count);
    else
        w->bad = wire_get_uints(w->reader, list, count) != count || w->bad;
}

static void limits(struct walk *w, struct jail_limits *l)
{
    uint64_t list[POOL_LIMITS] = {0};
    pool_limits_pack(l, list);
    numbers(w, list, POOL_LIMITS);
    pool_limits_unpack(list, l);
}

static int malformed(struct err *err, enum wire_type type, const char *what)
{
    return err_set(err, ERR_FORMAT, "%s: %s", wire_name(type), what);
}

/* ---- requests ---- */

size_t pool_request_descriptors(enum wire_type type)
{
    return type == WIRE_SESSION_LAYERS || type == WIRE_SESSION_NEW ? POOL_REQUEST_RIDE
           : type == WIRE_BACK || type == WIRE_SESSION_OWNER       ? 1
                                                                   : 0;
}

/* False for what is no request. */
static bool request_fields(struct walk *w, struct pool_request *q)
{
    switch (q->type) {
    case WIRE_LEASE:
        text(w, q->language, sizeof q->language);
        text(w, q->profile, sizeof q->profile);
        truth(w, &q->packages);
        limits(w, &q->limits);
        number(w, &q->number);
        return true;
    case WIRE_SESSION_NEW:
        text(w, q->name, sizeof q->name);
        text(w, q->language, sizeof q->language);
        text(w, q->profile, sizeof q->profile);
        truth(w, &q->packages);
        numbers(w, &q->rules, COUNT(pool_rules_numbers));
        text(w, q->role, sizeof q->role);
        limits(w, &q->limits);
        number(w, &q->number);
        number(w, &q->budget);
        return true;
    case WIRE_SESSION_CALL:
        text(w, q->name, sizeof q->name);
        truth(w, &q->yes);
        number(w, &q->budget);
        return true;
    case WIRE_BACK:
        truth(w, &q->yes);
        numbers(w, &q->use, COUNT(pool_use_numbers));
        text(w, q->reason, sizeof q->reason);
        text(w, q->note, sizeof q->note);
        return true;
    case WIRE_SESSION_BRANCH:
        text(w, q->name, sizeof q->name);
        text(w, q->note, sizeof q->note);
        return true;
    case WIRE_SESSION_EXPORT:
    case WIRE_SESSION_CLOSE:
    case WIRE_SESSION_INTERRUPT:
        text(w, q->name, sizeof q->name);
        return true;
    case WIRE_POOL_SET:
        text(w, q->language, sizeof q->language);
        text(w, q->profile, sizeof q->profile);
        truth(w, &q->packages);
        numbers(w, &q->set, COUNT(pool_set_numbers));
        return true;
    case WIRE_SESSION_NEXT:
    case WIRE_POOL_NEXT:
        number(w, &q->number);
        return true;
    case WIRE_POOL_STOP:
        truth(w, &q->yes);
        return true;
    case WIRE_SESSION_LAYERS:
    case WIRE_SESSION_OWNER:
    case WIRE_SESSION_BEGUN:
        return true;
    default:
        return false;
    }
}

int pool_request_write(const struct pool_request *request, struct buf *out, struct err *err)
{
    struct pool_request q = *request;
    struct wire_writer writer;
    struct walk w = {.writer = &writer};
    wire_begin(&writer, out, q.type);
    base_assert(request_fields(&w, &q));
    return wire_end(&writer) < 0 ? err_set(err, ERR_LIMIT, "%s is too large", wire_name(q.type))
                                 : 0;
}

static int request_sense(const struct pool_request *q, struct err *err)
{
    struct jail_spec spec;
    bool makes = q->type == WIRE_SESSION_NEW || q->type == WIRE_SESSION_BRANCH;
    bool named = makes || q->type == WIRE_SESSION_CALL || q->type == WIRE_SESSION_EXPORT ||
                 q->type == WIRE_SESSION_CLOSE || q->type == WIRE_SESSION_INTERRUPT;
    if (named && !(makes && !q->name[0]) && !pool_name_good(q->name))
        return malformed(err, q->type, "not a name for a session");
    if (!pool_language(q->language))
        return malformed(err, q->type, "no worker for that language");
    if (q->packages && pool_language(q->language) != language_default())
        return malformed(err, q->type, "packages are Python's");
    if (q->type == WIRE_LEASE || q->type == WIRE_SESSION_NEW) {
        jail_spec_init(&spec);
        spec.limits = q->limits;
        if (!q->rules.mark && !pool_profile_good(q->profile))
            return malformed(err, q->type, "no such profile");
        if (jail_spec_check(&spec, NULL) < 0)
            return malformed(err, q->type, "a limit is absurd");
    }
    if (q->rules.mark && (!q->profile[0] || q->rules.threads > 1 || q->rules.compute_only > 1 ||
                          q->rules.installed > 1))
        return malformed(err, q->type, "rules that make no sense");
    if (q->type == WIRE_SESSION_NEW && q->number > LIMIT_WALL_MS_MAX)
        return malformed(err, q->type, "a session that is idle for longer than a week");
    if (q->type == WIRE_POOL_SET && q->profile[0] && !pool_profile_good(q->profile))
        return malformed(err, q->type, "no such profile");
    if (q->type == WIRE_POOL_SET && q->set.warm != UINT64_MAX && q->set.warm > POOL_WARM)
        return malformed(err, q->type, "too many children");
    return 0;
}

int pool_request_read(const void *frame, size_t len, struct pool_request *ret, struct err *err)
{
    struct wire_reader reader;
    struct walk w = {.reader = &reader};
    int r = wire_open(&reader, frame, len, err);
    if (r < 0)
        return r;
    *ret = (struct pool_request){.type = reader.type};
    if (!request_fields(&w, ret))
        return malformed(err, reader.type, "not a request");
    return w.bad ? malformed(err, ret->type, "a field is out of its bounds")
                 : request_sense(ret, err);
}

/* ---- replies ---- */

static bool reply_fields(struct walk *w, struct pool_reply *p)
{
    switch (p->type) {
    case WIRE_LENT:
        text(w, p->name, sizeof p->name);
        text(w, p->language, sizeof p->language);
        text(w, p->profile, sizeof p->profile);
        text(w, p->role, sizeof p->role);
        text(w, p->note, sizeof p->note);
        numbers(w, &p->lent, COUNT(pool_lent_numbers));
        return true;
    case WIRE_DECLINED:
        text(w, p->state, sizeof p->state);
        text(w, p->reason, sizeof p->reason);
        return true;
    case WIRE_AGREED:
        text(w, p->name, sizeof p->name);
        return true;
    case WIRE_SESSION_IS:
        text(w, p->name, sizeof p->name);
        text(w, p->language, sizeof p->language);
        text(w, p->profile, sizeof p->profile);
        text(w, p->role, sizeof p->role);
        text(w, p->state, sizeof p->state);
        text(w, p->reason, sizeof p->reason);
        text(w, p->note, sizeof p->note);
        numbers(w, &p->session, COUNT(pool_session_numbers));
        return true;
    case WIRE_SESSION_LOG:
        numbers(w, &p->log, COUNT(pool_log_numbers));
        return true;
    case WIRE_POOL_IS:
        text(w, p->name, sizeof p->name);
        text(w, p->state, sizeof p->state);
        text(w, p->reason, sizeof p->reason);
        numbers(w, &p->numbers, sizeof p->numbers / sizeof *p->numbers);
        return true;
    case WIRE_POOL_END:
        return true;
    default:
        return false;
    }
}

int pool_reply_write(const struct pool_reply *reply, struct buf *out, struct err *err)
{
    struct pool_reply p = *reply;
    struct wire_writer writer;
    struct walk w = {.writer = &writer};
    wire_begin(&writer, out, p.type);
    base_assert(reply_fields(&w, &p));
    return wire_end(&writer) < 0 ? err_set(err, ERR_LIMIT, "%s is too large", wire_name(p.type))
                                 : 0;
}

int pool_reply_read(const void *frame, size_t len, struct pool_reply *ret, struct err *err)
{
    struct wire_reader reader;
    struct walk w = {.reader = &reader};
    int r = wire_open(&reader, frame, len, err);
    if (r < 0)
        return r;
    *ret = (struct pool_reply){.type = reader.type};
    if (!reply_fields(&w, ret))
        return malformed(err, reader.type, "not a reply");
    return w.bad ? malformed(err, ret->type, "a field is out of its bounds") : 0;
}
