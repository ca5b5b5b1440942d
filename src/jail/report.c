/* A failure inside becomes one message outside; the supervisor turns it into `refused` with the layer's
 * name. Built on the stack: it is also called between clone and exec. */
#include "jail/inside.h"

#include "wire/msg.h"

#include <unistd.h>

void jail_report_failure(int control, const struct err *err, const char *step)
{
    char room[1024];
    struct buf b = {.data = room, .cap = sizeof room, .max = sizeof room - 1};
    struct wire_writer w;
    wire_begin(&w, &b, WIRE_FAILED);
    wire_put_text(&w, err->layer);
    wire_put_text(&w, step);
    wire_put_int(&w, err->sys_errno);
    wire_put_text(&w, err->msg);
    if (wire_end(&w) == 0 && write(control, b.data, b.len) != (ssize_t)b.len)
        _exit(1); /* nobody listens any more */
}
