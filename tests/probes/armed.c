/* SPDX-License-Identifier: Apache-2.0 */
/* TEST ONLY: cordon-javascript whose programs can make system calls. JavaScript has none, so that a program in it could not even try what
 * the kernel's layers refuse. It is linked from the product's own objects; only the function that makes the library's object is
 * replaced (ld --wrap), and adds a global one: syscall(NAME, numbers, texts and typed arrays), which gives the result or -errno.
 *
 * Takes:   what a program says.
 * Gives:   what whoever breaks the engine could do.
 * Never:   is installed.
 * Runs in: the jail, in place of cordon-javascript, in the tests mechanisms and layers-off.
 */
#include "worker/javascript/host.h"
#include "worker/javascript/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORDS = 6 };

static const struct {
    const char *name;
    long number;
} calls[] = {{"read", SYS_read},
             {"write", SYS_write},
             {"openat", SYS_openat},
             {"clone", SYS_clone},
             {"socket", SYS_socket},
             {"connect", SYS_connect},
             {"kill", SYS_kill},
             {"getppid", SYS_getppid},
             {"execve", SYS_execve},
             {"chroot", SYS_chroot},
             {"mknodat", SYS_mknodat},
             {"pipe2", SYS_pipe2},
             {"mmap", SYS_mmap},
             {"mount", SYS_mount},
             {"getdents64", SYS_getdents64},
             {"bpf", SYS_bpf},
             {"ptrace", SYS_ptrace},
             {"io_uring_setup", SYS_io_uring_setup},
             {"kexec_load", SYS_kexec_load}};

JSObjectRef __real_js_host_object(JSContextRef ctx);
JSObjectRef __wrap_js_host_object(JSContextRef ctx);

static long number_of(const char *name)
{
    for (size_t i = 0; name && i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].number;
    return -1;
}

static JSValueRef make_call(JSContextRef ctx, JSObjectRef function, JSObjectRef self, size_t argc,
                            const JSValueRef argv[], JSValueRef *exception)
{
    long words[WORDS] = {0};
    char *texts[WORDS] = {NULL}, *name;
    size_t len;
    (void)function;
    (void)self;
    (void)exception;
    name = argc ? js_text_of(ctx, argv[0], &len) : NULL;
    for (size_t i = 1; i < argc && i <= WORDS; i++) {
        if (JSValueIsString(ctx, argv[i]))
            words[i - 1] = (long)(texts[i - 1] = js_text_of(ctx, argv[i], &len));
        else if (JSValueIsObject(ctx, argv[i]))
            words[i - 1] =
                (long)JSObjectGetTypedArrayBytesPtr(ctx, JSValueToObject(ctx, argv[i], NULL), NULL);
        else
            words[i - 1] = (long)JSValueToNumber(ctx, argv[i], NULL);
    }
    const long r =
        syscall(number_of(name), words[0], words[1], words[2], words[3], words[4], words[5]);
    const int why = errno;
    for (size_t i = 0; i < WORDS; i++)
        free(texts[i]);
    free(name);
    return JSValueMakeNumber(ctx, (double)(r < 0 ? -why : r));
}

JSObjectRef __wrap_js_host_object(JSContextRef ctx)
{
    JSStringRef name = JSStringCreateWithUTF8CString("syscall");
    JSObjectSetProperty(ctx, JSContextGetGlobalObject(ctx), name,
                        JSObjectMakeFunctionWithCallback(ctx, name, make_call),
                        kJSPropertyAttributeNone, NULL);
    JSStringRelease(name);
    return __real_js_host_object(ctx);
}
