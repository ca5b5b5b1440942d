/* SPDX-License-Identifier: Apache-2.0 */
/* llm() of guest code. The guest has no way to the gateway: the broker starts cordon-ask, which connects, and which alone has the token of
 * runs; the keys of models never leave the gateway. cordon-tool has checked the arguments and made the prompt data, and makes the
 * model's words data on the way back. Who may ask how often is counted three times: the run's calls here, the tool's breaker by
 * the gate, calls and tokens of all runs together by the gateway. */
#include "flow/steps.h"

#include "base/limits.h"
#include "sys/fd.h"
#include "sys/gateway.h"
#include "sys/state.h"
#include "tools/command.h"

#include <stdio.h>
#include <string.h>

#define WORDS (6 + 32) /* of the command; as many models as llm.models may have */

bool flow_llm_ready(const struct flow_context *context, char *why, size_t size)
{
    FD_AUTO state = -1;
    struct err err = ERR_INIT;
    struct gateway g;
    char folder[STATE_PATH_MAX];
    int r = context->ask[0] ? state_path(folder, sizeof folder, &err)
                            : err_set(&err, ERR_MISSING, "cordon-ask is not installed");
    if (r == 0)
        r = state_open(folder, false, &state, &err);
    if (r == 0)
        r = gateway_find(state, &g, &err);
    if (r == 0)
        gateway_done(&g);
    if (r < 0)
        snprintf(why, size, "llm(): %.400s", err.msg);
    return r == 0;
}

/* How it ended, for the caller; the words are for it, too. */
static enum gate_error_category explain(const struct policy *p, enum tools_command_end end,
                                        int status, const struct buf *said, char *why, size_t size)
{
    const char *text = said->len ? said->data : "";
    const int line = (int)strcspn(text, "\r\n");
    if (end == TOOLS_COMMAND_LATE) {
        snprintf(why, size, "llm(): no answer within %llu ms (llm.timeout of the policy)",
                 (unsigned long long)p->llm.timeout_ms);
        return GATE_ERROR_TIMEOUT;
    }
    if (end == TOOLS_COMMAND_STOPPED)
        snprintf(why, size, "nobody waits for the tool any more");
    else if (end == TOOLS_COMMAND_EXITED && line)
        snprintf(why, size, "llm(): %.*s", line, text);
    else
        snprintf(why, size, "llm(): the process that asks %s %d",
                 end == TOOLS_COMMAND_SIGNAL ? "was killed by signal" : "ended with status",
                 status);
    if (end != TOOLS_COMMAND_EXITED)
        return GATE_ERROR_HOST;
    return status == GATEWAY_ABORTED   ? GATE_ERROR_EARLY_ABORT
           : status == GATEWAY_LATE    ? GATE_ERROR_TIMEOUT
           : status == GATEWAY_REFUSED ? GATE_ERROR_REFUSAL
                                       : GATE_ERROR_HOST;
}

enum tools_end flow_llm(const struct flow_context *context, struct tools_process *process, int stop,
                        struct buf *text, enum gate_error_category *ret_category, struct err *err)
{
    const struct policy *p = context->policy;
    const char *argv[WORDS + 1] = {context->ask, "--from-cordon", "llm"};
    char folder[STATE_PATH_MAX], tokens[24], why[400];
    size_t n = 3;
    struct buf out, said;
    enum tools_command_end end = TOOLS_COMMAND_LATE;
    enum tools_end ret = TOOLS_FAILED;
    int status = 0;
    if (state_path(folder, sizeof folder, err) < 0)
        return TOOLS_FAILED;
    snprintf(tokens, sizeof tokens, "%llu", (unsigned long long)p->llm.tokens);
    argv[n++] = folder;
    argv[n++] = p->llm.system;
    argv[n++] = tokens;
    for (size_t i = 0; i < p->llm.models.count && n < WORDS; i++)
        argv[n++] = p->llm.models.items[i];
    const struct tools_command c = {.argv = argv,
                                    .timeout_ms = p->llm.timeout_ms,
                                    .memory = LIMIT_TOOL_MEMORY,
                                    .output = LIMIT_ASK_REPLY,
                                    .input = text->data,
                                    .input_len = text->len,
                                    .stop = stop,
                                    .keep = process->pid};
    if (tools_command_run(&c, &out, &said, &end, &status, err) == 0) {
        const bool answered = end == TOOLS_COMMAND_EXITED && status == GATEWAY_ANSWERED;
        if (!answered)
            *ret_category = explain(p, end, status, &said, why, sizeof why);
        ret = answered
                  ? tools_process_wrote(process, TOOLS_WROTE_MODEL, out.data, out.len, text, err)
                  : tools_process_wrote(process,
                                        *ret_category == GATE_ERROR_REFUSAL ? TOOLS_WROTE_WRONG
                                                                            : TOOLS_WROTE_WHY,
                                        why, strlen(why), text, err);
    }
    buf_done(&out);
    buf_done(&said);
    return ret;
}
