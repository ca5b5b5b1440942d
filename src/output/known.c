/* SPDX-License-Identifier: Apache-2.0 */
/* Known strings (secrets of our environment, internal paths) are found by one automaton over all of them
 * (Aho and Corasick): one step a byte whatever the text, so neither a hostile text nor a long list makes
 * it slow. Children are lists, not tables: the automaton of an ordinary environment is built in some
 * microseconds, and only the root, where nearly all bytes end, has a table.
 *
 * Matches that overlap become one; a match is looked at when the byte behind it is there, because a path
 * counts only as a whole. Nothing here depends on where a chunk ends: a decision is made at a byte. */
#include "base/limits.h"
#include "output/rules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PIECE     4096U /* a longer string is known as pieces of this size */
#define PARTIAL   8U /* the beginning of a secret at the end of a stream: this much is redacted */
#define TEXT_MAX  (256 * KIB)
#define LABEL_MAX 128U

/* ---- building ---- */

static uint32_t new_node(struct output_rules *r, unsigned char byte, uint16_t depth)
{
    if (r->nnodes == r->node_cap) {
        size_t cap = r->node_cap ? 2 * r->node_cap : 256;
        struct output_node *p = realloc(r->nodes, cap * sizeof *p);
        if (!p)
            return 0;
        r->nodes = p;
        r->node_cap = cap;
    }
    r->nodes[r->nnodes] = (struct output_node){.byte = byte, .depth = depth};
    return r->nnodes++;
}

static uint32_t child_of(const struct output_rules *r, uint32_t node, unsigned char byte)
{
    if (node == 0)
        return r->root[byte];
    for (uint32_t n = r->nodes[node].child; n; n = r->nodes[n].sibling)
        if (r->nodes[n].byte == byte)
            return n;
    return 0;
}

static int insert(struct output_rules *r, const char *text, size_t len, uint32_t string)
{
    uint32_t node = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];
        uint32_t next = child_of(r, node, byte);
        if (!next) {
            next = new_node(r, byte, (uint16_t)(i + 1));
            if (!next)
                return ERR_MEMORY;
            r->nodes[next].sibling = r->nodes[node].child;
            r->nodes[node].child = next;
            if (node == 0)
                r->root[byte] = next;
        }
        node = next;
        if (r->strings[string - 1].secret)
            r->nodes[node].secret = string;
    }
    if (!r->nodes[node].string) /* of two equal ones the first names it */
        r->nodes[node].string = string;
    return 0;
}

/* Breadth first, as a queue of all nodes: a node's failure is less deep than itself. */
static int link_failures(struct output_rules *r)
{
    uint32_t *queue = malloc(r->nnodes * sizeof *queue), head = 0, tail = 0;
    if (!queue)
        return ERR_MEMORY;
    queue[tail++] = 0;
    while (head < tail) {
        uint32_t parent = queue[head++];
        for (uint32_t n = r->nodes[parent].child; n; n = r->nodes[n].sibling) {
            struct output_node *node = &r->nodes[n];
            uint32_t f = r->nodes[parent].fail, to = 0;
            while (parent && !(to = child_of(r, f, node->byte)) && f)
                f = r->nodes[f].fail;
            node->fail = to;
            node->dict = r->nodes[to].string ? to : r->nodes[to].dict;
            queue[tail++] = n;
        }
    }
    free(queue);
    return 0;
}

/* What every root has, or what is too general to name: scrubbing it would only spoil the text. */
static bool general_path(const char *s, size_t len)
{
    static const char *const words[] = {
        "",           "/bin",       "/boot",    "/dev",     "/etc",      "/home",    "/lib",
        "/lib64",     "/live",      "/mnt",     "/opt",     "/proc",     "/run",     "/sbin",
        "/srv",       "/sys",       "/tmp",     "/usr",     "/var",      "/usr/bin", "/usr/lib",
        "/usr/local", "/usr/share", "/var/tmp", "/var/lib", "/workspace"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == len && memcmp(words[i], s, len) == 0)
            return true;
    return len < 4 || s[0] != '/';
}

static int add_string(struct output_rules *r, const struct output_known *k, struct err *err)
{
    size_t len = k->len, label = strlen(k->label);
    while (!k->secret && len && k->text[len - 1] == '/')
        len--;
    if (k->secret ? len < OUTPUT_SECRET_MIN : general_path(k->text, len))
        return 0;
    if (label > LABEL_MAX)
        return err_set(err, ERR_LIMIT, "a label of more than %u bytes", LABEL_MAX);
    struct output_string s = {
        .label = (uint32_t)r->labels.len, .label_len = (uint32_t)label, .secret = k->secret};
    if (buf_add(&r->labels, k->label, label) < 0)
        return err_set(err, ERR_MEMORY, "no memory for the output's rules");
    for (size_t at = 0; at < len; at += s.len) { /* the last piece is at least half a piece */
        size_t left = len - at;
        s.len = (uint32_t)(left <= PIECE ? left : left < 2 * PIECE ? left / 2 : PIECE);
        r->strings[r->nstrings++] = s;
        if (insert(r, k->text + at, s.len, (uint32_t)r->nstrings) < 0)
            return err_set(err, ERR_MEMORY, "no memory for the output's rules");
    }
    return 0;
}

int output_known_build(struct output_rules *r, const struct output_known *known, size_t count,
                       struct err *err)
{
    size_t total = 0, pieces = 0;
    for (size_t i = 0; i < count && count <= OUTPUT_KNOWN_MAX; i++) {
        total += known[i].len;
        pieces += known[i].len / PIECE * 2 + 1;
    }
    if (count > OUTPUT_KNOWN_MAX || total > TEXT_MAX)
        return err_set(err, ERR_LIMIT, "more than %d known strings or %llu bytes of them",
                       OUTPUT_KNOWN_MAX, TEXT_MAX);
    buf_init(&r->labels, count * LABEL_MAX + 1);
    r->strings = calloc(pieces + 1, sizeof *r->strings);
    if (!r->strings || (new_node(r, 0, 0), r->nnodes != 1))
        return err_set(err, ERR_MEMORY, "no memory for the output's rules");
    for (size_t i = 0; i < count; i++) {
        if (!(r->what & (known[i].secret ? OUTPUT_REDACT : OUTPUT_SCRUB)))
            continue;
        int e = add_string(r, &known[i], err);
        if (e < 0)
            return e;
    }
    if (r->nstrings == 0)
        r->nnodes = 0;
    else if (link_failures(r) < 0)
        return err_set(err, ERR_MEMORY, "no memory for the output's rules");
    return 0;
}

void output_known_free(struct output_rules *r)
{
    if (r->nodes) /* its bytes are secrets */
        explicit_bzero(r->nodes, r->node_cap * sizeof *r->nodes);
    free(r->nodes);
    free(r->strings);
    buf_done(&r->labels);
}

/* ---- looking ---- */

static bool name_byte(int c)
{
    return isalnum(c) || c == '_' || c == '-' || c >= 0x80;
}

struct scan {
    struct output_clean *c;
    const unsigned char *text;
    size_t from; /* what lies before was passed on */
};

static void pass_on(struct scan *s, size_t upto)
{
    if (upto <= s->from)
        return;
    output_pattern_feed(s->c, s->text + s->from, upto - s->from, false);
    s->from = upto;
}

/* Passes on the spans that nothing can change any more, with the text before them. */
static void flush(struct scan *s, size_t decided)
{
    struct output_known_state *st = &s->c->known;
    size_t n = 0;
    for (; n < st->nspans && st->spans[n].end <= decided; n++) {
        const struct output_string *string = &s->c->rules->strings[st->spans[n].string - 1];
        pass_on(s, st->spans[n].start);
        output_pattern_feed(s->c, (const unsigned char *)s->c->rules->labels.data + string->label,
                            string->label_len, false);
        s->from = st->spans[n].end;
        if (string->secret)
            s->c->redacted++;
        else
            s->c->scrubbed++;
    }
    st->nspans -= n;
    if (n && st->nspans)
        memmove(st->spans, st->spans + n, st->nspans * sizeof *st->spans);
}

static void add_span(struct scan *s, size_t start, size_t end, uint32_t string)
{
    struct output_known_state *st = &s->c->known;
    size_t best = end - start;
    while (st->nspans && (st->spans[st->nspans - 1].end > start || st->nspans == OUTPUT_SPANS)) {
        const struct output_span *old = &st->spans[--st->nspans];
        if (old->end - old->start > best) {
            best = old->end - old->start;
            string = old->string;
        }
        start = old->start < start ? old->start : start;
    }
    st->spans[st->nspans++] = (struct output_span){start, end, string};
}

/* The strings that end before END, the longest first; NEXT is the byte there, -1 if there is none. */
static void look(struct scan *s, uint32_t node, size_t end, int next)
{
    const struct output_rules *r = s->c->rules;
    for (uint32_t n = r->nodes[node].string ? node : r->nodes[node].dict; n; n = r->nodes[n].dict) {
        const struct output_string *string = &r->strings[r->nodes[n].string - 1];
        size_t start = end - string->len;
        int before = start ? s->text[start - 1] : s->c->known.before;
        if (string->secret ||
            (!name_byte(next) && !name_byte(before) && before != '.' && before != '~')) {
            flush(s, end - r->nodes[node].depth);
            add_span(s, start, end, r->nodes[n].string);
            return;
        }
    }
}

static uint32_t step(const struct output_rules *r, uint32_t node, unsigned char byte)
{
    for (;;) {
        uint32_t next = child_of(r, node, byte);
        if (next || !node)
            return next;
        node = r->nodes[node].fail;
    }
}

/* The stream ends in the beginning of a secret: whoever cut it there must not show that much. */
static void look_at_end(struct scan *s, uint32_t node, size_t len)
{
    const struct output_rules *r = s->c->rules;
    look(s, node, len, -1);
    for (; r->nodes[node].depth >= PARTIAL; node = r->nodes[node].fail)
        if (r->nodes[node].secret) {
            add_span(s, len - r->nodes[node].depth, len, r->nodes[node].secret);
            return;
        }
}

static uint32_t scan_bytes(struct scan *s, uint32_t node, size_t at, size_t len)
{
    const struct output_rules *r = s->c->rules;
    for (size_t i = at; i < len; i++) {
        if (!node) {
            while (i < len && !r->root[s->text[i]])
                i++;
            if (i == len)
                break;
        } else if (r->nodes[node].string || r->nodes[node].dict) {
            look(s, node, i, s->text[i]);
        }
        node = step(r, node, s->text[i]);
    }
    return node;
}

static void keep_rest(struct scan *s, size_t len, size_t old)
{
    struct output_known_state *st = &s->c->known;
    size_t from = s->from;
    bool was_held = old > 0;
    if (from == len || !was_held || from > len / 2) { /* move only when that frees half */
        if (from)
            st->before = s->text[from - 1];
        for (size_t i = 0; i < st->nspans; i++) {
            st->spans[i].start -= from;
            st->spans[i].end -= from;
        }
        if (was_held) {
            memmove(st->held.data, st->held.data + from, len - from);
            st->held.len = len - from;
        } else if (from < len && !output_hold(s->c, &st->held, s->text + from, len - from)) {
            return;
        }
        from = 0;
    }
    st->from = from;
}

void output_known_feed(struct output_clean *c, const unsigned char *data, size_t len, bool end)
{
    struct output_known_state *st = &c->known;
    if (!c->rules || !c->rules->nnodes) {
        output_pattern_feed(c, data, len, end);
        return;
    }
    struct scan s = {.c = c, .text = data, .from = st->from};
    size_t old = st->held.len;
    if (old) {
        if (!output_hold(c, &st->held, data, len))
            return;
        s.text = (const unsigned char *)st->held.data;
        len = st->held.len;
    }
    st->node = scan_bytes(&s, st->node, old, len);
    if (end)
        look_at_end(&s, st->node, len);
    size_t decided = end ? len : len - c->rules->nodes[st->node].depth;
    flush(&s, decided);
    if (st->nspans && st->spans[0].start < decided)
        decided = st->spans[0].start;
    pass_on(&s, decided);
    keep_rest(&s, len, old);
    if (end)
        output_pattern_feed(c, NULL, 0, true);
}
