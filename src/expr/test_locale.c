/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in a process whose locale has a decimal comma: read and written as in any other. The locale is made here, by
 * localedef, so that the test does not depend on which ones a machine has; without it strtod and printf would give the
 * right answers, too. */
#include "base/tap.h"
#include "cordon.h"

#include <fcntl.h>
#include <locale.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char charmap[] = "<code_set_name> ANSI_X3.4-1968\n<escape_char> /\n<mb_cur_min> 1\n"
                              "<mb_cur_max> 1\nCHARMAP\n<U0000>..<U007F> /x00 ASCII\nEND CHARMAP\n";
static const char comma[] = "comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point \",\"\n"
                            "thousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n";
static char dir[] = "/tmp/cordon-locale-XXXXXX";

static bool write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "we");
    return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

/* Of a locale with this category alone, localedef complains of the rest; -c makes it all the same. Its warnings are
 * not ours. */
static bool make_locale(void)
{
    const char *const argv[] = {"/usr/bin/localedef", "-c",      "-f", "./charmap", "-i",
                                "./source",           "./comma", NULL};
    posix_spawn_file_actions_t quiet;
    int status;
    pid_t pid;
    if (!mkdtemp(dir) || chdir(dir) < 0 || !write_file("charmap", charmap) ||
        !write_file("source", comma))
        return false;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "said", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&quiet, 1, 2);
    int r = posix_spawn(&pid, argv[0], &quiet, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&quiet);
    return r == 0 && waitpid(pid, &status, 0) == pid && access("comma/LC_NUMERIC", R_OK) == 0;
}

static void remove_locale(void)
{
    const char *const argv[] = {"/bin/rm", "-rf", dir, NULL};
    pid_t pid;
    int status;
    if (posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) == 0)
        waitpid(pid, &status, 0);
}

/* Every way of a number into the library and out of it: schema, prompt, source, context, value, error. */
static void all_numbers(char *out, size_t size)
{
    static const char schema_text[] =
        "{\"keys\":{\"r\":{\"type\":\"number\",\"min\":0.25,\"max\":1.5}}}";
    static const char context[] = "{\"r\": 0.75}";
    static const char *const sources[] = {"ctx['r'] > 0.5 and 1.5 + 0.25",
                                          "1234567.5 * ctx['r']",
                                          "0.1 + 1e-7 + 1.5e300",
                                          "0.1234567890123456789",
                                          "ctx['r'] / 0.0",
                                          "1.5 + 'a'",
                                          "1,5 > 0"};
    static char schema_mem[8192], ctx_mem[1024], json_mem[256], mem[65536], scratch[65536];
    struct cordon_schema *schema;
    struct cordon_error err = {0};
    size_t n = 0;
    if (cordon_schema_read(schema_text, strlen(schema_text), schema_mem, sizeof schema_mem, &schema,
                           &err))
        n += (size_t)snprintf(out + n, size - n, "schema: %s\n", err.message);
    else
        n += cordon_prompt(schema, out + n, size - n);
    struct cordon_ctx *c = err.status ? NULL : cordon_ctx_init(ctx_mem, sizeof ctx_mem, schema, 0);
    if (!c || cordon_ctx_json(c, context, strlen(context), json_mem, sizeof json_mem, &err))
        n += (size_t)snprintf(out + n, size - n, "context: %s\n", err.message);
    for (size_t i = 0; c && i < sizeof sources / sizeof *sources; i++) {
        struct cordon_program *p;
        struct cordon_value v;
        char text[64];
        if (cordon_compile(schema, sources[i], strlen(sources[i]), mem, sizeof mem, &p, &err) ||
            cordon_eval(p, c, scratch, sizeof scratch, &v, &err)) {
            n += (size_t)snprintf(out + n, size - n, "%s: %s\n", sources[i], err.message);
            continue;
        }
        cordon_repr(&v, NULL, text, sizeof text);
        n += (size_t)snprintf(out + n, size - n, "%s: %s", sources[i], text);
        cordon_json(&v, NULL, text, sizeof text);
        n += (size_t)snprintf(out + n, size - n, " %s\n", text);
    }
}

int main(void)
{
    static char before[8192], after[8192];
    char text[16];
    bool made = make_locale();
    tap_ok(made, "localedef makes a locale with a decimal comma");
    all_numbers(before, sizeof before);
    tap_ok(strstr(before, "1.75 1.75\n") && strstr(before, "0.25"),
           "numbers are read and written with a point");
    setenv("LOCPATH", dir, 1);
    tap_ok(made && setlocale(LC_NUMERIC, "comma"), "the process enters that locale");
    snprintf(text, sizeof text, "%.1f", 1.5);
    tap_eq_str(text, "1,5", "printf writes a comma there");
    tap_ok(strtod("1.5", NULL) == 1.0, "strtod stops at a point there");
    all_numbers(after, sizeof after);
    tap_eq_str(after, before, "the library reads and writes numbers as before");
    remove_locale();
    return tap_done();
}
