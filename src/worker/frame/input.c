/* SPDX-License-Identifier: Apache-2.0 */
/* A language reads ahead: what its readers hold of one input must not be read by the next program. They are emptied by
 * reading, while descriptor 0 is one that is at its end: they give what they hold and no more. */
#include "worker/frame/input.h"

#include "worker/frame/channel.h"
#include "worker/frame/language.h"

#include <fcntl.h>
#include <unistd.h>

static struct {
    bool used;    /* a program has run since: readers may hold what it left unread */
    bool changed; /* descriptor 0 is another one since */
    int person;   /* the read end of what a person types; -1: nobody does */
} input = {.person = -1};

void worker_input_ask(void)
{
    if (input.person >= 0 && dup2(input.person, STDIN_FILENO) >= 0)
        worker_channel_say(WIRE_ASK);
}

static int become_input(int fd)
{
    int r = dup2(fd, STDIN_FILENO) < 0 ? -1 : 0;
    if (fd != STDIN_FILENO) /* which a guest may have closed: then it came to be that */
        close(fd);
    return r;
}

static int wait_for_question(int fd)
{
    if (fd == STDIN_FILENO)
        return -1;
    input.person = fd; /* 0 is at its end: an INPUT before this one saw to it */
    return 0;
}

int worker_input_take(struct wire_reader *r, int fd)
{
    const bool asks = wire_get_uint(r) == 1;
    if (fd < 0)
        return -1;
    if (worker_language->input_comes)
        worker_language->input_comes();
    if (input.person >= 0)
        close(input.person);
    input.person = -1;
    input.changed = true;
    return asks ? wait_for_question(fd) : become_input(fd);
}

void worker_input_forget(void)
{
    int at_end[2];
    if (input.used && input.changed && pipe2(at_end, O_CLOEXEC) == 0) {
        int fresh = dup(STDIN_FILENO);
        close(at_end[1]);
        if (fresh >= 0 && dup2(at_end[0], STDIN_FILENO) >= 0) {
            worker_language->empty_input();
            dup2(fresh, STDIN_FILENO);
        }
        close(at_end[0]);
        if (fresh >= 0)
            close(fresh);
    }
    input.used = true;
    input.changed = false;
}
