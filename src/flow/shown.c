/* SPDX-License-Identifier: Apache-2.0 */
/* What a run shows of the host (--ro, --rw) to a guest that can open no file: cordon-tool serves it beside the guest's own files. Each is opened
 * once, before the jail is built or the session called; the jail then takes no other than that one, by device and inode, so that what was
 * decided about a folder holds for what is served. The guest gets no right that a mount in its jail would not give it: the process that
 * serves has the guest's id, and as root it is given mounts that are mapped to that, as the jail's are. */
#include "flow/steps.h"

#include "jail/put.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static bool is_shown(const struct jail_bind *b)
{
    return !b->copied && !b->out && !b->lower;
}

/* Python's worker is the one that asks for files. */
static bool is_served(const struct policy_profile *profile, const struct language *language)
{
    return profile->files && language == language_default();
}

/* What the program imports from there is read before it can only compute. */
static bool is_of_modules(const struct jail_bind *b, const struct language *language)
{
    return language->imports && jail_bind_in_workspace(b);
}

int flow_shown_check(const struct jail_spec *s, const struct policy_profile *profile,
                     const struct language *language, struct err *err)
{
    for (size_t i = 0; profile->compute_only && i < s->nbinds; i++) {
        const struct jail_bind *b = &s->binds[i];
        if (is_shown(b) && !is_served(profile, language) && !is_of_modules(b, language))
            return err_set(err, ERR_USAGE,
                           "--%s: a program of %s under %.40s can open no file, so it would not "
                           "see %.100s; give it data with --stdin FILE, or use --profile standard",
                           b->writable ? "rw" : "ro", language->title, profile->name, b->dest);
    }
    return 0;
}

int flow_shown_open(struct flow *f, struct err *err)
{
    const struct jail_spec *s = &f->req->spec;
    if (f->req->kind != FLOW_RUN && f->req->kind != FLOW_CALL)
        return 0;
    const int r = flow_shown_check(s, f->req->profile, f->language, err);
    if (r < 0 || !is_served(f->req->profile, f->language))
        return r;
    for (size_t i = 0; i < s->nbinds; i++) {
        if (!is_shown(&s->binds[i]))
            continue;
        const int fd = jail_bind_open(&s->binds[i], err);
        if (fd < 0)
            return fd;
        f->shown[f->nshown] = (struct tools_share){
            .fd = fd, .writable = s->binds[i].writable, .dest = s->binds[i].dest};
        f->shown_binds[f->nshown++] = i;
    }
    return 0;
}

int flow_shown_hold(const struct flow *f, struct jail_bind *binds, struct err *err)
{
    for (size_t i = 0; i < f->nshown; i++) {
        struct jail_bind *b = &binds[f->shown_binds[i]];
        struct stat st;
        if (fstat(f->shown[i].fd, &st) < 0)
            return err_sys(err, "%s", b->source);
        b->device = st.st_dev;
        b->inode = st.st_ino;
    }
    return 0;
}

int flow_shown_map(struct flow *f, struct err *err)
{
    const int files = f->nshown ? jail_run_files(f->run) : -1;
    for (size_t i = 0; files >= 0 && i < f->nshown; i++) {
        const int fd =
            jail_bind_seen(&f->req->spec.binds[f->shown_binds[i]], f->shown[i].fd, files, err);
        if (fd < 0)
            return fd;
        fd_close(f->shown[i].fd);
        f->shown[i].fd = fd;
    }
    return 0;
}

void flow_shown_close(struct flow *f)
{
    while (f->nshown)
        fd_close(f->shown[--f->nshown].fd);
}
