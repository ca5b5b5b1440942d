/* SPDX-License-Identifier: Apache-2.0 */
/* The cleaning: markup, binary output and paths, every form once, then properties: chunks do not matter, a secret
 * never shows whatever the cap, the automaton agrees with a search by brute force, time grows as the text. */
#include "base/clock.h"
#include "base/limits.h"
#include "base/tap.h"
#include "output/clean.h"
#include "output/config.h"

#include <unistd.h>

#define ALL (OUTPUT_SCRUB | OUTPUT_REDACT)

static uint64_t seed = 88172645463325252ULL;
static size_t dice(size_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed % n);
}

static struct output_rules *rules_of(const struct output_known *known, size_t count, unsigned what)
{
    struct output_rules *r = NULL;
    struct err err = ERR_INIT;
    if (output_rules_new(known, count, what, &r, &err) < 0)
        printf("# %s\n", err.msg);
    return r;
}

/* CHUNK 0: chunks of random sizes. */
static void clean(const struct output_rules *r, const char *s, size_t len, size_t cap,
                  enum output_unit unit, enum output_escape escape, size_t chunk, struct buf *out)
{
    struct output_clean c;
    output_clean_init(&c, r, cap, unit);
    for (size_t at = 0, n; at < len; at += n) {
        n = chunk ? chunk : 1 + dice(dice(8) ? 7 : 300);
        n = n < len - at ? n : len - at;
        char *copy =
            malloc(n); /* a sanitizer sees a byte too many, and one that is kept too long */
        memcpy(copy, s + at, n);
        output_clean_add(&c, copy, n);
        free(copy);
    }
    output_clean_end(&c);
    buf_init(out, 64 * MIB);
    tap_count += output_clean_text(&c, escape, out) < 0 ? 1000000 : 0; /* breaks the plan */
    if (!out->data && buf_add(out, "", 0) < 0)
        abort();
    output_clean_done(&c);
}

static void row(const char *in, const char *want)
{
    static struct output_rules *r;
    struct buf out;
    bool same = true;
    if (!r)
        r = rules_of(NULL, 0, ALL);
    for (size_t chunk = 1; chunk < strlen(in) + 2; chunk++) {
        clean(r, in, strlen(in), LIMIT_OUTPUT, OUTPUT_BYTES, OUTPUT_ESCAPE_NONE, chunk, &out);
        if (same && strcmp(out.data, want) != 0)
            printf("# chunks of %zu: '%s'\n", chunk, out.data);
        same = same && strcmp(out.data, want) == 0;
        buf_done(&out);
    }
    tap_ok(same, "'%.50s' in every chunk size", strchr(in, '\n') ? "(lines)" : in);
}

#define D20 "a1b2c3d4e5f6g7h8i9j0"
#define D40 D20 D20

static void path_rules(void)
{
    struct buf out;
    struct output_rules *r = rules_of(NULL, 0, ALL);
    const char script[] = "<script>alert(1)</script>\n";
    clean(r, script, strlen(script), LIMIT_OUTPUT, OUTPUT_BYTES, OUTPUT_ESCAPE_HTML, 0, &out);
    tap_eq_str(out.data, "&lt;script&gt;alert(1)&lt;/script&gt;\n", "markup is escaped for HTML");
    buf_done(&out);
    clean(r, "\xff\xfe\0\x01", 4, LIMIT_OUTPUT, OUTPUT_BYTES, OUTPUT_ESCAPE_HTML, 0, &out);
    tap_eq_str(out.data, "[Binary output detected and removed]", "binary output is replaced whole");
    buf_done(&out);
    clean(r, "&<>\"'", 5, LIMIT_OUTPUT, OUTPUT_BYTES, OUTPUT_ESCAPE_HTML, 0, &out);
    tap_eq_str(out.data, "&amp;&lt;&gt;&quot;&#x27;",
               "five characters are escaped for HTML, & first");
    buf_done(&out);
    row("see /home/alice/x and /mnt/home/bob", "see /home/USER/x and /mnt/home/USER");
    row("/home/ /home// /home/a", "/home/ /home// /home/USER");
    row("{\"p\": \"/home/bob\", 'q': '/home/eve'}", "{\"p\": \"/home/USER\", 'q': '/home/USER'}");
    row("/tmp/sandbox_a1B2/x /tmp/sandbox_ /tmp/sandbox",
        "/tmp/SANDBOX/x /tmp/sandbox_ /tmp/sandbox");
    row("  File \"/opt/app/x.py\", line 12, in f\n", "  File \"REDACTED\", line 12, in f\n");
    row("File \"/home/u\", line 3", "File \"REDACTED\", line 3");
    row("File \"<string>\", line 1\nFile \"x.py\"", "File \"<string>\", line 1\nFile \"x.py\"");
    row("File \"/\" File \"/no end /home/x y", "File \"/\" File \"/no end /home/USER y");
    tap_ok(r != NULL, "cleaning rules are made without known strings");
    output_rules_free(r);
}

static void secret_rules(void)
{
    row("key AKIAIOSFODNN7EXAMPLE.", "key [REDACTED:aws].");
    row("AKIAIOSFODNN7EXAMPLEX xAKIAIOSFODNN7EXAMPLE",
        "AKIAIOSFODNN7EXAMPLEX xAKIAIOSFODNN7EXAMPLE");
    row("aws_secret_access_key = " D40, "aws_secret_access_key = [REDACTED:aws]");
    row("\"SecretAccessKey\": \"" D40 "\"}", "\"SecretAccessKey\": \"[REDACTED:aws]\"}");
    row("ghp_" D40 " ghp_short github_pat_" D20 "_" D40,
        "[REDACTED:github] ghp_short [REDACTED:github]");
    row("xoxb-123456789012-" D20, "[REDACTED:slack]");
    row("OPENAI=sk-" D20 " sk-proj-" D40 "\n", "OPENAI=[REDACTED:api-key] [REDACTED:api-key]\n");
    row("sk-learn-is-not-a-secret-name-at-all task-1234567890123456789012",
        "sk-learn-is-not-a-secret-name-at-all task-1234567890123456789012");
    row("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl!", "[REDACTED:jwt]!");
    row("eyJhbGciOiJIUzI1NiJ9.other", "eyJhbGciOiJIUzI1NiJ9.other");
    row("Authorization: Bearer abc.def-123456789~x\r\n",
        "Authorization: Bearer [REDACTED:bearer]\r\n");
    row("the bearer of this letter, Bearer authentication-scheme",
        "the bearer of this letter, Bearer authentication-scheme");
    row("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [REDACTED:basic]");
    row("postgres://bob:hunter2@db/x http://host:80/a@b", "postgres://bob:[REDACTED:password]@db/x "
                                                          "http://host:80/a@b");
    row("AIzaSyA" D20 "b1b2b3b4b5b6 glpat-" D20 " npm_" D40, "[REDACTED:google] [REDACTED:gitlab] "
                                                             "[REDACTED:npm]");
    row("a\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nMIIE+/=\nAAAA\n"
        "-----END RSA PRIVATE KEY-----\nb",
        "a\n[REDACTED:private-key]\nb");
    row("'-----BEGIN PRIVATE KEY-----\\nMIIE\\n------END PRIVATE KEY-----\\n'",
        "'[REDACTED:private-key]\\n'");
    row("grep '-----BEGIN PRIVATE KEY-----' x", "grep '[REDACTED:private-key]' x");
    row("-----BEGIN PUBLIC KEY-----\nMIIE", "-----BEGIN PUBLIC KEY-----\nMIIE");
}

static void binary(void)
{
    struct output_rules *r = rules_of(NULL, 0, ALL);
    static const struct {
        const char *in;
        size_t len;
        const char *want;
    } rows[] = {
        {"caf\xc3\xa9 \xf0\x9f\x98\x80", 10, "caf\xc3\xa9 \xf0\x9f\x98\x80"},
        {"good until here \xff", 17, OUTPUT_BINARY},
        {"a\0b", 3, OUTPUT_BINARY},
        {"\xed\xa0\x80", 3, OUTPUT_BINARY},
        {"end in half \xe2\x82", 14, "end in half \xef\xbf\xbd"},
        {"\xe2\x82"
         "A",
         3, OUTPUT_BINARY},
        {"\033[31mred\x07", 9, "\033[31mred\x07"},
        {"", 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool same = true;
        for (size_t chunk = 1; chunk < 20; chunk++) {
            struct buf out;
            clean(r, rows[i].in, rows[i].len, 1000, OUTPUT_BYTES, OUTPUT_ESCAPE_NONE, chunk, &out);
            same = same && strcmp(out.data, rows[i].want) == 0;
            buf_done(&out);
        }
        tap_ok(same, "binary row %zu", i);
    }
    output_rules_free(r);
}

static void caps(void)
{
    struct output_rules *r = rules_of(NULL, 0, ALL);
    struct output_clean c;
    struct buf out;
    clean(r, "0123456789", 10, 8, OUTPUT_BYTES, OUTPUT_ESCAPE_NONE, 0, &out);
    tap_eq_str(out.data, "012345" OUTPUT_MARKER "89",
               "a text over the cap becomes head, marker and tail");
    buf_done(&out);
    clean(r, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 10, 4, OUTPUT_CHARACTERS,
          OUTPUT_ESCAPE_NONE, 1, &out);
    tap_eq_str(out.data, "\xc3\xa9\xc3\xa9\xc3\xa9" OUTPUT_MARKER "\xc3\xa9",
               "a cap in characters cuts between characters");
    buf_done(&out);
    clean(r, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 8, 4, OUTPUT_CHARACTERS, OUTPUT_ESCAPE_NONE, 1,
          &out);
    tap_eq_str(out.data, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9",
               "a text of exactly the cap stays whole");
    buf_done(&out);
    clean(r, "0123\xc3\xa9 6789", 11, 7, OUTPUT_BYTES, OUTPUT_ESCAPE_NONE, 0,
          &out); /* head 6, tail 1 */
    tap_eq_str(out.data, "0123\xc3\xa9" OUTPUT_MARKER "9",
               "a UTF-8 sequence that fits before the cut stays");
    buf_done(&out);
    clean(r, "01234\xc3\xa9 6789", 12, 7, OUTPUT_BYTES, OUTPUT_ESCAPE_NONE, 0, &out);
    tap_eq_str(out.data, "01234" OUTPUT_MARKER "9",
               "a UTF-8 sequence that the cut goes through is dropped");
    buf_done(&out);
    clean(r, "<<<<<<<<<<", 10, 8, OUTPUT_BYTES, OUTPUT_ESCAPE_HTML, 0, &out);
    tap_eq_str(out.data, "&lt;&lt;&lt;&lt;&lt;&lt;" OUTPUT_MARKER "&lt;&lt;",
               "escapes come after the cut");
    buf_done(&out);

    output_clean_init(&c, r, 8, OUTPUT_BYTES);
    output_clean_add(&c, "01234\xc3\xa9 6789", 12);
    output_clean_end(&c);
    tap_ok(output_clean_truncated(&c) && c.bytes_in == 12 && output_clean_cut(&c) == 5,
           "counts are exact: 12 in, 5 + 2 kept, 5 cut");
    output_clean_done(&c);
    output_clean_init(&c, r, 4, OUTPUT_CHARACTERS);
    for (int i = 0; i < 100; i++)
        output_clean_add(&c, "\xf0\x9f\x98\x80", 4);
    output_clean_end(&c);
    tap_ok(output_clean_truncated(&c) && c.bytes_in == 400 && output_clean_cut(&c) == 96,
           "counts are exact in characters: 100 in, 4 kept, 96 cut");
    output_clean_done(&c);
    output_rules_free(r);
}

/* ---- what the supervisor knows ---- */

static const struct output_known known[] = {
    {"/work/state", 11, "/STATE", false}, {"/work/state/cordon/", 19, "/STATE", false},
    {"/root", 5, "/CALLER", false},       {"/", 1, "/BAD", false},
    {"/tmp", 4, "/BAD", false},           {"s3cr3t-value", 12, "[REDACTED:environment]", true},
    {"short", 5, "[REDACTED:bad]", true},
};

static void known_row(const struct output_rules *r, const char *in, const char *want)
{
    bool same = true;
    for (size_t chunk = 1; chunk < 40; chunk++) {
        struct buf out;
        clean(r, in, strlen(in), 1000, OUTPUT_BYTES, OUTPUT_ESCAPE_NONE, chunk, &out);
        if (same && strcmp(out.data, want) != 0)
            printf("# chunks of %zu: '%s'\n", chunk, out.data);
        same = same && strcmp(out.data, want) == 0;
        buf_done(&out);
    }
    tap_ok(same, "a known string is replaced: '%s'", in);
}

static void known_strings(void)
{
    struct output_rules *r = rules_of(known, sizeof known / sizeof *known, ALL);
    known_row(r, "/work/state/x /work/states /net/work/state",
              "/STATE/x /work/states /net/work/state");
    known_row(r, "in /work/state.", "in /STATE.");
    known_row(r, "/work/state/cordon/a /work/state/cordonx", "/STATE/a /STATE/cordonx");
    known_row(r, "/root /rootfs a/root file:///root/x", "/CALLER /rootfs a/root file:///CALLER/x");
    known_row(r, "/tmp/x / short", "/tmp/x / short");
    known_row(r, "xs3cr3t-values3cr3t-value", "x[REDACTED:environment][REDACTED:environment]");
    known_row(r, "s3cr3t-s3cr3t-value", "s3cr3t-[REDACTED:environment]");
    known_row(r, "cut off: s3cr3t-v", "cut off: [REDACTED:environment]");
    known_row(r, "cut off: s3cr3t-", "cut off: s3cr3t-");
    known_row(r, "File \"/work/state/x.py\", line 7", "File \"REDACTED\", line 7");
    output_rules_free(r);
    r = rules_of(known, sizeof known / sizeof *known, OUTPUT_SCRUB);
    known_row(r, "/work/state s3cr3t-value", "/STATE s3cr3t-value");
    output_rules_free(r);
    r = rules_of(known, sizeof known / sizeof *known, OUTPUT_REDACT);
    known_row(r, "/work/state s3cr3t-value /home/x", "/work/state [REDACTED:environment] /home/x");
    output_rules_free(r);

    size_t len = 10000;
    char *big = malloc(len + 3), *text = malloc(len + 3);
    for (size_t i = 0; i < len; i++)
        big[i] = (char)('!' + dice(90));
    struct output_known one = {big, len, "[X]", true};
    r = rules_of(&one, 1, OUTPUT_REDACT);
    snprintf(text, len + 3, "<%.*s>", (int)len, big);
    struct buf out;
    clean(r, text, len + 2, LIMIT_OUTPUT, OUTPUT_BYTES, OUTPUT_ESCAPE_NONE, 100, &out);
    tap_eq_str(out.data, "<[X][X][X]>", "a secret longer than a piece is known in pieces");
    buf_done(&out);
    output_rules_free(r);
    free(text);
    free(big);

    struct err err = ERR_INIT;
    struct output_known many[OUTPUT_KNOWN_MAX + 1];
    for (size_t i = 0; i <= OUTPUT_KNOWN_MAX; i++)
        many[i] = known[0];
    tap_ok(output_rules_new(many, OUTPUT_KNOWN_MAX + 1, ALL, &r, &err) == ERR_LIMIT && err.msg[0],
           "too many known strings are refused by name");
}

static void environment(void)
{
    const char *const env[] = {"API_KEY=0123456789ab",
                               "HOME=/root",
                               "MONKEY=banana-banana",
                               "DB_PASSWORD=hunter22",
                               "PWD=/work/project",
                               "MY_TOKEN=short",
                               "SSH_AUTH_SOCK=/tmp/a.b",
                               "CSRFTOKEN=xyzxyzxyz",
                               "MAX_TOKENS=4096000",
                               "broken",
                               NULL};
    struct output_known out[8];
    size_t n = output_env_secrets(env, SIZE_MAX, out, 8);
    tap_eq_int(n, 3, "three of ten variables hold a secret");
    tap_ok(n == 3 && strcmp(out[0].text, "0123456789ab") == 0 &&
               strcmp(out[1].text, "hunter22") == 0 && strcmp(out[2].text, "xyzxyzxyz") == 0 &&
               out[2].len == 9 && out[2].secret,
           "secrets of the environment are found by the names of the variables");
    tap_eq_int(output_env_secrets(env, SIZE_MAX, out, 2), 2,
               "no more secrets of the environment are given than the caller's array holds");
}

static void from_policy(void)
{
    const char *const env[] = {"HOME=/root", "API_KEY=0123456789ab", "MY_OWN=quite-private", NULL};
    const char *const given[] = {"GIVEN_TOKEN=given-to-the-guest", "PLAIN=not-a-secret"};
    const char *const names[] = {"MY_OWN"}, *const paths[] = {"/srv/hidden"};
    const struct output_internal internal[] = {{"/work/state", "/STATE"}};
    struct policy p = policy_builtin;
    struct output_rules *r = NULL;
    struct err err = ERR_INIT;
    char here[4096], text[8192], want[8192];
    p.output.secret_names = (struct policy_words){names, 1};
    p.output.scrub_paths = (struct policy_words){paths, 1};
    if (!tap_ok(output_rules_for(&p, env, given, 2, internal, 1, &r, &err) == 0,
                "cleaning rules are made as the policy has them"))
        return;
    known_row(r, "/work/state /srv/hidden/x /root/y 0123456789ab quite-private",
              "/STATE /INTERNAL/x /home/USER/y [REDACTED:environment] [REDACTED:environment]");
    known_row(r, "given-to-the-guest not-a-secret", "[REDACTED:environment] not-a-secret");
    struct buf out;
    snprintf(text, sizeof text, "(%s)", getcwd(here, sizeof here) ? here : "/");
    clean(r, text, strlen(text), LIMIT_OUTPUT, OUTPUT_BYTES, OUTPUT_ESCAPE_NONE, 0, &out);
    snprintf(want, sizeof want, "(%s)", strlen(here) > 8 ? "/CALLER" : here);
    tap_ok(strlen(here) <= 8 || strcmp(out.data, want) == 0, "the caller's folder is not shown");
    buf_done(&out);
    output_rules_free(r);
    p.output.scrub = p.output.redact = false;
    tap_ok(output_rules_for(&p, env, given, 2, internal, 1, &r, &err) == 0,
           "rules are made with scrubbing and redaction off");
    known_row(r, "/work/state /home/x 0123456789ab", "/work/state /home/x 0123456789ab");
    output_rules_free(r);
    p.output.escape = POLICY_ESCAPE_PROFILE;
    tap_ok(output_escape_for(&p, policy_profile_find("strict")) == OUTPUT_ESCAPE_HTML &&
               output_escape_for(&p, policy_profile_find("open")) == OUTPUT_ESCAPE_NONE &&
               output_escape_for(&p, NULL) == OUTPUT_ESCAPE_NONE,
           "escape: profile means html in strict, none elsewhere");
}

/* ---- properties ---- */

static const char *const pieces[] = {
    "/home/",
    "/home/alice",
    "/tmp/sandbox_",
    "File \"",
    "/",
    "\"",
    "\n",
    " ",
    "a",
    "0",
    "-----",
    "-----BEGIN ",
    "RSA PRIVATE KEY-----",
    "-----END ",
    "PRIVATE KEY-----",
    "eyJhbGciOiJ",
    ".",
    "eyJ",
    "sk-",
    "abcdefghij",
    "0123456789",
    "ghp_",
    "AKIA",
    "IOSFODNN7EXAMPLE",
    "Bearer ",
    "://",
    "user:",
    "pass@",
    "\xc3\xa9",
    "\xf0\x9f\x98\x80",
    "xoxb-",
    "s3cr3t-",
    "value",
    "/work/state",
    "/root",
    "_",
    "\xe2\x82\xac",
    "\r",
    "\\",
    ":",
    "SG.",
    "aws_secret_access_key",
    "=",
    "<&>'",
    "\033[1m",
    "/work/",
};

static size_t random_text(char *out, size_t cap)
{
    size_t len = 0;
    for (size_t want = 1 + dice(60); want; want--) {
        const char *p = pieces[dice(sizeof pieces / sizeof *pieces)];
        size_t n = strlen(p);
        if (len + n > cap)
            break;
        memcpy(out + len, p, n);
        len += n;
    }
    if (len && dice(200) == 0)
        out[dice(len)] = (char)dice(256);
    return len;
}

static void chunks_do_not_matter(void)
{
    struct output_rules *r = rules_of(known, sizeof known / sizeof *known, ALL);
    int wrong = 0, shown_wrong = 0;
    for (int round = 0; round < 20000; round++) {
        char text[2000];
        size_t len = random_text(text, sizeof text), cap = dice(3) ? 10000 : dice(200);
        enum output_unit unit = dice(2) ? OUTPUT_BYTES : OUTPUT_CHARACTERS;
        enum output_escape escape = (enum output_escape)dice(3);
        struct buf a, b;
        clean(r, text, len, cap, unit, escape, len + 1, &a);
        clean(r, text, len, cap, unit, escape, dice(4) ? 0 : 1, &b);
        if (a.len != b.len || memcmp(a.data, b.data, a.len) != 0) {
            if (!wrong++)
                printf("# '%.*s'\n# -> '%s'\n# -> '%s'\n", (int)len, text, a.data, b.data);
        }
        struct output_clean c; /* and shown as it comes */
        struct buf out;
        buf_init(&out, MIB);
        output_clean_init(&c, r, cap, unit);
        int e = 0;
        for (size_t at = 0, n; at < len; at += n) {
            n = 1 + dice(9) < len - at ? 1 + dice(9) : len - at;
            n = n < len - at ? n : len - at;
            output_clean_add(&c, text + at, n);
            e |= output_clean_show(&c, escape, &out);
        }
        output_clean_end(&c);
        e |= output_clean_show(&c, escape, &out);
        e |= output_clean_show(&c, escape, &out);
        shown_wrong += e || (!c.binary && (out.len != a.len ||
                                           memcmp(out.data ? out.data : "", a.data, a.len) != 0));
        output_clean_done(&c);
        buf_done(&out);
        buf_done(&a);
        buf_done(&b);
    }
    tap_eq_int(wrong, 0, "20,000 random texts: chunks do not matter");
    tap_eq_int(shown_wrong, 0, "20,000 random texts: what is shown as it comes is the same text");
    output_rules_free(r);
}

/* A secret anywhere, a cap anywhere: five bytes of it never stand in the text. */
static void cut_never_shows(void)
{
    static const char *const secrets[] = {"s3cr3t-value",
                                          "ghp_Q1W2E3R4T5Y6U7I8O9P0Q1W2E3R4T5Y6U7I8",
                                          "sk-Q1W2E3R4T5Y6U7I8O9P0ZZZZ", "/home/QWERTYQWERTY"};
    struct output_rules *r = rules_of(known, sizeof known / sizeof *known, ALL);
    int shown = 0;
    for (size_t k = 0; k < sizeof secrets / sizeof *secrets; k++)
        for (size_t cap = 0; cap < 120; cap++)
            for (size_t at = 0; at < 120; at += 7) {
                char text[300];
                size_t len = (size_t)snprintf(
                    text, sizeof text, "%.*s %s %.*s", (int)at,
                    "........................................................"
                    "................................................................",
                    secrets[k], 60, "............................................................");
                for (int unit = 0; unit < 2; unit++) {
                    struct buf out;
                    clean(r, text, len, cap, (enum output_unit)unit, OUTPUT_ESCAPE_NONE, 0, &out);
                    for (size_t i = 0; i + 5 <= strlen(secrets[k]); i++) {
                        char part[6];
                        snprintf(part, sizeof part, "%.5s", secrets[k] + i);
                        shown += strncmp(part, "/home/", 5) != 0 &&
                                 strncmp(part, "home/", 5) != 0 && strstr(out.data, part) != NULL;
                    }
                    buf_done(&out);
                }
            }
    tap_eq_int(shown, 0, "no cap at any place shows five bytes of a secret");
    output_rules_free(r);
}

/* Strings over two letters overlap in every way; the same by brute force. */
static size_t brute(const struct output_known *k, size_t count, const char *text, size_t len,
                    char *out)
{
    bool hit[200] = {0},
         joined[201] = {0}; /* joined[i]: byte i belongs to the span of byte i - 1 */
    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; at + 1 <= len; at++) {
            size_t n = k[i].len < len - at ? k[i].len : len - at;
            if (memcmp(text + at, k[i].text, n) != 0 || (n < k[i].len && n < 8))
                continue;
            for (size_t j = at; j < at + n; j++)
                hit[j] = true;
            for (size_t j = at + 1; j < at + n; j++)
                joined[j] = true;
        }
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        if (!hit[i])
            out[n++] = text[i];
        else if (!joined[i])
            out[n++] = '*';
    return n;
}

static void automaton(void)
{
    int wrong = 0;
    for (int round = 0; round < 5000; round++) {
        char words[4][24], text[200], want[200];
        struct output_known k[4];
        size_t count = 1 + dice(4), len = 1 + dice(sizeof text - 1);
        for (size_t i = 0; i < count; i++) {
            size_t n = 8 + dice(12);
            for (size_t j = 0; j < n; j++)
                words[i][j] = "ab"[dice(5) == 0];
            k[i] = (struct output_known){words[i], n, "*", true};
        }
        for (size_t i = 0; i < len; i++)
            text[i] = "ab"[dice(5) == 0];
        struct output_rules *r = rules_of(k, count, OUTPUT_REDACT);
        struct buf out;
        clean(r, text, len, 1000, OUTPUT_BYTES, OUTPUT_ESCAPE_NONE, dice(2), &out);
        size_t n = brute(k, count, text, len, want);
        if ((out.len != n || memcmp(out.data, want, n) != 0) && !wrong++)
            printf("# '%.*s': '%s', wanted '%.*s'\n", (int)len, text, out.data, (int)n, want);
        buf_done(&out);
        output_rules_free(r);
    }
    tap_eq_int(wrong, 0, "5,000 sets of overlapping strings: as by brute force");
}

/* Time of the processor: the machine has other work. */
static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

enum { PIECE = 256 * KIB, PIECES = 10 };

/* The time of N pieces of TEXT in a row: each piece counts with the best of five rounds, so that a neighbour who
 * interrupts has the same chance to spoil one piece alone as one of ten. */
static double seconds(const struct output_rules *r, const char *text, size_t n, size_t chunk)
{
    double best[PIECES], sum = 0;
    for (int round = 0; round < 5; round++) {
        struct output_clean c;
        output_clean_init(&c, r, LIMIT_OUTPUT, OUTPUT_BYTES);
        for (size_t i = 0; i < n; i++) {
            double start = cpu_now();
            for (size_t at = 0; at < PIECE; at += chunk)
                output_clean_add(&c, text + i * PIECE + at, chunk);
            if (i == n - 1)
                output_clean_end(&c);
            double s = cpu_now() - start;
            best[i] = round == 0 || s < best[i] ? s : best[i];
        }
        output_clean_done(&c);
    }
    for (size_t i = 0; i < n; i++)
        sum += best[i];
    return sum;
}

static void linear(void)
{
    static const char *const hostile[] = {
        "the quick brown fox jumps over the lazy dog\n",
        "File \"/",
        "File \"/a",
        "/home/",
        "eyJ",
        "eyJ-",
        "eyJaaaaaaaaaaaa.",
        "sk-",
        "-sk-a",
        "SG.",
        "SG.aaaaaaaaaaaaaaaaaaaaa.",
        "-----BEGIN ",
        "-----BEGIN RSA ",
        "-----BEGIN PRIVATE KEY-----\n",
        "://a:",
        "://",
        "Bearer ",
        "Bearer aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ",
        "s3cr3t-valu",
        "s3cr3t-",
        "/work/state/cordo",
        "-",
        "\xf0\x9f\x98\x80",
        "<",
        "aws_secret_access_key",
    };
    char aaa[4096];
    memset(aaa, 'a', sizeof aaa);
    struct output_known k[10];
    memcpy(k, known, sizeof known);
    for (size_t i = 7; i < 10; i++)
        k[i] = (struct output_known){aaa, sizeof aaa - i * 100, "[A]", true};
    struct output_rules *r = rules_of(k, 10, ALL);
    size_t big = (size_t)PIECES * PIECE;
    char *text = malloc(big);
    double worst = 0;
    for (size_t i = 0; i <= sizeof hostile / sizeof *hostile; i++) {
        const char *p = i < sizeof hostile / sizeof *hostile ? hostile[i] : "a";
        size_t n = strlen(p);
        for (size_t at = 0; at < big; at++)
            text[at] = p[at % n];
        size_t chunk = i % 2 ? 64 * KIB : 4 * KIB;
        double one = seconds(r, text, 1, chunk), ten = seconds(r, text, PIECES, chunk);
        for (int again = 0; again < 3 && ten > 15 * one; again++) { /* a neighbour woke up */
            one = seconds(r, text, 1, chunk);
            ten = seconds(r, text, PIECES, chunk);
        }
        worst = ten > worst ? ten : worst;
        printf("# %-40.40s %6.1f MiB/s, %5.2f times the time for 10 times the text\n",
               strchr(p, '\n') ? "lines" : p, 2.5 / ten, ten / one);
        tap_ok(ten <= 15 * one, "linear: %.30s...", strchr(p, '\n') ? "lines" : p);
    }
    printf("# worst: 10 MiB in %.0f ms\n", worst * 4e3);
    free(text);
    output_rules_free(r);
}

static void short_output(void)
{
    struct output_rules *r = rules_of(known, sizeof known / sizeof *known, ALL);
    uint64_t start = clock_now_ns();
    for (int i = 0; i < 10000; i++) {
        struct buf out;
        buf_init(&out, MIB);
        if (output_clean_once(r, "42\nhello from /home/me, s3cr3t-value\n", 37, LIMIT_OUTPUT,
                              OUTPUT_BYTES, OUTPUT_ESCAPE_HTML, &out) < 0)
            abort();
        buf_done(&out);
    }
    double one = (double)(clock_now_ns() - start) / 1e4;
    start = clock_now_ns();
    for (int i = 0; i < 1000; i++)
        output_rules_free(rules_of(known, sizeof known / sizeof *known, ALL));
    printf("# a short output: %.0f ns; rules for %zu strings: %.0f ns\n", one,
           sizeof known / sizeof *known, (double)(clock_now_ns() - start) / 1e3);
    output_rules_free(r);
}

int main(void)
{
    path_rules();
    secret_rules();
    binary();
    caps();
    known_strings();
    environment();
    from_policy();
    chunks_do_not_matter();
    cut_never_shows();
    automaton();
    linear();
    short_output();
    return tap_done();
}
