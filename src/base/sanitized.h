/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this is a build with AddressSanitizer: gcc and clang each say it in their own way.
 *
 * Takes:   what the compiler defines.
 * Gives:   SANITIZED, 1 or 0; NO_SEARCH_FOR_LEAKS.
 * Never:   changes a program that is not built with a sanitizer.
 * Runs in: programs and tests, anywhere.
 */
#ifndef BASE_SANITIZED_H
#define BASE_SANITIZED_H

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* Once in a program: no search for leaks at its end. It takes seconds and starts a process, which a contained program
 * cannot; and an interpreter keeps what it has until the end. */
#if SANITIZED
#define NO_SEARCH_FOR_LEAKS                                                                        \
    int __lsan_is_turned_off(void);                                                                \
    int __lsan_is_turned_off(void)                                                                 \
    {                                                                                              \
        return 1;                                                                                  \
    }
#else
#define NO_SEARCH_FOR_LEAKS
#endif

#endif
