/* SPDX-License-Identifier: Apache-2.0 */
/* One table. Shell has no tags: a block of shell in a model's answer mostly says how to install or start the program that
 * another block holds. */
#include "base/languages.h"

#include "base/limits.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#ifdef CORDON_JAVASCRIPT
/* One worker for the language and its dialect. */
#define JAVASCRIPT_WORKER                                                                          \
    .worker = "cordon-javascript", .place = "/cordon-javascript", .filter = "javascript",          \
    .imports = true, .space = LIMIT_JAVASCRIPT_SPACE, .least = LIMIT_JAVASCRIPT_LEAST
#endif

static const struct language rows[] = {
    {.name = "python",
     .title = "Python",
     .endings = ".py",
     .tags = "python py python3 py3 ipython",
     .worker = "cordon-python",
     .place = "/cordon-python",
     .filter = "python"},
    {
        .name = "ruby",
        .title = "Ruby",
        .endings = ".rb",
        .tags = "ruby rb",
#ifdef CORDON_RUBY
        .worker = "cordon-ruby",
        .place = "/cordon-ruby",
        .filter = "ruby",
        .methods = true,
        .space = LIMIT_RUBY_SPACE,
#endif
    },
    {.name = "expr", .title = "a condition", .endings = ".expr", .tags = "expr condition"},
    {
        .name = "javascript",
        .title = "JavaScript",
        .endings = ".js .mjs .cjs",
        .tags = "javascript js mjs node",
#ifdef CORDON_JAVASCRIPT
        JAVASCRIPT_WORKER,
#endif
    },
    {
        .name = "typescript",
        .title = "TypeScript",
        .endings = ".ts .mts",
        .tags = "typescript ts",
#ifdef CORDON_TYPESCRIPT
        JAVASCRIPT_WORKER,
        .dialect = true,
#endif
    },
    {.title = "shell", .endings = ".sh .bash"},
    {.title = "Perl", .endings = ".pl"},
    {.title = "Lua", .endings = ".lua"},
    {.title = "PHP", .endings = ".php"},
    {.title = "Go", .endings = ".go"},
    {.title = "Rust", .endings = ".rs"},
    {.title = "C", .endings = ".c"},
    {.title = "C++", .endings = ".cc .cpp"},
    {.title = "Java", .endings = ".java"},
    {.title = "R", .endings = ".r .R"},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* WORD stands in LIST, whose words have a blank between two. */
static bool has(const char *list, const char *word,
                int (*compare)(const char *, const char *, size_t))
{
    const size_t len = strlen(word);
    for (const char *at = list; at && *at;) {
        const size_t n = strcspn(at, " ");
        if (n == len && compare(at, word, n) == 0)
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

const struct language *language_named(const char *name)
{
    const struct language *l = language_next(NULL);
    while (l && strcmp(l->name, name) != 0)
        l = language_next(l);
    return l;
}

const struct language *language_ending(const char *ending)
{
    for (size_t i = 0; i < ROWS; i++)
        if (has(rows[i].endings, ending, strncmp))
            return &rows[i];
    return NULL;
}

const struct language *language_tagged(const char *tag)
{
    for (size_t i = 0; i < ROWS; i++)
        if (has(rows[i].tags, tag, strncasecmp))
            return &rows[i];
    return NULL;
}

const struct language *language_next(const struct language *l)
{
    for (l = l ? l + 1 : rows; l < rows + ROWS; l++)
        if (l->name)
            return l;
    return NULL;
}

const struct language *language_default(void)
{
    return rows;
}

const char *language_filter_procs(const struct language *l, char *to, size_t size)
{
    snprintf(to, size, "%s-procs", l->filter);
    return to;
}

const char *language_filter(const struct language *l, bool compute, bool threads, bool own_root,
                            char *to, size_t size)
{
    snprintf(to, size, "%s%s%s", l->filter,
             compute   ? "-compute"
             : threads ? "-threads"
                       : "",
             own_root ? "" : "-landlock");
    return to;
}
