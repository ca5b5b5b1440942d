/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-plot: what cordon monitor saw, drawn. It is a program of its own because of cairo and the dozen libraries that come with it:
 * cordon has none of them in it. It opens its fonts, gives up everything but its streams, and reads numbers that cordon wrote.
 *
 * It reads lines until cordon monitor, which is its parent and whose death is its own, has no more.
 *
 * Waits: write in main; the file that cordon opened; at once; ended
 *        fgets in take; cordon monitor; none (it ends with that one's pipe); draws what came */
#include "base/limits.h"
#include "image/plot.h"
#include "jail/confine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DONE_FD 3 /* one byte there says that the picture is whole */

enum { DONE = 0, FAILED = 1, USAGE = 2 };

static int take(struct plot *p, struct err *err)
{
    char line[512];
    int r = 0;
    while (r == 0 && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        r = plot_line(p, line, err);
    }
    return r < 0 || p->has_verdict ? r : err_set(err, ERR_FORMAT, "there was no verdict");
}

int main(int argc, char **argv)
{
    static const char *const forms[] = {"png", "svg", "text"};
    static struct plot plot;
    struct err err = ERR_INIT;
    struct buf out;
    int form = -1;
    for (int i = 0; argc == 3 && strcmp(argv[1], "--from-cordon") == 0 && i < 3; i++)
        form = strcmp(argv[2], forms[i]) == 0 ? i : form;
    if (form < 0) {
        fputs("cordon-plot: started by cordon only; see cordon-monitor(1), --plot\n", stderr);
        return USAGE;
    }
    buf_init(&out, LIMIT_IMAGE_SENT);
    plot_init(&plot);
    plot_prepare();
    int r = jail_confine(-1, -1, "reader", &err);
    if (r == 0)
        r = take(&plot, &err);
    if (r == 0)
        r = plot_draw(&plot, (enum plot_form)form, &out, &err);
    if (r == 0 && (write(STDOUT_FILENO, out.data, out.len) != (ssize_t)out.len ||
                   write(DONE_FD, "1", 1) != 1))
        r = err_sys(&err, "write it");
    if (r < 0)
        fprintf(stderr, "cordon-plot: %s\n", err.msg);
    buf_done(&out);
    return r < 0 ? FAILED : DONE;
}
