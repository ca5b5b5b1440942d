/* cordon-nest: pid 1 of a jail. A program of its own, and a static one, so that what sits above the
 * guest is small, starts fast and has none of the supervisor's memory. It is not meant to be run by
 * hand: it takes its orders from the descriptor that its parent left it. */
#include "jail/nest.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONTROL = 3, QUOTA = 4 }; /* see jail/build.c */

int main(int argc, char **argv)
{
    static const char usage[] = "cordon-nest: started by cordon only; see cordon-exec(1)\n";
    int type = 0;
    socklen_t len = sizeof type;
    if (argc != 2 || strcmp(argv[1], "--from-cordon") != 0 ||
        getsockopt(CONTROL, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET)
        return write(STDERR_FILENO, usage, sizeof usage - 1) < 0 ? 3 : 2;
    return jail_nest_main(CONTROL, fcntl(QUOTA, F_GETFD) < 0 ? -1 : QUOTA);
}
