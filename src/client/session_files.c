/* SPDX-License-Identifier: Apache-2.0 */
/* Names, matches and states of the files of a session: bindings/methods.json has each with its arguments. */
#include "client/inside.h"

#define COUNT(args) (sizeof(args) / sizeof *(args))

int cordon_session_list(struct cordon_session *s, const char *path,
                        struct cordon_answer **ret_answer)
{
    const struct client_arg args[] = {{.name = "session_id", .text = s->id},
                                      {.name = "path", .text = path}};
    return client_do(s->client, "list_files", args, COUNT(args), NULL, CLIENT_FILES, ret_answer);
}

int cordon_session_search(struct cordon_session *s, const char *pattern, const char *path,
                          const char *what, bool ignore_case, struct cordon_answer **ret_answer)
{
    const struct client_arg args[] = {{.name = "session_id", .text = s->id},
                                      {.name = "pattern", .text = pattern},
                                      {.name = "path", .text = path},
                                      {.name = "what", .text = what},
                                      {.name = "ignore_case", .flag = ignore_case}};
    return client_do(s->client, "search_files", args, COUNT(args), NULL, CLIENT_FILES, ret_answer);
}

/* ---- states of its workspace ---- */

int cordon_session_snapshot(struct cordon_session *s, const char *name, const char *message,
                            struct cordon_answer **ret_answer)
{
    const struct client_arg args[] = {{.name = "session_id", .text = s->id},
                                      {.name = "action", .text = "create"},
                                      {.name = "name", .text = name},
                                      {.name = "message", .text = message}};
    return client_do(s->client, "snapshot", args, COUNT(args), NULL, CLIENT_FILES, ret_answer);
}

int cordon_session_snapshots(struct cordon_session *s, struct cordon_answer **ret_answer)
{
    const struct client_arg args[] = {{.name = "session_id", .text = s->id},
                                      {.name = "action", .text = "list"}};
    return client_do(s->client, "snapshot", args, COUNT(args), NULL, CLIENT_FILES, ret_answer);
}

int cordon_session_diff(struct cordon_session *s, const char *snapshot, const char *to,
                        struct cordon_answer **ret_answer)
{
    const struct client_arg args[] = {{.name = "session_id", .text = s->id},
                                      {.name = "action", .text = "diff"},
                                      {.name = "snapshot", .text = snapshot},
                                      {.name = "to", .text = to}};
    return client_do(s->client, "snapshot", args, COUNT(args), NULL, CLIENT_FILES, ret_answer);
}

int cordon_session_restore(struct cordon_session *s, const char *snapshot,
                           struct cordon_answer **ret_answer)
{
    const struct client_arg args[] = {{.name = "session_id", .text = s->id},
                                      {.name = "action", .text = "restore"},
                                      {.name = "snapshot", .text = snapshot}};
    return client_do(s->client, "snapshot", args, COUNT(args), NULL, CLIENT_FILES, ret_answer);
}
