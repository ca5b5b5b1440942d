/* SPDX-License-Identifier: Apache-2.0 */
/* An accepted method becomes a file of its run's /workspace once the run has ended well, and goes where the run's files go:
 * into a commit, or to the folder of --out. The text is the one that was judged, from our own memory: what the guest left
 * under that name is replaced. A run in which a layer refused anything saves nothing, even if the method rescued it.
 *
 * Waits: fd_write_all in save; our own memory; none (the kernel's own); an error */
#include "flow/steps.h"

#include "jail/put.h"
#include "sys/fd.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const char not_saved[] =
    "the method was not saved: a layer refused something that it tried (violations)";

static const char not_named[] =
    "the method was not saved: its file breaks a rule of the policy for names (naming)";

/* What the policy says of a file of this name and text; NULL: nothing. */
static const char *naming_message(const struct flow *f)
{
    const struct policy *p = f->req->context->policy;
    char path[512];
    const int n = snprintf(path, sizeof path, "/%s", f->req->save);
    if (!p || n < 0 || (size_t)n >= sizeof path)
        return NULL;
    const struct naming_rule *broken =
        naming_broken(p->naming, p->nnaming, path, f->source, f->source_len);
    return broken ? broken->message : NULL;
}

static int save(const struct flow *f, int root, struct err *err)
{
    char dest[512];
    FD_AUTO text = memfd_create("cordon-method", MFD_CLOEXEC);
    if (text < 0 || fchmod(text, 0644) < 0 || fd_write_all(text, f->source, f->source_len) < 0)
        return err_sys(err, "--save: copy the method");
    int n = snprintf(dest, sizeof dest, "/workspace/%s", f->req->save);
    if (n < 0 || (size_t)n >= sizeof dest)
        return err_set(err, ERR_USAGE, "--save: the path is too long");
    return jail_put_left(text, root, dest, "--save", err);
}

void flow_save(struct flow *f, int root)
{
    struct flow_result *result = f->result;
    struct err err = ERR_INIT;
    if (!f->req->save || result->status != FLOW_OK)
        return;
    if (result->violations_total || result->violation_count) {
        (void)flow_result_note(result, not_saved);
        return;
    }
    const char *broken = naming_message(f);
    if (broken)
        (void)flow_result_note(result, broken);
    if (broken && f->req->context->policy->verification == POLICY_VERIFY_STRICT) {
        (void)flow_result_note(result, not_named);
        return;
    }
    jail_run_own_files(f->run, true);
    int r = save(f, root, &err);
    jail_run_own_files(f->run, false);
    if (r < 0)
        flow_result_say(result, FLOW_ERROR, "filesystem", "CODE", "WorkspaceError", err.msg);
}
