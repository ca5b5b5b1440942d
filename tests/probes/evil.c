/* SPDX-License-Identifier: Apache-2.0 */
/* A library that says so when it is loaded; `ld-preload` writes a copy of it into the jail. */
#include <unistd.h>

__attribute__((constructor)) static void loaded(void)
{
    _exit(10);
}
