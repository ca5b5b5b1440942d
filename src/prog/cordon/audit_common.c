/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in a record come from guests. They are parsed by a library that is strict about them, and what is
 * printed is made visible character by character; the lines themselves are ASCII as long as they are ours. */
#include "audit_common.h"

#include "base/limits.h"
#include "base/units.h"
#include "base/utf8.h"
#include "output/visible.h"
#include "result.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A date as people write it: theirs, as `tail` prints it, or with a Z behind it UTC. 0: it is none. */
static uint64_t date_ms(const char *text)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm tm = {.tm_isdst = -1};
        const char *end = strptime(text, forms[i], &tm);
        const bool utc = end && strcmp(end, "Z") == 0;
        if (end && (utc || *end == 0) && tm.tm_year >= 70) {
            time_t t = utc ? timegm(&tm) : mktime(&tm);
            return t > 0 ? (uint64_t)t * 1000 : 1;
        }
    }
    return 0;
}

int audit_when(const char *text, uint64_t now_ms, uint64_t *ret, struct err *err)
{
    size_t len = strlen(text);
    uint64_t ago;
    char number[24];
    if (len > 1 && len < sizeof number && text[len - 1] == 'd' && !strchr(text, '-')) {
        memcpy(number, text, len - 1);
        number[len - 1] = 0;
        if (units_count(number, &ago) == 0 && ago < 1000000) {
            *ret = now_ms > ago * 86400000 ? now_ms - ago * 86400000 : 1;
            return 0;
        }
    } else if (!strchr(text, '-')) {
        if (units_millis(text, &ago) == 0) {
            *ret = now_ms > ago ? now_ms - ago : 1;
            return 0;
        }
    } else {
        *ret = date_ms(text);
        if (*ret)
            return 0;
    }
    return err_set(err, ERR_USAGE,
                   "'%.40s' is not a time: 30m, 2h, 7d (ago), or 2026-11-15T10:30 (your time; "
                   "with Z: UTC)",
                   text);
}

static bool is(const json_t *record, const char *key, const char *want)
{
    const char *have = json_string_value(json_object_get(record, key));
    return !want || (have && strcmp(have, want) == 0);
}

/* Whether the record cannot hold WANT, without parsing it: a text of plain characters stands in it as it is. */
static bool lacks(const struct audit_step *s, const char *want)
{
    size_t n = want ? strlen(want) : 0;
    for (size_t i = 0; i < n; i++)
        if (want[i] < ' ' || want[i] > '~' || want[i] == '"' || want[i] == '\\' || want[i] == '/')
            return false;
    return n && !memmem(s->text, s->len, want, n);
}

bool audit_wanted(const struct audit_filter *f, const struct audit_step *s, json_t **ret_json)
{
    *ret_json = NULL;
    if ((f->since && s->ts < f->since) || (f->until && s->ts >= f->until))
        return false;
    if (f->kind && strcmp(audit_kind_name(s->kind), f->kind) != 0)
        return false;
    if (!f->client && !f->status && !f->id)
        return true;
    if (lacks(s, f->client) || lacks(s, f->status) || lacks(s, f->id))
        return false;
    json_t *j = json_loadb(s->text, s->len, JSON_REJECT_DUPLICATES, NULL);
    if (j && is(j, "client_id", f->client) && is(j, "status", f->status) &&
        is(j, "execution_id", f->id)) {
        *ret_json = j;
        return true;
    }
    json_decref(j);
    return false;
}

/* ---- printing ---- */

static void show(const char *text, size_t len)
{
    struct output_visible v = {.one_line = true};
    struct buf out;
    buf_init(&out, 8 * (len + 16));
    if (output_visible_add(&v, text, len, &out) == 0 && output_visible_end(&v, &out) == 0 &&
        out.len)
        fwrite(out.data, 1, out.len, stdout);
    buf_done(&out);
}

static void show_time(uint64_t ts)
{
    time_t seconds = (time_t)(ts / 1000);
    struct tm tm;
    char text[32];
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    printf("%s.%03uZ", text, (unsigned)(ts % 1000));
}

/* ---- a line a record ---- */

enum { WHAT_WIDTH = 18 /* session s-01234567 */, VERDICT_WIDTH = 17 /* breaker half-open */ };

/* The local time, without what a person does not need to tell two records apart; with the date where it is another day. */
static void put_when(struct buf *out, uint64_t ts)
{
    time_t seconds = (time_t)(ts / 1000), now = time(NULL);
    struct tm then, today;
    char text[32] = "?";
    if (localtime_r(&seconds, &then) && localtime_r(&now, &today))
        strftime(text, sizeof text,
                 then.tm_yday == today.tm_yday && then.tm_year == today.tm_year
                     ? "%H:%M:%S"
                     : "%Y-%m-%dT%H:%M:%S",
                 &then);
    (void)!buf_str(out, text);
}

static const char *text_of(const json_t *record, const char *key)
{
    const char *text = json_string_value(json_object_get(record, key));
    return text ? text : "";
}

static const json_t *args_of(const json_t *record)
{
    return json_object_get(record, "args");
}

/* Stop and resume have no client: their subject is the person who said so. */
static bool subject_acts(const json_t *record)
{
    const char *event = text_of(args_of(record), "event");
    return strcmp(event, "gate.stop") == 0 || strcmp(event, "gate.resume") == 0;
}

/* A person is `uid 0, pid 7, terminal 136:1` in the record: the user is shown as who, process and terminal behind the reason. */
static const char *where_of(const json_t *record)
{
    const char *rest =
        subject_acts(record) ? strchr(text_of(args_of(record), "subject"), ',') : NULL;
    return rest ? rest + 1 + strspn(rest + 1, " ") : "";
}

/* Who: the client of a run; of a stop and a resume the person who said so. */
static void put_who(struct buf *out, const json_t *record)
{
    const char *person = text_of(args_of(record), "subject");
    if (!subject_acts(record))
        (void)!buf_str(out, text_of(record, "client_id"));
    else if (strncmp(person, "uid ", 4) == 0)
        (void)!buf_printf(out, "uid:%.*s", (int)strcspn(person + 4, ","), person + 4);
    else
        (void)!buf_str(out, person);
}

/* What: the tool, and the session of a call. */
static void put_what(struct buf *out, const struct audit_step *s, const json_t *record)
{
    const char *tool = text_of(record, "tool"), *session = text_of(record, "session");
    (void)!buf_str(out, *tool ? tool : audit_kind_name(s->kind));
    if (*session)
        (void)!buf_printf(out, " %s", session);
}

/* Which file or program; of other records what they are about: an approval, a breaker, a session's event. */
static const char *file_of(const json_t *record)
{
    const json_t *args = args_of(record), *argv = json_object_get(args, "argv");
    const char *program = json_string_value(json_array_get(argv, 0)), *name = text_of(args, "name"),
               *subject = subject_acts(record) ? "" : text_of(args, "subject");
    return *name                  ? name
           : program              ? program
           : *subject             ? subject
           : subject_acts(record) ? ""
                                  : text_of(args, "event");
}

/* Of a breaker and of a question what happened to it: `breaker open`, `approval asked`. Others say it by their kind. */
static bool put_event(struct buf *out, const struct audit_step *s, const json_t *record)
{
    static const struct {
        const char *event, *said;
    } rows[] = {
        {"gate.breaker.open", "breaker open"},
        {"gate.breaker.half-open", "breaker half-open"},
        {"gate.breaker.close", "breaker closed"},
        {"gate.approval.asked", "approval asked"},
        {"gate.approval.answered", "approval answered"},
        {"gate.approval.used", "approval granted"},
        {"gate.approval.denied", "approval denied"},
        {"gate.arena.verdict", "arena verdict"},
        {"gate.arena", "arena"},
    };
    const char *event = text_of(args_of(record), "event");
    if (s->kind == AUDIT_BREAKER || s->kind == AUDIT_APPROVAL)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (strcmp(rows[i].event, event) == 0)
                return buf_str(out, rows[i].said) == 0;
    return false;
}

static void put_verdict(struct buf *out, const struct audit_step *s, const json_t *record)
{
    const char *status = text_of(record, "status");
    const json_t *code = json_object_get(record, "exit_code");
    if (put_event(out, s, record))
        return;
    (void)!buf_str(out, *status ? status : audit_kind_name(s->kind));
    if (json_integer_value(code) > 0)
        (void)!buf_printf(out, " %lld", (long long)json_integer_value(code));
}

static void put_why(struct buf *out, const json_t *record)
{
    const json_t *args = args_of(record);
    const char *words[] = {text_of(record, "reason"), text_of(args, "detail"),
                           text_of(args, "from")};
    const json_int_t violations = json_integer_value(json_object_get(record, "violations_total"));
    size_t i = 0;
    while (i < sizeof words / sizeof *words - 1 && !*words[i])
        i++;
    (void)!buf_str(out, words[i]);
    if (*where_of(record))
        (void)!buf_printf(out, "%s(%s)", *words[i] ? " " : "", where_of(record));
    if (violations > 1)
        (void)!buf_printf(out, " (%lld violations)", (long long)violations);
}

/* One column: made visible, and filled up to WIDTH; what is longer pushes the rest to the right. */
static void put_column(const struct buf *text, size_t width)
{
    const size_t len = text->len;
    if (len)
        show(text->data, len);
    for (size_t letters = len ? utf8_count(text->data, len) : 0; letters < width; letters++)
        putchar(' ');
    putchar(' ');
}

void audit_print_head(void)
{
    printf("%-8s %6s %-16s %-*s %-16s %-*s %-20s %s\n", "TIME", "RECORD", "WHO", WHAT_WIDTH, "WHAT",
           "FILE", VERDICT_WIDTH, "VERDICT", "RUN", "WHY");
}

void audit_print_line(const struct audit_step *s, const json_t *record)
{
    struct buf text;
    buf_init(&text, MIB);
    put_when(&text, s->ts);
    put_column(&text, 8);
    printf("%6llu ", (unsigned long long)s->seq);
    buf_reset(&text);
    put_who(&text, record);
    put_column(&text, 16);
    buf_reset(&text);
    put_what(&text, s, record);
    put_column(&text, WHAT_WIDTH);
    buf_reset(&text);
    (void)!buf_str(&text, file_of(record));
    put_column(&text, 16);
    buf_reset(&text);
    put_verdict(&text, s, record);
    put_column(&text, VERDICT_WIDTH);
    buf_reset(&text);
    (void)!buf_str(&text, text_of(record, "execution_id"));
    put_column(&text, 20);
    buf_reset(&text);
    put_why(&text, record);
    if (text.len)
        show(text.data, text.len);
    putchar('\n');
    buf_done(&text);
}

void audit_print_sheet(const struct audit_step *s, const json_t *record)
{
    const char *key;
    json_t *value;
    printf("record %llu, %s", (unsigned long long)s->seq, s->file);
    if (s->line) /* where the log was not read from its beginning nobody knows */
        printf(":%llu", (unsigned long long)s->line);
    printf(", ");
    show_time(s->ts);
    putchar('\n');
    json_object_foreach((json_t *)record, key, value)
    {
        if (json_is_null(value) || (json_is_array(value) && !json_array_size(value)) ||
            (json_is_object(value) && !json_object_size(value)))
            continue;
        printf("  %-20s ", key);
        if (json_is_string(value)) {
            show(json_string_value(value), json_string_length(value));
        } else {
            char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
            show(text ? text : "", text ? strlen(text) : 0);
            free(text);
        }
        putchar('\n');
    }
}

void audit_print_raw(const struct audit_step *s)
{
    fwrite(s->text, 1, s->len, stdout);
    putchar('\n');
}

void audit_complain_step(const struct audit_step *s)
{
    char line[320];
    if (s->line)
        snprintf(line, sizeof line, "%s:%llu: not record %llu: %.200s", s->file,
                 (unsigned long long)s->line, (unsigned long long)s->seq, s->wrong);
    else
        snprintf(line, sizeof line, "%s: not record %llu: %.200s", s->file,
                 (unsigned long long)s->seq, s->wrong);
    result_complain("cordon audit", line);
}
