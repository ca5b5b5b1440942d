/* SPDX-License-Identifier: Apache-2.0 */
/* Two forms for five clients: JSON under a name of the client's own, and TOML, whose strings may be written as JSON's. The
 * path is absolute, because clients start servers with a PATH and in a folder of their own. */
#include "serve_config.h"

#include "base/jsonw.h"
#include "base/limits.h"
#include "jail_options.h"
#include "result.h"

#include <stdio.h>
#include <string.h>

enum client { CLAUDE, VSCODE, CURSOR, CODEX, ZED };
static const char *const names[] = {"claude", "vscode", "cursor", "codex", "zed", NULL};
static const struct {
    const char *list, *where;
} clients[] = {
    [CLAUDE] = {"mcpServers", "for .mcp.json of a project, or claude_desktop_config.json"},
    [VSCODE] = {"servers", "for .vscode/mcp.json"},
    [CURSOR] = {"mcpServers", "for .cursor/mcp.json"},
    [CODEX] = {"mcp_servers", "for ~/.codex/config.toml"},
    [ZED] = {"context_servers", "for settings.json of Zed"},
};

static void write_words(struct jsonw *j, const char *key, char *const *words)
{
    jsonw_open(j, key, '[');
    jsonw_string(j, NULL, "serve");
    jsonw_string(j, NULL, "--stdio");
    for (; *words; words++) {
        if (strcmp(*words, "--print-config") == 0 && words[1])
            words++;
        else if (strncmp(*words, "--print-config=", 15) != 0)
            jsonw_string(j, NULL, *words);
    }
    jsonw_close(j, ']');
}

static void write_json(struct jsonw *j, enum client c, const char *self, char *const *words)
{
    jsonw_open(j, NULL, '{');
    jsonw_open(j, clients[c].list, '{');
    jsonw_open(j, "cordon", '{');
    if (c == VSCODE)
        jsonw_string(j, "type", "stdio");
    if (c == ZED)
        jsonw_string(j, "source", "custom");
    jsonw_string(j, "command", self);
    write_words(j, "args", words);
    jsonw_close(j, '}');
    jsonw_close(j, '}');
    jsonw_close(j, '}');
}

static int write_toml(struct buf *out, const char *self, char *const *words)
{
    struct jsonw j = {.out = out};
    int r = buf_str(out, "[mcp_servers.cordon]\ncommand = ");
    jsonw_string(&j, NULL, self);
    if (r == 0)
        r = buf_str(out, "\nargs = ");
    j.comma = false;
    write_words(&j, NULL, words);
    return r < 0 ? r : j.bad;
}

int serve_config_print(const char *client, const char *self, char *const *words, struct err *err)
{
    struct buf out;
    struct jsonw j = {.out = &out};
    const int c = jail_options_choose("print-config", client, names, err);
    if (c < 0)
        return c;
    buf_init(&out, 1 * MIB);
    if (c == CODEX)
        j.bad = write_toml(&out, self, words);
    else
        write_json(&j, (enum client)c, self, words);
    if (j.bad == 0)
        puts(out.data);
    buf_done(&out);
    result_note("cordon serve", clients[c].where);
    return j.bad < 0 ? err_set(err, j.bad, "no memory") : 0;
}
