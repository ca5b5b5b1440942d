/* SPDX-License-Identifier: Apache-2.0 */
/* Our own and small, written from the kernel's description of classic BPF, so that generator and
 * judge share no code: a mistake would have to be made twice. Jumps only go forward, so a program
 * of N instructions ends within N steps. */
#include "jail/bpf_sim.h"

#include <stddef.h>
#include <string.h>

const char *bpf_sim_check(const struct sock_filter *p, unsigned len)
{
    if (len == 0 || len > BPF_MAXINSNS)
        return "length";
    for (unsigned i = 0; i < len; i++) {
        unsigned left = len - i - 1; /* a jump must leave one instruction to land on */
        switch (p[i].code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (p[i].k % 4 || p[i].k >= sizeof(struct seccomp_data))
                return "load outside the data";
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            break;
        case BPF_JMP | BPF_JA:
            if (p[i].k >= left)
                return "jump outside the program";
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
        case BPF_JMP | BPF_JGE | BPF_K:
            if (p[i].jt >= left || p[i].jf >= left)
                return "jump outside the program";
            break;
        case BPF_RET | BPF_K:
            break;
        default:
            return "an instruction that filters do not use";
        }
    }
    return p[len - 1].code == (BPF_RET | BPF_K) ? NULL : "no return at the end";
}

struct bpf_sim bpf_sim_run(const struct sock_filter *p, const struct seccomp_data *data)
{
    struct bpf_sim r = {0};
    uint32_t a = 0;
    for (;; p++) {
        r.steps++;
        switch (p->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            memcpy(&a, (const char *)data + p->k, sizeof a);
            r.looked_at_arg |= p->k >= offsetof(struct seccomp_data, instruction_pointer);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= p->k;
            break;
        case BPF_JMP | BPF_JA:
            p += p->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            p += a == p->k ? p->jt : p->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            p += a >= p->k ? p->jt : p->jf;
            break;
        default:
            r.action = p->k;
            return r;
        }
    }
}
