/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a workspace is on record as what runs in it is. The process that carries the order out is a child that
 * dies with us: whoever kills `cordon` has ended the command, and not only its record.
 *
 * Waits: sys_child_wait in workspace_note_run; cordon-workspace, for 4 GB on a slow disk; LIMIT_WORKSPACE_MS; it is killed,
 *          and the head is the old state or the new one */
#include "workspace_note.h"

#include "commands.h"
#include "result.h"
#include "sys/child.h"
#include "sys/here.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int workspace_note(struct flow_context *context, const struct workspace_order *o, int status,
                   struct err *err)
{
    struct gate_client client;
    int r = context->audit ? 0 : result_open_gate(context, false, err);
    if (r < 0)
        return r;
    const struct audit_arg args[] = {
        {.name = "event", .kind = AUDIT_ARG_TEXT, .text = o->verb},
        {.name = "workspace", .kind = AUDIT_ARG_TEXT, .text = o->name},
        {.name = "message", .kind = AUDIT_ARG_TEXT, .text = o->words[0]},
        {.name = "what", .kind = AUDIT_ARG_TEXT, .text = o->words[1]},
    };
    const struct audit_outcome outcome = {
        .status = status == EXIT_DONE ? "ok" : "error", .exit_code = status, .has_exit_code = true};
    gate_client_uid(&client, here_user());
    const struct audit_facts f = {.client_id = client.id,
                                  .tool = "workspace",
                                  .role = context->policy->run.role,
                                  .args = args,
                                  .nargs = sizeof args / sizeof *args,
                                  .outcome = &outcome};
    return audit_event(context->audit, AUDIT_WORKSPACE, &f, err);
}

static _Noreturn void be_order(const struct workspace_order *o, pid_t parent)
{
    struct err why = ERR_INIT;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
        (void)!workspace_order_become(o, &why);
    if (why.code) /* else nobody is there to be told */
        result_complain("cordon workspace", why.msg);
    _exit(EXIT_FAILED);
}

/* What cannot be recorded is not done; but for what makes room on a full disk, also for its own record. */
static int room(struct flow_context *context, const struct workspace_order *o, struct err *err)
{
    const int r = context->audit ? 0 : result_open_gate(context, false, err);
    const bool makes_room = strcmp(o->verb, "delete") == 0 || strcmp(o->verb, "discard") == 0;
    return r < 0 || makes_room ? r : audit_room(context->audit, 0, err);
}

int workspace_note_run(const struct workspace_order *o, struct flow_context *context,
                       struct err *err)
{
    const pid_t us = getpid();
    int status = 0;
    if (room(context, o, err) < 0)
        return err->code;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        be_order(o, us);
    if (pid < 0 || sys_child_wait(pid, LIMIT_WORKSPACE_MS, &status) < 0)
        return err_sys(err, "run cordon-workspace");
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
    if (WIFSIGNALED(status))
        result_complain("cordon workspace", "cordon-workspace was killed");
    int r = workspace_note(context, o, code, err);
    return r < 0 ? r : code;
}
