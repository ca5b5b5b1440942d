/* SPDX-License-Identifier: Apache-2.0 */
/* A machine on which every layer works still runs nothing where the policy is broken or the state folder cannot be
 * written. So both are opened here in the way in which a run opens them. */
#include "doctor_context.h"

#include "output/clean.h"
#include "programs.h"
#include "result.h"
#include "sys/fd.h"
#include "sys/gateway.h"
#include "sys/state.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void doctor_context_open(struct doctor_context *h)
{
    *h = (struct doctor_context){.why = ERR_INIT, .part = "policy"};
    if (flow_context_open(&h->context, NULL, &h->why) < 0)
        return;
    h->part = "state";
    if (result_open_gate(&h->context, true, &h->why) == 0)
        h->part = NULL;
}

void doctor_context_close(struct doctor_context *h)
{
    flow_context_close(&h->context);
}

static bool on_linux(void)
{
    struct utsname u;
    return uname(&u) == 0 && strcmp(u.sysname, "Linux") == 0;
}

static bool can_stop(const struct doctor_context *h)
{
    struct gate_stop_info info;
    if (h->part)
        return false;
    gate_stop_read(h->context.gate, &info);
    return gate_stop_fd(h->context.gate) >= 0 && !info.stopped;
}

static bool no_secrets(void)
{
    struct output_known one[1];
    return output_env_secrets((const char *const *)environ, SIZE_MAX, one, 1) == 0;
}

static bool can_go_back(void)
{
    char path[4096];
    struct err none = ERR_INIT;
    return programs_find("cordon-workspace", path, sizeof path, &none) == 0;
}

static bool gateway_lives(void)
{
    FD_AUTO state = -1;
    struct gateway g;
    struct err none = ERR_INIT;
    char folder[STATE_PATH_MAX];
    const bool lives = state_path(folder, sizeof folder, &none) == 0 &&
                       state_open(folder, false, &state, &none) == 0 &&
                       gateway_find(state, &g, &none) == 0;
    if (lives)
        gateway_done(&g);
    return lives;
}

struct row {
    const char *state, *text; /* state NULL: a heading */
};

static const char *tick(bool seen)
{
    return seen ? "x" : " ";
}

void doctor_checklist(const struct doctor_context *h, bool ran, bool cgroup)
{
    static const struct policy none; /* nothing of a policy that cannot be read is ticked */
    const struct policy *p = h->part ? &none : h->context.policy;
    const bool lives = gateway_lives();
    const bool alerts = p->audit.alert_to.count || p->audit.alert_command.count ||
                        (p->audit.alert_file && *p->audit.alert_file);
    const struct row rows[] = {
        {NULL, "Before deploying"},
        {tick(ran), "every layer of the default policy is enforced (a program proved it just now)"},
        {tick(!h->part), "policy, state folder, gate and audit can be opened"},
        {tick(on_linux()), "Linux: the platform with the strongest isolation"},
        {tick(geteuid() != 0), "cordon is started by an ordinary user, not by root"},
        {tick(cgroup), "a cgroup can be had, so that runs with several processes are bounded"},
        {tick(no_secrets()), "no variable of this environment has the name of a secret"},
        {tick(p->audit.retention_days >= 90 || (!h->part && p->audit.retention_days == 0)),
         "the audit is kept for 90 days at least"},
        {tick(alerts && p->audit.failures && p->audit.violations),
         "anomalies are looked for, and alerts go somewhere"},
        {tick(p->rates.executions && p->rates.concurrent), "rates are limited"},
        {tick(p->arena.enabled && (p->arena.njudges > 1 || (p->arena.njudges == 0 && lives))),
         "the arena is on and has judges to disagree"},
        {tick(p->approval.mode != POLICY_AUTONOMOUS),
         "people are asked: approval.mode is not AUTONOMOUS"},
        {tick(p->nupstreams > 0),
         "keys of models are in a gateway alone: the policy names upstreams for `cordon proxy`"},
        {tick(lives),
         "a gateway of this state folder lives: llm() and model judges have an answer"},
        {"?", "the host is patched and updated regularly: yours to see to"},
        {"?", "a firewall blocks outgoing connections of the server: yours to see to"},
        {"?", "incident response is written down and tried; people know the limits (SECURITY.md): "
              "yours"},
        {NULL, "Before running experiments"},
        {tick(can_stop(h)), "`cordon stop` would end what runs, and is not in force now"},
        {"?", "you know what the program may do: `cordon policy show`; the rest is denied"},
        {tick(can_go_back()), "a state to go back to can be kept: `--workspace NAME`, and `cordon "
                              "workspace restore`"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].state)
            printf("  [%s] %s\n", rows[i].state, rows[i].text);
        else
            printf("%s%s\n", i ? "\n" : "", rows[i].text);
    puts("\n[x] seen here   [ ] missing here   [?] not for a machine to see");
}
