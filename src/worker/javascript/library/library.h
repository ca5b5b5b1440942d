/* SPDX-License-Identifier: Apache-2.0 */
/* The library in JavaScript: what programs expect beside the language, in the order in which it is evaluated.
 *
 * Takes:   nothing.
 * Gives:   texts; each is a function of two objects: the functions in C (host.h), and what the files have of each other.
 * Never:   runs by itself.
 * Runs in: cordon-javascript: program.c evaluates it before a program comes.
 */
#ifndef WORKER_JAVASCRIPT_LIBRARY_H
#define WORKER_JAVASCRIPT_LIBRARY_H

#include <stddef.h>

struct js_library_file {
    const char *name, *text;
    size_t len;
};
extern const struct js_library_file js_library[];
extern const size_t js_library_count;
#define JS_LIBRARY_CLOSE "cordon:close.js" /* only where rules hold */

#endif
