/* SPDX-License-Identifier: Apache-2.0 */
/* What makes the log worth believing lies in a folder of its own: who can only write in audit/ can
 * neither sign a record nor move the head.
 *
 * The head file is written in place, at every append, so it holds each state twice and the two places
 * take turns: a write that was torn leaves the state before. A slot is valid if its signature is.
 *
 * Waits: fsync in write_new; the disk, for a new key or anchor; none (the kernel's own); others are refused
 *          by name
 *        read in *; small files; none (the kernel's own); an error
 *        pwrite in *; a file of the log; none (the kernel's own); an error */
#include "audit/inside.h"

#include "sys/fd.h"
#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_FILE    "key"
#define KEY_NEW     "key.new"
#define ANCHOR_FILE "anchor"
#define ANCHOR_NEW  "anchor.new"
#define MAGIC       0x31646165486f4321ULL

int audit_pwrite(int fd, const void *data, size_t len, off_t at, const char *what, struct err *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(fd, (const char *)data + done, len - done, at + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 ? errno : ENOSPC;
            return err_sys(err, "write %s", what);
        }
        done += (size_t)n;
    }
    return 0;
}

static int write_new(int seal, const char *temporary, const char *name, const void *data,
                     size_t len, struct err *err)
{
    FD_AUTO fd = -1;
    int r = state_file(seal, temporary, O_WRONLY | O_CREAT | O_TRUNC, &fd, err);
    if (r < 0)
        return r;
    r = audit_pwrite(fd, data, len, 0, name, err);
    if (r < 0)
        return r;
    if (fsync(fd) < 0 || renameat(seal, temporary, seal, name) < 0 || fsync(seal) < 0)
        return err_sys(err, "write %s", name);
    return 0;
}

/* ---- the key ---- */

int audit_key_load(int seal, bool make, struct hmac_sha256_ctx *ret, struct err *err)
{
    uint8_t key[AUDIT_HASH];
    char text[2 * AUDIT_HASH + 2];
    FD_AUTO fd = -1;
    int r = state_file(seal, KEY_FILE, O_RDONLY, &fd, err);
    if (r == ERR_SYS && err->sys_errno == ENOENT && make) {
        if (getrandom(key, sizeof key, 0) != sizeof key)
            return err_sys(err, "make a key for the audit");
        audit_hex(key, sizeof key, text);
        text[2 * AUDIT_HASH] = '\n';
        r = write_new(seal, KEY_NEW, KEY_FILE, text, 2 * AUDIT_HASH + 1, err);
    } else if (r == 0) {
        ssize_t n = read(fd, text, sizeof text);
        if (n != 2 * AUDIT_HASH + 1 || !audit_unhex(text, AUDIT_HASH, key))
            r = err_set(err, ERR_FORMAT,
                        "seal/key in the state folder is not a key of the audit: put the right one "
                        "back, or move audit/ and seal/ away to begin anew");
    }
    if (r == 0)
        hmac_sha256_set_key(ret, sizeof key, key);
    explicit_bzero(key, sizeof key);
    explicit_bzero(text, sizeof text);
    return r;
}

/* ---- the head ---- */

/* As it lies in the file; only this machine reads it. */
struct slot {
    uint64_t magic;
    struct audit_head head;
    uint8_t mac[AUDIT_HASH];
};
_Static_assert(sizeof(struct slot) <= AUDIT_HEAD_SLOT, "a slot of the head file is one sector");

void audit_head_encode(const struct audit_head *h, struct hmac_sha256_ctx *key,
                       uint8_t out[AUDIT_HEAD_SLOT])
{
    struct slot s;
    memset(&s, 0, sizeof s); /* padding is signed too */
    s.magic = MAGIC;
    s.head = *h;
    memset(out, 0, AUDIT_HEAD_SLOT);
    audit_sign(key, 'h', &s, offsetof(struct slot, mac), s.mac);
    memcpy(out, &s, sizeof s);
}

bool audit_head_decode(const uint8_t in[AUDIT_HEAD_SLOT], struct hmac_sha256_ctx *key,
                       struct audit_head *ret)
{
    struct slot s;
    memcpy(&s, in, sizeof s);
    if (s.magic != MAGIC || !audit_signed(key, 'h', &s, offsetof(struct slot, mac), s.mac))
        return false;
    *ret = s.head;
    return true;
}

bool audit_head_pick(const uint8_t in[AUDIT_HEAD_SET], struct hmac_sha256_ctx *key,
                     struct audit_head *ret)
{
    struct slot s[2];
    memcpy(&s[0], in, sizeof s[0]);
    memcpy(&s[1], in + AUDIT_HEAD_SLOT, sizeof s[1]);
    size_t newer =
        s[1].head.generation > s[0].head.generation; /* as it says itself; its signature decides */
    return audit_head_decode(in + newer * AUDIT_HEAD_SLOT, key, ret) ||
           audit_head_decode(in + (1 - newer) * AUDIT_HEAD_SLOT, key, ret);
}

/* ---- the anchor ---- */

struct anchor_file {
    uint64_t magic, seq;
    uint8_t hash[AUDIT_HASH], mac[AUDIT_HASH];
};

int audit_anchor_load(int seal, struct hmac_sha256_ctx *key, struct audit_anchor *ret,
                      struct err *err)
{
    struct anchor_file f;
    FD_AUTO fd = -1;
    *ret = (struct audit_anchor){0};
    int r = state_file(seal, ANCHOR_FILE, O_RDONLY, &fd, err);
    if (r == ERR_SYS && err->sys_errno == ENOENT)
        return 0;
    if (r < 0)
        return r;
    if (read(fd, &f, sizeof f) != sizeof f || f.magic != MAGIC ||
        !audit_signed(key, 'a', &f, offsetof(struct anchor_file, mac), f.mac))
        return err_set(err, ERR_FORMAT,
                       "seal/anchor in the state folder is not signed with seal/key: one of them "
                       "was replaced");
    ret->seq = f.seq;
    memcpy(ret->hash, f.hash, AUDIT_HASH);
    return 0;
}

int audit_anchor_store(int seal, struct hmac_sha256_ctx *key, const struct audit_anchor *anchor,
                       struct err *err)
{
    struct anchor_file f = {.magic = MAGIC, .seq = anchor->seq};
    memcpy(f.hash, anchor->hash, AUDIT_HASH);
    audit_sign(key, 'a', &f, offsetof(struct anchor_file, mac), f.mac);
    return write_new(seal, ANCHOR_NEW, ANCHOR_FILE, &f, sizeof f, err);
}
