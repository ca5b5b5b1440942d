/* SPDX-License-Identifier: Apache-2.0 */
/* A store is read by git clients on other systems, too: what Windows or macOS takes for `.git` is refused here, where
 * it is an ordinary name. The names are brought into one spelling first and compared with one table then, so that no
 * combination of the tricks is forgotten. */
#include "workspace/names.h"

#include "base/hash.h"
#include "base/utf8.h"

#include <ctype.h>
#include <string.h>

static bool hexadecimal(const char *s)
{
    return s[strspn(s, "0123456789abcdef")] == 0;
}

bool workspace_name_good(const char *name)
{
    const size_t len = strlen(name);
    if (len == 0 || len > WORKSPACE_NAME_MAX || !isalnum((unsigned char)name[0]) ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != len)
        return false;
    return !strstr(name, "..") && name[len - 1] != '.' &&
           !(len >= 5 && strcmp(name + len - 5, ".lock") == 0);
}

const char *workspace_clone_part(const char *name)
{
    const char *at = strchr(name, '@');
    return at ? at + 1 : NULL;
}

void workspace_base_part(const char *name, char ret[WORKSPACE_NAME_MAX + 1])
{
    const size_t len = strcspn(name, "@");
    const size_t kept = len <= WORKSPACE_NAME_MAX ? len : WORKSPACE_NAME_MAX;
    memcpy(ret, name, kept);
    ret[kept] = 0;
}

bool workspace_full_name_good(const char *name)
{
    char base[WORKSPACE_NAME_MAX + 1];
    const char *clone = workspace_clone_part(name);
    workspace_base_part(name, base);
    return strcspn(name, "@") <= WORKSPACE_NAME_MAX && workspace_name_good(base) &&
           (!clone || (workspace_name_good(clone) && strcmp(clone, "main") != 0));
}

bool workspace_snapshot_name_good(const char *name)
{
    return workspace_name_good(name) && strcmp(name, "head") != 0 && strcmp(name, "genesis") != 0 &&
           !hexadecimal(name);
}

/* Code points that HFS+ does not see in a name. */
static bool ignored(uint32_t cp)
{
    return (cp >= 0x200c && cp <= 0x200f) || (cp >= 0x202a && cp <= 0x202e) ||
           (cp >= 0x206a && cp <= 0x206f) || cp == 0xfeff;
}

/* As the most forgiving system reads it: small letters; without what HFS+ ignores; and as NTFS does, without a stream
 * and blanks and dots at the end. Cut at SIZE: the names that matter are short. */
static void plain_name(const char *name, size_t len, char *out, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < len && at + 1 < size;) {
        uint32_t cp = 0;
        const int n = utf8_decode((const unsigned char *)name + i, len - i, &cp);
        if (n > 1 && ignored(cp)) {
            i += (size_t)n;
            continue;
        }
        if (name[i] == ':')
            break;
        out[at++] = (char)tolower((unsigned char)name[i++]);
    }
    while (at && (out[at - 1] == ' ' || out[at - 1] == '.'))
        at--;
    out[at] = 0;
}

static const struct git_name {
    const char *name, *short_name; /* and its DOS names begin with this, then a number */
    const char *
        hashed; /* or with some of these letters, where others have the first ones; "": git knows none */
    bool link; /* a file of this name is harmless, and git follows a link */
    const char *why;
} git_names[] = {
    {".git", "git~", "", false, "git takes it for a store of its own"},
    {".gitmodules", "gitmod~", "gi7eba", false, "git obeys it: submodules"},
    {".gitattributes", "gitatt~", "gi7d29", false, "git obeys it: attributes"},
    {".mailmap", "mailma~", "maba30", false, "git obeys it: other names for authors"},
    {".gitignore", "gitign~", "gi250a", true, "a link of a name that git obeys"},
};

/* A short name that NTFS made from a hash, by git's rule: some of the six letters, then ~ and a number; eight in all. */
static bool hashed_name(const char *plain, const char *letters)
{
    size_t at = 0;
    while (letters[at] && plain[at] == letters[at])
        at++;
    return *letters && strlen(plain) == 8 && plain[at] == '~' && plain[at + 1] != '0' &&
           strspn(plain + at + 1, "0123456789") == 7 - at;
}

static const char *part_fault(const char *name, size_t len, bool link)
{
    char plain[64];
    plain_name(name, len, plain, sizeof plain);
    for (size_t i = 0; i < sizeof git_names / sizeof *git_names; i++) {
        const struct git_name *g = &git_names[i];
        const size_t n = strlen(g->short_name);
        if ((link || !g->link) &&
            (strcmp(plain, g->name) == 0 || hashed_name(plain, g->hashed) ||
             (strncmp(plain, g->short_name, n) == 0 && isdigit((unsigned char)plain[n]))))
            return g->why;
    }
    return NULL;
}

/* To Windows another name begins behind each backslash. */
static const char *name_fault(const char *name, size_t len, bool link)
{
    const char *fault = NULL;
    for (size_t at = 0; !fault && at < len;) {
        const char *slash = memchr(name + at, '\\', len - at);
        const size_t n = slash ? (size_t)(slash - name) - at : len - at;
        fault = part_fault(name + at, n, link);
        at += n + 1;
    }
    return fault;
}

const char *workspace_name_fault(const char *name, bool link)
{
    return name_fault(name, strlen(name), link);
}

const char *workspace_link_fault(const char *target, size_t len, size_t depth)
{
    size_t ups = 0, at = 0;
    bool named = false;
    if (len == 0 || memchr(target, 0, len))
        return "a link to nothing";
    if (target[0] == '/')
        return "a link with an absolute path";
    while (at < len) {
        const char *part = target + at;
        const char *slash = memchr(part, '/', len - at);
        const size_t n = slash ? (size_t)(slash - part) : len - at;
        at += n + 1;
        if (n == 0 || (n == 1 && part[0] == '.'))
            continue;
        if (n == 2 && part[0] == '.' && part[1] == '.') {
            if (named)
                return "a link with .. behind a name";
            if (++ups > depth)
                return "a link that leads out of the workspace";
            continue;
        }
        named = true;
        if (name_fault(part, n, false))
            return "a link to a name that git obeys";
    }
    return NULL;
}

static int64_t lock_of(const char *name)
{
    return (int64_t)hash_bytes(HASH_START, name, strcspn(name, "@")) * 2;
}

int64_t workspace_lock_change(const char *name)
{
    return lock_of(name);
}

int64_t workspace_lock_read(const char *name)
{
    return lock_of(name) + 1;
}
