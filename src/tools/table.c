/* SPDX-License-Identifier: Apache-2.0 */
/* A schema is text because it is data: it is checked by cordon-tool, shown to clients, and the operator's host tools
 * have one of the same kind in the policy. */
#include "tools/tools.h"

#include <string.h>

#define OBJECT(properties, required)                                                               \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"
#define TEXT(name)        "\"" name "\":{\"type\":\"string\"}"
#define PATH(name)        "\"" name "\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4096}"
#define COUNT(name, most) "\"" name "\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":" most "}"
#define RESULTS(name)     "\"" name "\":{\"type\":\"array\",\"maxItems\":1000}"
#define FLAG(name)        "\"" name "\":{\"type\":\"boolean\"}"

const struct tools_row tools_table[] = {
    {"echo", "gives back its arguments", NULL},
    {"ReadFile", "text of a file",
     OBJECT(PATH("path") "," COUNT("offset", "1099511627776") "," COUNT("limit", "100000000"),
            "\"path\"")},
    {"ListFiles", "names in a folder", OBJECT(PATH("path"), "")},
    {"FileInfo", "kind, size, mode and time of a file", OBJECT(PATH("path"), "\"path\"")},
    {"Find", "files below a folder whose name matches a pattern of the shell",
     OBJECT(PATH("pattern") "," PATH("path"), "\"pattern\"")},
    {"Grep", "lines of files below a folder that match a regular expression (PCRE2)",
     OBJECT(PATH("pattern") "," PATH("path") "," FLAG("ignore_case"), "\"pattern\"")},
    {"Jq", "what a jq filter gives for a JSON file",
     OBJECT(PATH("filter") "," PATH("path"), "\"filter\",\"path\"")},
    {"WriteFile", "writes a text to a file",
     OBJECT(PATH("path") "," TEXT("text"), "\"path\",\"text\"")},
    {"Goal", "the goal of the session, and how it became that", OBJECT("", "")},
    {"ModifyGoal", "gives the session another goal",
     OBJECT("\"goal\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":900},"
            "\"why\":{\"type\":\"string\",\"maxLength\":200}",
            "\"goal\"")},
    {"CreateTool", "makes a tool: a function that can be called from then on",
     OBJECT("\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64},"
            "\"description\":{\"type\":\"string\",\"maxLength\":1000},"
            "\"schema\":{\"type\":\"object\"}," TEXT("source"),
            "\"name\",\"description\",\"schema\",\"source\"")},
    {"LoadModule", "loads a module of the workspace, once it is judged",
     OBJECT("\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":60}", "\"name\"")},
    {"SpawnWorker", "runs a program as a worker of a type, in a jail of its own",
     OBJECT("\"type\":{\"type\":\"string\",\"enum\":[\"explore\",\"analyze\",\"execute\"]}," TEXT(
                "code"),
            "\"type\",\"code\"")},
    {"WorkerResult", "what a completed worker gave",
     OBJECT("\"worker\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":24}", "\"worker\"")},
    {"llm", "asks a model of the gateway, and gives its answer as data",
     OBJECT("\"prompt\":{\"type\":\"string\",\"minLength\":1},"
            "\"model\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":200}," COUNT("tokens",
                                                                                       "1000000"),
            "\"prompt\"")},
    {"Edit", "replaces a text that occurs in a file exactly once",
     OBJECT(PATH("path") "," TEXT("old") "," TEXT("new"), "\"path\",\"old\",\"new\"")},
    {"Search",
     "files of the run, or documents of a collection, that have words of a query, the best first "
     "(BM25)",
     OBJECT(PATH("query") "," COUNT(
                "limit",
                "100") ","
                       "\"collection\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":32}",
            "\"query\"")},
    {"Filter", "results for which a condition holds",
     OBJECT(RESULTS("results") "," PATH("condition") "," COUNT("limit", "1000"),
            "\"results\",\"condition\"")},
    {"Fuse", "several lists of results as one, by reciprocal rank",
     OBJECT("\"lists\":{\"type\":\"array\",\"maxItems\":32,\"items\":{\"type\":\"array\"}}," COUNT(
                "k", "1000") "," COUNT("limit", "1000"),
            "\"lists\"")},
    {"Diversify", "results in another order: less of the same",
     OBJECT(
         RESULTS("results") ",\"weight\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1}," COUNT(
             "limit", "1000"),
         "\"results\"")},
    {"Rescore", "results in the order of an expression over their fields",
     OBJECT(RESULTS("results") "," PATH("expression") "," COUNT("limit", "1000"),
            "\"results\",\"expression\"")},
};
const size_t tools_count = sizeof tools_table / sizeof *tools_table;

const struct tools_row *tools_find(const char *name)
{
    for (size_t i = 0; i < tools_count; i++)
        if (strcmp(tools_table[i].name, name) == 0)
            return &tools_table[i];
    return NULL;
}

void tools_indexed_pack(const struct tools_indexed *from, uint64_t to[TOOLS_INDEXED_NUMBERS])
{
    const uint64_t numbers[TOOLS_INDEXED_NUMBERS] = {from->documents, from->read, from->removed,
                                                     from->current,   from->full, from->written};
    memcpy(to, numbers, sizeof numbers);
}

void tools_indexed_unpack(const uint64_t from[TOOLS_INDEXED_NUMBERS], struct tools_indexed *to)
{
    *to = (struct tools_indexed){.documents = from[0],
                                 .read = from[1],
                                 .removed = from[2],
                                 .current = from[3] != 0,
                                 .full = from[4] != 0,
                                 .written = from[5] != 0};
}
