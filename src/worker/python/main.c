/* cordon-python: an interpreter that lives in a jail. --child: one worker, started behind all its locks.
 * It is never started by hand; what it needs comes by descriptor. */
#include "interp.h"

#include "channel.h"
#include "driver.h"
#include "hook.h"
#include "judge.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int complain(const char *text)
{
    fprintf(stderr, "cordon-python: %s\n", text);
    return 70;
}

/* argv: --child [--packages] [--preload a,b] */
static int parse(int argc, char **argv, struct py_start *start)
{
    if (argc < 2 || strcmp(argv[1], "--child") != 0)
        return -1;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--packages") == 0)
            start->packages = true;
        else if (strcmp(argv[i], "--preload") == 0 && i + 1 < argc)
            start->preload = argv[++i];
        else
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct py_start start = {0};
    struct err err = ERR_INIT;
    if (parse(argc, argv, &start) < 0 || fcntl(PY_CHANNEL, F_GETFD) < 0)
        return complain("started by cordon, not by hand; see `cordon run --help`");
    if (py_interp_start(&start, &err) < 0 || py_judge_init(&err) < 0 || py_hook_install(&err) < 0)
        return complain(err.msg);
    _exit(py_driver_serve());
}
