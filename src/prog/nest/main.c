/* cordon-nest: pid 1 of a jail. A program of its own, and a static one, so that what sits above the
 * guest is small, starts fast and has none of the supervisor's memory. It is not meant to be run by
 * hand: it takes its orders from the descriptor that its parent left it. */
#include "jail/inside.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
    int type = 0;
    socklen_t len = sizeof type;
    if (argc != 2 || strcmp(argv[1], "--from-cordon") != 0 ||
        getsockopt(3, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET) {
        fputs("cordon-nest: started by cordon only; see cordon-exec(1)\n", stderr);
        return 2;
    }
    return jail_nest_main(3, 4);
}
