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

/* As the most forgiving system reads it: small letters; without what HFS+ ignores; and as NTFS does, without a stream,
 * a second component, and blanks and dots at the end. Cut at SIZE: the names that matter are short. */
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
        if (name[i] == ':' || name[i] == '\\')
            break;
        out[at++] = (char)tolower((unsigned char)name[i++]);
    }
    while (at && (out[at - 1] == ' ' || out[at - 1] == '.'))
        at--;
    out[at] = 0;
}

static const struct git_name {
    const char *name, *short_name; /* and its DOS names begin with this, then a number */
    const char *why;
} git_names[] = {
    {".git", "git~", "git takes it for a store of its own"},
    {".gitmodules", "gitmod~", "git obeys it: submodules"},
    {".gitmodules", "gi7eba~", "git obeys it: submodules"},
    {".gitattributes", "gitatt~", "git obeys it: attributes"},
    {".gitattributes", "gi7d29~", "git obeys it: attributes"},
    {".mailmap", "mailma~", "git obeys it: other names for authors"},
};

static const char *name_fault(const char *name, size_t len)
{
    char plain[64];
    plain_name(name, len, plain, sizeof plain);
    for (size_t i = 0; i < sizeof git_names / sizeof *git_names; i++) {
        const size_t n = strlen(git_names[i].short_name);
        if (strcmp(plain, git_names[i].name) == 0 ||
            (strncmp(plain, git_names[i].short_name, n) == 0 && isdigit((unsigned char)plain[n])))
            return git_names[i].why;
    }
    return NULL;
}

const char *workspace_name_fault(const char *name)
{
    return name_fault(name, strlen(name));
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
        if (name_fault(part, n))
            return "a link to a name that git obeys";
    }
    return NULL;
}

static int64_t lock_of(const char *name)
{
    return (int64_t)hash_bytes(HASH_START, name, strlen(name)) * 2;
}

int64_t workspace_lock_change(const char *name)
{
    return lock_of(name);
}

int64_t workspace_lock_read(const char *name)
{
    return lock_of(name) + 1;
}
