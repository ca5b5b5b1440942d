/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-image: one picture that a guest left, read from standard input and written anew to standard output. It is started for
 * that picture and dies with it, since decoders of images are where hostile files have done most harm.
 *
 * Waits: read in take; the file that cordon opened; at once; ended
 *        write in main; a file in memory of cordon's; at once; ended */
#include "base/limits.h"
#include "image/image.h"
#include "jail/confine.h"
#include "sys/rlimit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DONE = 0, FAILED = 1, USAGE = 2 };

static int limit_itself(struct err *err)
{
    return sys_rlimit_lower(RLIMIT_AS, LIMIT_IMAGE_MEMORY, LIMIT_IMAGE_MEMORY) < 0 ||
                   sys_rlimit_lower(RLIMIT_CPU, LIMIT_IMAGE_MS / 1000, LIMIT_IMAGE_MS / 1000) < 0 ||
                   sys_rlimit_lower(RLIMIT_FSIZE, LIMIT_IMAGE_SENT, LIMIT_IMAGE_SENT) < 0
               ? err_sys(err, "limits")
               : 0;
}

static int take(struct buf *file, struct err *err)
{
    char chunk[65536];
    for (;;) {
        const ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
        if (n <= 0)
            return n < 0 ? err_sys(err, "read it") : 0;
        if (buf_add(file, chunk, (size_t)n) < 0)
            return err_set(err, ERR_USAGE, "it is larger than %llu MB", LIMIT_IMAGE_FILE / MIB);
    }
}

static int turn(const struct buf *file, const char *form, uint32_t most, struct buf *out,
                struct err *err)
{
    struct image image;
    int r = image_read(file->data ? file->data : "", file->len, &image, err);
    if (r == 0)
        r = image_fit(&image, most, err);
    if (r == 0)
        r = strcmp(form, "sixel") == 0 ? image_write_sixel(&image, out, err)
                                       : image_write_png(&image, out, err);
    image_done(&image);
    return r;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct buf file, out;
    const unsigned long most = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    if (argc != 4 || strcmp(argv[1], "--from-cordon") != 0 || most == 0 || most > UINT16_MAX ||
        (strcmp(argv[2], "png") != 0 && strcmp(argv[2], "sixel") != 0)) {
        fputs("cordon-image: started by cordon only; see cordon-repl(1), --images\n", stderr);
        return USAGE;
    }
    buf_init(&file, LIMIT_IMAGE_FILE);
    buf_init(&out, LIMIT_IMAGE_SENT);
    int r = limit_itself(&err);
    if (r == 0)
        r = jail_confine(-1, -1, "reader", &err);
    if (r == 0)
        r = take(&file, &err);
    if (r == 0)
        r = turn(&file, argv[2], (uint32_t)most, &out, &err);
    if (r == 0 && write(STDOUT_FILENO, out.data, out.len) != (ssize_t)out.len)
        r = err_sys(&err, "write it");
    if (r < 0)
        fprintf(stderr, "cordon-image: %s\n", err.msg);
    buf_done(&file);
    buf_done(&out);
    return r < 0 ? FAILED : DONE;
}
