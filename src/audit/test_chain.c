/* SPDX-License-Identifier: Apache-2.0 */
/* One line: its form, its seals, what is redacted in it; days and their names. */
#include "audit/inside.h"
#include "base/tap.h"

static struct hmac_sha256_ctx key;

static void days(void)
{
    static const struct {
        uint64_t s;
        uint32_t day;
    } rows[] = {{0, 19700101},          {86399, 19700101},      {86400, 19700102},
                {951782400, 20000229},  {951868800, 20000301},  {1709164800, 20240229},
                {1767225599, 20251231}, {1767225600, 20260101}, {4107542400, 21000301}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_eq_int(audit_day_of(rows[i].s * 1000), rows[i].day, "the day of second %llu is right",
                   (unsigned long long)rows[i].s);
    tap_eq_int(audit_day_minus(20240301, 1), 20240229,
               "the day before the first of March of a leap year");
    tap_eq_int(audit_day_minus(20260115, 90), 20251017, "the day ninety days earlier is right");
    tap_eq_int(audit_day_parse("2026-11-15.jsonl"), 20261115,
               "the file of a day is named by its date");
    static const char *const wrong[] = {"2026-11-15.json",
                                        "2026-13-01.jsonl",
                                        "2026-00-01.jsonl",
                                        "2026-1-01.jsonl",
                                        "2026-11-15.jsonl~",
                                        "12026-11-15.jsonl",
                                        "....",
                                        "",
                                        "2026-11-15-.jsonl",
                                        "2026-11-32.jsonl"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        tap_eq_int(audit_day_parse(wrong[i]), 0, "'%s' is no file of a day", wrong[i]);
}

static void lines(void)
{
    struct buf out;
    struct audit_line l;
    uint8_t hash[AUDIT_HASH] = {0};
    static const char body[] =
        "\"kind\": \"tool\", \"execution_id\": \"a\\\"b, \\\"tool\\\": 1\", \"tool\": \"t\", "
        "\"begin_seq\": 17, \"reason\": null, \"args\": {\"tool\": \"other\"}";
    buf_init(&out, 4096);
    tap_ok(audit_line_write(&out, 7, 1733000000123ULL, body, strlen(body), hash, &key) == 0,
           "a line is written");
    tap_ok(out.data[out.len - 1] == '\n' && !memchr(out.data, '\n', out.len - 1),
           "a written record is one line");
    const char *why = audit_line_parse(out.data, out.len - 1, &l);
    tap_ok(!why, "a written record is parsed again: %s", why ? why : "");
    tap_ok(l.seq == 7 && l.ts == 1733000000123ULL && l.kind == AUDIT_TOOL,
           "a parsed record has its number, time and kind");
    tap_ok(strstr(out.data, "\"timestamp\": 1733000000.123, ") != NULL,
           "`timestamp` is the time in seconds");
    tap_ok(memcmp(l.hash, hash, AUDIT_HASH) == 0 && !audit_line_check(out.data, &l, &key),
           "hash and signature of a parsed record hold");

    const char *text;
    size_t len;
    tap_ok(audit_line_member(out.data, out.len - 1, "tool", &text, &len) && len == 3 &&
               memcmp(text, "\"t\"", 3) == 0,
           "a member is found, not a text that looks like one");
    tap_ok(audit_line_member(out.data, out.len - 1, "execution_id", &text, &len) && len == 19,
           "a member with escapes is found whole (%zu bytes)", len);
    tap_ok(audit_line_member(out.data, out.len - 1, "begin_seq", &text, &len) && len == 2,
           "a member that is a number is found");
    tap_ok(!audit_line_member(out.data, out.len - 1, "nothing", &text, &len),
           "a member that is not there is not found");

    /* every single bit counts */
    int unseen = 0;
    for (size_t i = 0; i + 1 < out.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            out.data[i] = (char)(out.data[i] ^ (1 << bit));
            if (!audit_line_parse(out.data, out.len - 1, &l) &&
                !audit_line_check(out.data, &l, &key))
                unseen++;
            out.data[i] = (char)(out.data[i] ^ (1 << bit));
        }
    tap_eq_int(unseen, 0, "no flipped bit passes");
    for (size_t cut = 0; cut + 1 < out.len; cut++)
        unseen += !audit_line_parse(out.data, cut, &l) && !audit_line_check(out.data, &l, &key);
    tap_eq_int(unseen, 0, "no shortened line passes");
    struct hmac_sha256_ctx other;
    hmac_sha256_set_key(&other, 5, (const uint8_t *)"other");
    tap_ok(!audit_line_parse(out.data, out.len - 1, &l) && audit_line_check(out.data, &l, &other),
           "a line signed with another key does not pass");
    buf_done(&out);
}

static void redaction(void)
{
    static const struct {
        const char *name, *text, *want;
    } rows[] = {
        {NULL, "plain text, nothing in it", "plain text, nothing in it"},
        {"password", "hunter2", "[redacted]"},
        {"API-Key", "abc", "[redacted]"},
        {"max_tokens", "4096", "4096"},
        {"path", "/etc/passwd", "/etc/passwd"},
        {NULL, "curl -H 'Authorization: Bearer abcdef123456' x",
         "curl -H 'Authorization: Bearer [redacted]' x"},
        {NULL, "Bearer abcdef123456", "Bearer [redacted]"},
        {NULL, "OPENAI_API_KEY=sk-0123456789abcdef01 run", "OPENAI_API_KEY=[redacted] run"},
        {NULL, "use sk-0123456789abcdef01.", "use [redacted]"},
        {NULL, "risk-0123456789abcdef01", "risk-0123456789abcdef01"},
        {NULL, "{\"password\": \"a b c\", \"x\": 1}", "{\"password\": [redacted], \"x\": 1}"},
        {NULL, "postgres://me:pa55@db/x", "postgres://me:[redacted]@db/x"},
        {NULL, "http://example.org:80/a@b", "http://example.org:80/a@b"},
        {NULL, "ghp_0123456789abcdefABCD", "[redacted]"},
        {NULL, "AKIAABCDEFGHIJKLMNOP", "[redacted]"},
        {NULL, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "[redacted]"},
        {NULL, "--token=abc --name=x", "--token=[redacted] --name=x"},
        {NULL, "x -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\ny",
         "x [redacted]\ny"},
        {NULL, "-----BEGIN PRIVATE KEY-----\nabc", "[redacted]"},
        {NULL, "mysql -uroot -phunter db", "mysql -uroot -p[redacted] db"},
        {NULL, "sh -c 'mysql -p\"a b\"'", "sh -c 'mysql -p[redacted]'"},
        {NULL, "tool -pHunter2", "tool -p[redacted]"},
        {NULL, "sshpass -p abc ssh -p 2222 -p22 host",
         "sshpass -p [redacted] ssh -p 2222 -p22 host"},
        {NULL, "docker login -u me -p abc", "docker login -u me -p [redacted]"},
        {NULL, "docker run -p 8080:80 -p8443:443 -u 1000:1000 x",
         "docker run -p 8080:80 -p8443:443 -u 1000:1000 x"},
        {NULL, "find . -print -prune -path ./a -perm 600",
         "find . -print -prune -path ./a -perm 600"},
        {NULL, "mkdir -p /tmp/a -p/tmp/b; patch -p1; ffmpeg -pix_fmt x",
         "mkdir -p /tmp/a -p/tmp/b; patch -p1; ffmpeg -pix_fmt x"},
        {NULL, "curl -u bob:pw --user=bob:pw -ubob:pw x",
         "curl -u bob:[redacted] --user=bob:[redacted] -ubob:[redacted] x"},
        {NULL, "curl -u 'bob:p w' x", "curl -u 'bob:[redacted]' x"},
        {NULL, "git push -u origin a:b; date -u +%H:%M", "git push -u origin a:b; date -u +%H:%M"},
        {NULL, "pwd=abc MYSQL_PWD=abc db_pass=abc dbPw=abc",
         "pwd=[redacted] MYSQL_PWD=[redacted] db_pass=[redacted] dbPw=[redacted]"},
        {NULL, "PWD=/home/me pwd=~/x bypass=abc pass=2 pass: 31 compass=n",
         "PWD=/home/me pwd=~/x bypass=abc pass=2 pass: 31 compass=n"},
        {NULL, "{\"pwd\": \"abc\"}", "{\"pwd\": [redacted]}"},
        {NULL, "x --password abc --pwd abc --pwd /a -y",
         "x --password [redacted] --pwd [redacted] --pwd /a -y"},
        {NULL, "{\"password\":\"ab\\\"cd\",\"x\":1}", "{\"password\":[redacted],\"x\":1}"},
        {NULL, "{\"password\":\"ab\\\\\",\"x\":1}", "{\"password\":[redacted],\"x\":1}"},
        {NULL, "{\"password\":[\"ab\",{\"c\":\"]d\"}],\"x\":1}",
         "{\"password\":[redacted],\"x\":1}"},
        {NULL, "{\"credentials\": {\"user\": \"a\", \"key\": [\"b\"]}, \"x\": 1}",
         "{\"credentials\": [redacted], \"x\": 1}"},
        {NULL, "{\"list\":[{\"password\":\"ab\"},{\"password\":12}]}",
         "{\"list\":[{\"password\":[redacted]},{\"password\":[redacted]}]}"},
        {NULL, "{\"password of bob\":\"ab\",\"db.password.old\":\"cd\",\"x\":1}",
         "{\"password of bob\":[redacted],\"db.password.old\":[redacted],\"x\":1}"},
        {NULL, "{\"a\":\"my token\",\"b\":\"the password\",\"c\":\"d\"}",
         "{\"a\":\"my token\",\"b\":\"the password\",\"c\":\"d\"}"},
        {NULL, "{\"note\":\"password=\\\"a b\\\" x\",\"y\":1}",
         "{\"note\":\"password=[redacted] x\",\"y\":1}"},
        {NULL, "{\"text\":\"{\\\"password\\\": \\\"a\\\\\\\"b\\\", \\\"x\\\": 1}\"}",
         "{\"text\":\"{\\\"password\\\": [redacted], \\\"x\\\": 1}\"}"},
        {NULL, "{\"text\":\"{\\\"password\\\": \\\"ab\",\"x\":1}",
         "{\"text\":\"{\\\"password\\\": [redacted]\",\"x\":1}"},
        {NULL, "{\"text\":\"a\\npwd=ab c\\nghp_0123456789abcdefABCD\"}",
         "{\"text\":\"a\\npwd=[redacted] c\\n[redacted]\"}"},
        {NULL, "'password' is 1234; maximum is 9", "'password' is [redacted]; maximum is 9"},
        {NULL, "'password' is not of type string", "'password' is not of type string"},
        {NULL, "'pages' is 10; maximum is 9", "'pages' is 10; maximum is 9"},
        {NULL, "password=[ab", "password=[redacted]"},
        {NULL, "{\"password\":\"", "{\"password\":[redacted]"},
        {NULL, "token", "token"},
        {NULL, "secret:", "secret:"},
        {NULL, "a://", "a://"},
        {NULL, "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf out;
        buf_init(&out, 4096);
        int r = audit_redact(NULL, rows[i].name, rows[i].text, strlen(rows[i].text), NULL, &out);
        tap_ok(r == 0, "redaction row %zu", i);
        tap_eq_str(out.data ? out.data : "", rows[i].want, "a redacted value is as its row wants");
        buf_done(&out);
    }
}

static void heads(void)
{
    uint8_t set[AUDIT_HEAD_SET] = {0};
    struct audit_head h = {.generation = 4, .seq = 40}, got;
    tap_ok(!audit_head_pick(set, &key, &got), "an empty head file has no valid head");
    audit_head_encode(&h, &key, set);
    tap_ok(audit_head_pick(set, &key, &got) && got.seq == 40,
           "a head file with one valid slot is enough");
    h.generation = 5, h.seq = 41;
    audit_head_encode(&h, &key, set + AUDIT_HEAD_SLOT);
    tap_ok(audit_head_pick(set, &key, &got) && got.seq == 41,
           "the newer of two head slots is taken");
    set[AUDIT_HEAD_SLOT + 20] ^= 1;
    tap_ok(audit_head_pick(set, &key, &got) && got.seq == 40,
           "the older head slot is taken if the newer one is torn");
}

int main(void)
{
    hmac_sha256_set_key(&key, 3, (const uint8_t *)"key");
    days();
    lines();
    redaction();
    heads();
    return tap_done();
}
