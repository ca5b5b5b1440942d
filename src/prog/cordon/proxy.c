/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon proxy`: listens, and becomes cordon-proxy, which has the keys and libcurl; `cordon` itself has neither. */
#include "base/limits.h"
#include "commands.h"
#include "options.h"
#include "programs.h"
#include "result.h"
#include "serve_http.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WHO "cordon proxy"

struct proxy_options {
    const char *http, *policy;
    bool help;
};

static void help(const struct option_row *rows, size_t count)
{
    puts("usage: cordon proxy --http ADDRESS [OPTIONS]\n\n"
         "A gateway to the models that `upstreams` of the policy names, for clients of this\n"
         "machine: OpenAI's chat completions and responses, Anthropic's messages. It alone has\n"
         "the keys. What a model writes is watched while it is written: a loop never reaches\n"
         "the client, its upstream is closed, and the next tier is asked.\n");
    options_print(rows, count);
    exits_print(EXITS_OTHER);
    puts("\n  cordon proxy --http 8383 --policy upstreams.yaml");
}

static int parse(int argc, char **argv, struct proxy_options *o, struct err *err)
{
    const struct option_row rows[] = {
        {"http", OPTION_STRING, &o->http, "ADDRESS",
         "clients with a token, at PORT of loopback, or ADDRESS:PORT of it"},
        {"policy", OPTION_STRING, &o->policy, "FILE", "a policy on top of the machine's"},
        {"help", OPTION_FLAG, &o->help, NULL, "this text"},
    };
    const size_t count = sizeof rows / sizeof *rows;
    int next = 0, r = options_parse(argc, argv, rows, count, &next, err);
    if (r == 0 && !o->help && next < argc)
        r = err_set(err, ERR_USAGE, "'%.60s': it takes options only; see --help", argv[next]);
    if (r == 0 && !o->help && !o->http)
        r = err_set(err, ERR_USAGE, "say where clients come to: --http PORT");
    if (r == 0 && o->help)
        help(rows, count);
    return r;
}

/* Does not return where it succeeds. */
static int become_proxy(const struct proxy_options *o, struct err *err)
{
    char path[4096], url[80];
    int r = programs_find("cordon-proxy", path, sizeof path, err);
    if (r == 0)
        r = serve_http_listen_loopback("--http", o->http, SERVE_HTTP_FD, url, sizeof url, err);
    if (r < 0)
        return r;
    const char *const words[] = {path, "--from-cordon", url, o->policy ? o->policy : "", NULL};
    execv(path, (char *const *)words);
    return err_sys(err, "start %s", path);
}

int cmd_proxy(int argc, char **argv)
{
    struct proxy_options o = {0};
    struct err err = ERR_INIT;
    int r = parse(argc, argv, &o, &err);
    if (r == 0 && o.help)
        return EXIT_DONE;
    if (r == 0)
        r = become_proxy(&o, &err);
    result_complain(WHO, err.msg);
    return r == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED;
}
