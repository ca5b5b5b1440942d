/* SPDX-License-Identifier: Apache-2.0 */
/* A host tool is a command of the operator's: it runs outside the jail, after the same checks as any tool. The broker starts it, which
 * reads none of the bytes: cordon-tool has made the arguments what the command reads, and makes what the command wrote an
 * answer. */
#include "flow/steps.h"

#include "base/limits.h"
#include "tools/command.h"
#include "tools/process.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

/* Why there is no answer, and the first line of what the command said about it. */
static void explain(const struct policy_tool *tool, enum tools_command_end end, int status,
                    const struct buf *said, char *why, size_t size)
{
    const char *text = said->len ? said->data : "";
    const size_t line = strcspn(text, "\r\n");
    switch (end) {
    case TOOLS_COMMAND_LATE:
        snprintf(why, size, "%s took longer than %llu ms and was ended", tool->name,
                 (unsigned long long)tool->timeout_ms);
        return;
    case TOOLS_COMMAND_STOPPED:
        snprintf(why, size, "nobody waits for the tool any more");
        return;
    case TOOLS_COMMAND_CUT:
        snprintf(why, size, "%s wrote more than %llu bytes, and a part of JSON is none", tool->name,
                 (unsigned long long)tool->output);
        return;
    case TOOLS_COMMAND_SIGNAL:
        snprintf(why, size, "%s was killed by signal %d", tool->name, status);
        break;
    case TOOLS_COMMAND_EXITED:
        snprintf(why, size, "%s ended with status %d", tool->name, status);
        break;
    }
    const size_t used = strlen(why);
    if (line && used + 2 < size)
        snprintf(why + used, size - used, ": %.*s", (int)line, text);
}

static enum tools_wrote kind_of(const struct policy_tool *tool, enum tools_command_end end,
                                int status)
{
    const bool text = tool->answer == POLICY_ANSWER_TEXT;
    if (end == TOOLS_COMMAND_CUT)
        return text ? TOOLS_WROTE_PART : TOOLS_WROTE_WHY;
    if (end != TOOLS_COMMAND_EXITED || status != 0)
        return end == TOOLS_COMMAND_EXITED && status == EX_USAGE ? TOOLS_WROTE_WRONG
                                                                 : TOOLS_WROTE_WHY;
    return text ? TOOLS_WROTE_TEXT : TOOLS_WROTE_JSON;
}

enum tools_end flow_host_tool(const struct policy_tool *tool, struct tools_process *process,
                              int stop, struct buf *text, struct err *err)
{
    const struct tools_command c = {.argv = tool->command.items,
                                    .env = tool->env.items,
                                    .nenv = tool->env.count,
                                    .timeout_ms = tool->timeout_ms,
                                    .memory = tool->memory,
                                    .output = tool->output,
                                    .input = text->data,
                                    .input_len = text->len,
                                    .files = process->files,
                                    .nfiles = process->nfiles,
                                    .stop = stop,
                                    .keep = process->pid};
    enum tools_command_end end = TOOLS_COMMAND_LATE;
    enum tools_end ret = TOOLS_FAILED;
    struct buf out, said;
    char why[300];
    int status = 0;
    if (tools_command_run(&c, &out, &said, &end, &status, err) == 0) {
        const enum tools_wrote kind = kind_of(tool, end, status);
        const bool wrote = kind < TOOLS_WROTE_WRONG;
        explain(tool, end, status, &said, why, sizeof why);
        ret = tools_process_wrote(process, kind, wrote ? out.data : why,
                                  wrote ? out.len : strlen(why), text, err);
    }
    buf_done(&out);
    buf_done(&said);
    return ret;
}
