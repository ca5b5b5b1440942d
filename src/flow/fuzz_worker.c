/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile worker may say, in any state: the supervisor must neither crash nor wait. The first byte is
 * the state; then frames, each with its length before it. */
#include "flow/worker.h"

#include "base/limits.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct flow_worker w;

/* Every second call is answered at once; of the others the broker is slow to say anything. */
static void call(void *ctx, uint64_t id, const char *tool, const char *args, size_t len)
{
    (void)ctx;
    (void)tool;
    if (id % 2)
        flow_worker_answer(&w, id, true, args, len);
}

static void file(void *ctx, uint64_t id, const void *frame, size_t len)
{
    (void)ctx;
    if (id % 2)
        flow_worker_file_done(&w, id, frame, len);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
    static const char *const none[] = {NULL};
    static const struct flow_job job = {.kind = FLOW_JOB_RUN,
                                        .name = "fuzz",
                                        .source = "",
                                        .tools = none,
                                        .call = call,
                                        .file = file};
    struct flow_result result;
    int sv[2];
    if (len < 1)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv) < 0)
        abort();
    flow_result_init(&result);
    flow_worker_init(&w, sv[0], &result);
    w.job = &job;
    w.state = (enum flow_worker_state)(data[0] % FLOW_WORKER_DONE);
    for (size_t at = 1; at < len;) {
        size_t n = data[at] < len - at - 1 ? data[at] : len - at - 1;
        if (send(sv[1], data + at + 1, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            break;
        at += n + 1;
        if (!flow_worker_read(&w))
            break;
    }
    flow_worker_explain(&w, &(struct jail_limits){.memory = MIB});
    close(sv[0]);
    close(sv[1]);
    flow_worker_done(&w);
    flow_result_done(&result);
    return 0;
}
