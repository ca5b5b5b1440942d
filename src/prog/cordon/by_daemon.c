/* SPDX-License-Identifier: Apache-2.0 */
/* The client is libcordon's own. Before the first byte we look at who answers: the kernel's word on the peer, and whether
 * somebody else could have put the socket there. */
#include "by_daemon.h"

#include "base/limits.h"
#include "client/inside.h"
#include "cordon.h"
#include "exits.h"
#include "flow/result.h"
#include "result.h"
#include "sys/here.h"
#include "sys/peer.h"
#include "writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool by_daemon_wanted(const struct policy *policy)
{
    return policy->daemon.use != POLICY_DAEMON_NEVER && !here_is_served();
}

/* Nobody but root, we and the socket's owner may write in its folder. */
static bool folder_is_safe(const char *path, uid_t owner)
{
    char folder[512];
    struct stat st;
    const char *slash = strrchr(path, '/');
    if (path[0] != '/' || slash == path || (size_t)(slash - path) >= sizeof folder)
        return false;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && !(st.st_mode & 022) &&
           (st.st_uid == 0 || st.st_uid == geteuid() || st.st_uid == owner);
}

static bool server_is_safe(int sock, uid_t owner)
{
    uid_t uid = 0;
    pid_t pid = 0;
    return sys_peer_who(sock, &uid, &pid) && (uid == 0 || uid == geteuid() || uid == owner) &&
           sys_peer_is_outside(pid);
}

/* NULL: nobody answers whom we believe. */
static struct cordon_client *open_server(const char *path)
{
    struct cordon_client *c = NULL;
    struct stat st;
    if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode) || !folder_is_safe(path, st.st_uid) ||
        cordon_client_connect(path, &c, NULL) != CORDON_CLIENT_OK)
        return NULL;
    if (server_is_safe(c->fd, st.st_uid))
        return c;
    cordon_client_close(c);
    return NULL;
}

static enum flow_status status_of(const char *word)
{
    for (enum flow_status s = FLOW_OK; s <= FLOW_REFUSED; s++)
        if (word && strcmp(flow_status_name(s), word) == 0)
            return s;
    return FLOW_REFUSED;
}

static void put(struct cordon_answer *a, const char *field, enum jail_stream stream, bool line)
{
    size_t len = 0;
    const char *text = cordon_answer_string(a, field, &len);
    if (text && len)
        writer_put(stream, text, len);
    if (text && len && line)
        writer_put(stream, "\n", 1);
}

static int tell_run(const struct by_daemon *q, struct cordon_answer *a)
{
    struct flow_result r;
    int64_t number = 0;
    flow_result_init(&r);
    r.status = status_of(cordon_answer_string(a, CORDON_RESULT_STATUS, NULL));
    r.ran = r.status == FLOW_OK || r.status == FLOW_ERROR;
    r.exit_code = cordon_answer_integer(a, CORDON_RESULT_EXIT_CODE, &number) ? (int)number : -1;
    r.signal = cordon_answer_integer(a, CORDON_RESULT_SIGNAL, &number) ? (int)number : 0;
    const int status = exits_status(&r, 0);
    const enum flow_status came = r.status;
    flow_result_done(&r);
    if (q->json)
        return status;
    put(a, CORDON_RESULT_STDOUT, JAIL_STDOUT, false);
    put(a, CORDON_RESULT_STDERR, JAIL_STDERR, false);
    put(a,
        cordon_answer_boolean(a, CORDON_RESULT_IS_FINAL) ? CORDON_RESULT_FINAL
                                                         : CORDON_RESULT_VALUE,
        JAIL_STDOUT, true);
    const char *reason = cordon_answer_string(a, CORDON_RESULT_REASON, NULL);
    if (came != FLOW_OK && came != FLOW_ERROR)
        result_complain(q->who, reason ? reason : flow_status_name(came));
    return status;
}

static int tell_check(const struct by_daemon *q, const struct cordon_answer *a)
{
    const char *text = cordon_answer_text(a);
    if (!q->json && text) {
        writer_put(JAIL_STDOUT, text, strlen(text));
        writer_put(JAIL_STDOUT, "\n", 1);
    }
    return cordon_answer_boolean(a, CORDON_REPORT_IS_SAFE) ? EXIT_DONE : EXIT_FAILED;
}

static void tell_json(const struct cordon_answer *a)
{
    size_t len = 0;
    const char *raw = cordon_answer_raw(a, &len);
    writer_put(JAIL_STDOUT, raw, len);
    writer_put(JAIL_STDOUT, "\n", 1);
}

static uint64_t said(uint64_t value, uint64_t unit)
{
    return value == UINT64_MAX ? 0 : (value + unit - 1) / unit;
}

bool by_daemon_do(const struct policy *policy, const struct by_daemon *q, int *ret_status)
{
    struct cordon_answer *a = NULL;
    const struct cordon_run_options o = {.language = q->language,
                                         .timeout_ms = said(q->timeout_ms, 1),
                                         .memory_mb = said(q->memory, MIB),
                                         .max_output_chars = said(q->output, 1)};
    char *code = memchr(q->code, 0, q->len) ? NULL : strndup(q->code, q->len);
    struct cordon_client *c = code ? open_server(policy->daemon.socket) : NULL;
    if (!c) {
        free(code);
        return false;
    }
    (void)!(q->check ? cordon_client_check(c, code, q->language, &a)
                     : cordon_client_run(c, code, &o, &a)); /* what there is of an answer is in A */
    if (a) {
        if (q->json)
            tell_json(a);
        *ret_status = q->check ? tell_check(q, a) : tell_run(q, a);
    } else { /* it may have run: nothing is tried again */
        result_complain(q->who, cordon_client_why(c));
        *ret_status = q->check ? EXIT_USAGE : EXIT_NEVER_RAN;
    }
    free(code);
    cordon_answer_free(a);
    cordon_client_close(c);
    return true;
}
