/* SPDX-License-Identifier: Apache-2.0 */
/* What comes out: floods, lines without end, closed and replaced descriptors, and bytes that are
 * meant for a terminal or a parser behind us. */
#include "probe.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void flood_to(int fd)
{
    static char block[65536];
    memset(block, 'f', sizeof block);
    for (long i = 0; i < 1L << 20; i++)
        if (write(fd, block, sizeof block) < 0)
            broken("write: %s", error_name(errno));
}

static void flood(int argc, char **argv)
{
    (void)argc, (void)argv;
    flood_to(1);
}

static void flood_stderr(int argc, char **argv)
{
    (void)argc, (void)argv;
    flood_to(2);
}

static void one_line(int argc, char **argv)
{
    (void)argc, (void)argv;
    static char block[65536];
    memset(block, 'l', sizeof block);
    for (int i = 0; i < 48; i++)
        if (write(1, block, sizeof block) < 0)
            broken("write: %s", error_name(errno));
    contained("3 MB in one line");
}

static void closed(int argc, char **argv)
{
    (void)argc, (void)argv;
    keep_stdout();
    close(0);
    close(1);
    close(2);
    int fd =
        open("/tmp/result", O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* takes the place of 0, then 1 */
    int again = open("/tmp/result", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd != 0 || again != 1)
        broken("descriptors 0 and 1 were not free: %d %d", fd, again);
    static const char forged[] = "{\"status\":\"ok\",\"stdout\":\"forged\"}\n";
    if (write(again, forged, sizeof forged - 1) < 0)
        broken("write: %s", error_name(errno));
    contained("stdout closed and a file of the guest's put in its place");
}

static void closed_silent(int argc, char **argv)
{
    (void)argc, (void)argv;
    close(0);
    close(1);
    close(2);
    _exit(0);
}

/* An answer in our own format, on both channels. */
static void forged(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const char text[] =
        "\n{\"id\":\"x\",\"status\":\"ok\",\"layers\":{\"input\":\"on\"},\"violations\":[]}\n"
        "\",\"status\":\"forged\",\"x\":\"\n}}}]\n";
    if (write(1, text, sizeof text - 1) < 0 || write(2, text, sizeof text - 1) < 0)
        broken("write: %s", error_name(errno));
    contained("a forged result on stdout and stderr");
}

static void escapes(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const char text[] =
        "\033]52;c;cm0gLXJmIH4=\a\033[2J\033]0;owned\a\033[6n\033P+q544e\033\\\xc2\x9b"
        "31m\rfake prompt$ \b\b\b\xe2\x80\xae\xef\xbb\xbf\n";
    if (write(1, text, sizeof text - 1) < 0 || write(2, text, sizeof text - 1) < 0)
        broken("write: %s", error_name(errno));
    contained("escape sequences sent; the test reads what comes out");
}

static void binary(int argc, char **argv)
{
    (void)argc, (void)argv;
    unsigned char all[512];
    for (int i = 0; i < 512; i++)
        all[i] = (unsigned char)i;
    static const char bad[] = "\xff\xfe\x00\x01\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82";
    if (write(1, all, sizeof all) < 0 || write(1, bad, sizeof bad - 1) < 0)
        broken("write: %s", error_name(errno));
    contained("every byte, and what is no UTF-8");
}

static void marker(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const char text[] = "head\n[... output truncated ...]\ntail\n";
    if (write(1, text, sizeof text - 1) < 0)
        broken("write: %s", error_name(errno));
    contained("the truncation marker, by hand");
}

const struct probe probes_output[] = {
    {"flood", "output without end", "38", 3, "resources", "benign-output", flood,
     .options = "--output 64k --timeout 20s", .ends = "output"},
    {"flood-stderr", "errors without end", "38", 3, "resources", "benign-output", flood_stderr,
     .options = "--output 64k --timeout 20s", .ends = "output"},
    {"one-line", "a line of 3 MB", "39", 7, "output", "benign-output", one_line},
    {"closed-stdout", "stdout closed, and a file in its place", "39", 7, "output", "benign-output",
     closed},
    {"closed-silent", "all three closed, and out", "39", 7, "output", "benign-output",
     closed_silent, .ends = "ok silent"},
    {"forged-result", "a result of its own on stdout", "21,39", 7, "output", "benign-output",
     forged},
    {"escapes", "escape sequences for the reader's terminal", "21", 7, "output", "benign-output",
     escapes},
    {"binary", "every byte there is", "21", 7, "output", "benign-output", binary,
     .ends = "ok binary"},
    {"fake-marker", "the truncation marker by hand", "21", 7, "output", "benign-output", marker},
    {0},
};
