/* SPDX-License-Identifier: Apache-2.0 */
/* Plain lists, apart from the code: they grow with the kernel and nobody reads them in order.
 * Values that Debian 12's headers lack are given as numbers. */
#include "jail/decode_names.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define SAME(name)                                                                                 \
    {                                                                                              \
        (uint32_t)(name), #name                                                                    \
    }
#define SHORT(prefix, name)                                                                        \
    {                                                                                              \
        (uint32_t)(prefix##name), #name                                                            \
    }
#define END                                                                                        \
    {                                                                                              \
        0, NULL                                                                                    \
    }

const struct decode_name decode_families[] = {
    SAME(AF_UNSPEC),
    SAME(AF_UNIX),
    SAME(AF_INET),
    SAME(AF_AX25),
    SAME(AF_IPX),
    SAME(AF_INET6),
    SAME(AF_NETLINK),
    SAME(AF_PACKET),
    SAME(AF_RDS),
    SAME(AF_LLC),
    SAME(AF_CAN),
    SAME(AF_TIPC),
    SAME(AF_BLUETOOTH),
    SAME(AF_KEY),
    SAME(AF_ALG),
    SAME(AF_NFC),
    SAME(AF_VSOCK),
    SAME(AF_KCM),
    SAME(AF_QIPCRTR),
    SAME(AF_SMC),
    SAME(AF_XDP),
    SAME(AF_APPLETALK),
    SAME(AF_X25),
    SAME(AF_PPPOX),
    SAME(AF_IUCV),
    SAME(AF_RXRPC),
    SAME(AF_PHONET),
    {45, "AF_MCTP"},
    END,
};

const struct decode_name decode_types[] = {
    SAME(SOCK_STREAM),    SAME(SOCK_DGRAM), SAME(SOCK_RAW),    SAME(SOCK_RDM),
    SAME(SOCK_SEQPACKET), SAME(SOCK_DCCP),  SAME(SOCK_PACKET), END,
};

const struct decode_name decode_sockopts[] = {
    SAME(SO_ATTACH_FILTER),
    SAME(SO_ATTACH_BPF),
    SAME(SO_ATTACH_REUSEPORT_CBPF),
    SAME(SO_ATTACH_REUSEPORT_EBPF),
    END,
};

const struct decode_name decode_clone[] = {
    SHORT(CLONE_, NEWUSER),
    SHORT(CLONE_, NEWNS),
    SHORT(CLONE_, NEWPID),
    SHORT(CLONE_, NEWNET),
    SHORT(CLONE_, NEWIPC),
    SHORT(CLONE_, NEWUTS),
    SHORT(CLONE_, NEWCGROUP),
    SHORT(CLONE_, PTRACE),
    SHORT(CLONE_, UNTRACED),
    SHORT(CLONE_, PARENT),
    END,
};

const struct decode_name decode_ptrace[] = {
    SHORT(PTRACE_, TRACEME),   SHORT(PTRACE_, PEEKTEXT),
    SHORT(PTRACE_, PEEKDATA),  SHORT(PTRACE_, PEEKUSER),
    SHORT(PTRACE_, POKETEXT),  SHORT(PTRACE_, POKEDATA),
    SHORT(PTRACE_, POKEUSER),  SHORT(PTRACE_, CONT),
    SHORT(PTRACE_, KILL),      SHORT(PTRACE_, SINGLESTEP),
    SHORT(PTRACE_, ATTACH),    SHORT(PTRACE_, DETACH),
    SHORT(PTRACE_, SYSCALL),   SHORT(PTRACE_, SETOPTIONS),
    SHORT(PTRACE_, GETREGSET), SHORT(PTRACE_, SETREGSET),
    SHORT(PTRACE_, SEIZE),     SHORT(PTRACE_, INTERRUPT),
    SHORT(PTRACE_, LISTEN),    END,
};

const struct decode_name decode_prctl[] = {
    SHORT(PR_, SET_SECCOMP),
    SHORT(PR_, SET_PTRACER),
    SHORT(PR_, SET_DUMPABLE),
    SHORT(PR_, SET_KEEPCAPS),
    SHORT(PR_, CAPBSET_DROP),
    SHORT(PR_, SET_SECUREBITS),
    SHORT(PR_, CAP_AMBIENT),
    SHORT(PR_, SET_MM),
    SHORT(PR_, SET_CHILD_SUBREAPER),
    SHORT(PR_, SET_SPECULATION_CTRL),
    {62, "SCHED_CORE"},
    SHORT(PR_, SET_SYSCALL_USER_DISPATCH),
    SHORT(PR_, TASK_PERF_EVENTS_DISABLE),
    SHORT(PR_, TASK_PERF_EVENTS_ENABLE),
    SHORT(PR_, SET_IO_FLUSHER),
    SHORT(PR_, SET_TSC),
    SHORT(PR_, MCE_KILL),
    END,
};

const struct decode_name decode_ioctl[] = {
    SAME(TIOCSTI), SAME(TIOCLINUX), SAME(TIOCSETD), SAME(TIOCCONS), SAME(TIOCSCTTY), END,
};

const struct decode_name decode_fcntl[] = {
    SAME(F_SETOWN), SAME(F_SETOWN_EX), SAME(F_SETSIG), SAME(F_NOTIFY), SAME(F_SETLEASE), END,
};

const struct decode_name decode_bpf[] = {
    SHORT(BPF_, MAP_CREATE),
    SHORT(BPF_, MAP_LOOKUP_ELEM),
    SHORT(BPF_, MAP_UPDATE_ELEM),
    SHORT(BPF_, MAP_DELETE_ELEM),
    SHORT(BPF_, MAP_GET_NEXT_KEY),
    SHORT(BPF_, PROG_LOAD),
    SHORT(BPF_, OBJ_PIN),
    SHORT(BPF_, OBJ_GET),
    SHORT(BPF_, PROG_ATTACH),
    SHORT(BPF_, PROG_DETACH),
    SHORT(BPF_, PROG_TEST_RUN),
    SHORT(BPF_, PROG_GET_NEXT_ID),
    SHORT(BPF_, MAP_GET_NEXT_ID),
    SHORT(BPF_, PROG_GET_FD_BY_ID),
    SHORT(BPF_, MAP_GET_FD_BY_ID),
    SHORT(BPF_, OBJ_GET_INFO_BY_FD),
    SHORT(BPF_, BTF_LOAD),
    SHORT(BPF_, LINK_CREATE),
    END,
};

const struct decode_name decode_prio[] = {
    SAME(PRIO_PROCESS),
    SAME(PRIO_PGRP),
    SAME(PRIO_USER),
    END,
};

const struct decode_name decode_sched[] = {
    SAME(SCHED_OTHER),
    SAME(SCHED_FIFO),
    SAME(SCHED_RR),
    SAME(SCHED_BATCH),
    SAME(SCHED_IDLE),
    {6, "SCHED_DEADLINE"},
    END,
};

const char *decode_name_of(const struct decode_name *names, uint32_t value)
{
    for (; names->name; names++)
        if (names->value == value)
            return names->name;
    return NULL;
}
