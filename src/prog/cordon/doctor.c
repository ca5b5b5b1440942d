/* placeholder until the next commit */
#include "commands.h"
int cmd_doctor(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return EXIT_USAGE;
}
