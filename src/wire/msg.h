/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between our processes: one table, checked on both sides.
 *
 * Takes:   a message type and its fields in the table's order.
 * Gives:   a frame (one packet), or a frame that was checked field by field before anyone reads it.
 * Never:   hands on a frame whose shape differs from the table.
 * Runs in: every process.
 */
#ifndef WIRE_MSG_H
#define WIRE_MSG_H

#include "base/buf.h"
#include "wire/cbor.h"

/* The channel of a language worker. After GO everything that comes from it is the guest's word: it is
 * bounded and typed here, and nothing is decided on it but what the guest may decide for itself. */
#define WIRE_WORKER_MESSAGES(X)                                                                    \
    X(RULES, "b", "-> worker: the profile's rule set")                                             \
    X(TOOLS, "T", "-> worker: names of the tools that the program may call")                       \
    X(JOB, "uuutub",                                                                               \
      "-> worker: kind, cpu ms, memory (0: as locked), file name, source bytes, its first piece")  \
    X(SOURCE, "b", "-> worker: the next piece of the source")                                      \
    X(GO, "", "-> worker: the plan stands, run what was judged")                                   \
    X(ANSWER, "uub", "-> worker: call number, 1 ok or 0 failed, JSON")                             \
    X(FILE_DONE, "uuUb", "-> worker: call number, errno or 0, numbers, bytes (wire/files.h)")      \
    X(FORK, "", "-> worker: branch this session")                                                  \
    X(ENVIRON, "B", "-> worker: K=V, each set before the next program")                            \
    X(INPUT, "u",                                                                                  \
      "-> worker: the read end of its standard input from now on rides along; 1: ASK before each " \
      "line")                                                                                      \
    X(ARGV, "B", "-> worker: the words after the name of the next program, for sys.argv")          \
    X(METHOD, "tb",                                                                                \
      "-> worker: the method that the next program defines, and the JSON of its arguments")        \
    X(READY, "", "worker -> it is locked, warm and waits")                                         \
    X(FINDING, "tttttuu", "worker -> rule, layer, operand, message, hint, line, column")           \
    X(REPORT, "uu", "worker -> safe, findings that were not sent: the judge is done")              \
    X(EVENT, "ttttu", "worker -> layer, rule, detail, hint, line: refused while it ran")           \
    X(NOTE, "t", "worker -> id of a sentence about how it ran; the supervisor has the sentence")   \
    X(ASK, "", "worker -> input() waits for a line of whoever sits at the prompt")                 \
    X(NAMES, "T", "worker -> names that may stand where somebody pressed Tab")                     \
    X(CALL, "utb", "worker -> call number, name of a tool, JSON arguments")                        \
    X(FILE_ASK, "uubbUb",                                                                          \
      "worker -> call number, what, path, second path, numbers, bytes (wire/files.h)")             \
    X(VALUE, "ub", "worker -> whether it is the first piece, repr of the last expression")         \
    X(FINAL, "ub", "worker -> the same of what FINAL was given")                                   \
    X(FAULT, "ttu", "worker -> type, message, line of an uncaught exception")                      \
    X(DONE, "i", "worker -> exit status; everything it printed is in the pipes")

/* Between a client and the holder of the warm pool and the sessions. One request, one reply; what a
 * client borrows comes as descriptors with LENT, and goes back with BACK or with the connection. */
#define WIRE_HOLDER_MESSAGES(X)                                                                    \
    X(LEASE, "ttuUu",                                                                              \
      "-> holder: language, profile, packages, limits, patience in ms: a child for one run")       \
    X(SESSION_NEW, "tttuUtUuu",                                                                    \
      "-> holder: name, language, profile, packages, rules of its own, role, limits, idle ms, "    \
      "bytes for idle sessions; the rules and what it sees of the host may ride along")            \
    X(SESSION_CALL, "tuu",                                                                         \
      "-> holder: name, why (0 run, 1 fork), bytes for idle sessions: lend it for one call")       \
    X(SESSION_BRANCH, "tt",                                                                        \
      "-> holder: name, note: the branch of what I hold; it is the next packet")                   \
    X(BACK, "uUtt",                                                                                \
      "-> holder: 1 alive or 0 over, use, reason, note (empty: as it was); its record may ride "   \
      "along")                                                                                     \
    X(SESSION_NEXT, "u", "-> holder: the first session after this number")                         \
    X(SESSION_EXPORT, "t", "-> holder: name: its records")                                         \
    X(SESSION_CLOSE, "t", "-> holder: name: end it")                                               \
    X(SESSION_INTERRUPT, "t", "-> holder: name: SIGINT to the call that runs in it")               \
    X(POOL_SET, "ttuU", "-> holder: language, profile, packages, numbers: keep it warm")           \
    X(POOL_NEXT, "u", "-> holder: the first template from this number on; 0: yourself")            \
    X(POOL_STOP, "u", "-> holder: end; 1: sessions too")                                           \
    X(LENT, "tttttU",                                                                              \
      "holder -> session, its language, profile, role, note, numbers; next packet: child. To "     \
      "LEASE: CHILD alone")                                                                        \
    X(DECLINED, "tt", "holder -> no: one word for programs, a sentence for people")                \
    X(AGREED, "t", "holder -> done; the name of what was made")                                    \
    X(SESSION_IS, "tttttttU",                                                                      \
      "holder -> name, language, profile, role, state, reason, note, numbers")                     \
    X(SESSION_LOG, "U", "holder -> numbers; the records ride along")                               \
    X(POOL_IS, "tttU", "holder -> name, state, reason, numbers")                                   \
    X(POOL_END, "", "holder -> there are no more")

/* Around a call of a tool: the supervisor's loop hands it to the broker, which asks the gate, and has it checked and carried
 * out by cordon-tool. */
#define WIRE_TOOL_MESSAGES(X)                                                                      \
    X(TOOL_CALL, "uuttb",                                                                          \
      "supervisor -> broker: call number, the guest's process, worker, tool, JSON arguments; the " \
      "guest's files ride along")                                                                  \
    X(TOOL_REFUSED, "ttt", "broker -> supervisor: rule, reason, hint of a call that was refused")  \
    X(TOOL_NOTICE, "utttu",                                                                        \
      "broker -> supervisor: kind, tool, subject, detail, seconds of an event of the gate")        \
    X(TOOL_WAITS, "u",                                                                             \
      "broker -> supervisor: 1: somebody is asked, so the guest stands still; 0: it goes on")      \
    X(TOOL_ANSWER, "uuub",                                                                         \
      "broker -> supervisor: call number, 1 ok or 0 failed, 1 where the generation of a model "    \
      "was "                                                                                       \
      "cut, JSON")                                                                                 \
    X(TOOL_CHECK, "ttbUb",                                                                         \
      "broker -> cordon-tool: tool, its schema or nothing, arguments, limits, rules for names")    \
    X(TOOL_NAMED, "b",                                                                             \
      "cordon-tool -> broker: for the record, the arguments by their names, as JSON, before they " \
      "are checked; empty: they cannot be read")                                                   \
    X(TOOL_CHECKED, "btb",                                                                         \
      "cordon-tool -> broker: the arguments by their names, as JSON; of a tool that starts a "     \
      "program, a word about it and its source; of a search, its collection or nothing; files "    \
      "of the guest's that a host tool is given ride along")                                       \
    X(TOOL_GO, "Ut",                                                                               \
      "broker -> cordon-tool: carry it out; of a search, numbers of the index that rides along, "  \
      "and why it is not up to date, or nothing")                                                  \
    X(TOOL_INDEX, "t",                                                                             \
      "broker -> cordon-tool: index the folder, whose files are called so; the index so far "      \
      "rides along")                                                                               \
    X(TOOL_INDEXED, "U", "cordon-tool -> broker: numbers of the index (struct tools_indexed)")     \
    X(TOOL_OUTPUT, "ub",                                                                           \
      "broker -> cordon-tool: what the command of a host tool gave (enum tools_wrote), its bytes") \
    X(TOOL_RAN, "tttubbbb",                                                                        \
      "broker -> cordon-tool: what a program gave that the call started (enum tools_ran): which, " \
      "its status, why, flags, the answer FINAL, its value, stdout, stderr")                       \
    X(TOOL_SAID, "ub", "cordon-tool -> broker: how it ended, JSON")

/* Between cordon-front, which reads what clients wrote, and cordond. Each is one row of what may be asked
 * (src/serve/table.c); a body follows in pieces. The front may have been taken over by a client: cordond
 * believes it nothing that it could not have asked for itself. */
#define WIRE_SERVE_MESSAGES(X)                                                                     \
    X(SERVE_ASK, "uutUuub",                                                                        \
      "-> cordond: request, verb, handle, limits, language, bytes of the body, its first piece")   \
    X(SERVE_PIECE, "ub", "both ways: request, the next piece of its body")                         \
    X(SERVE_CANCEL, "uu",                                                                          \
      "-> cordond: request: nobody waits for it any more; 1: nor for the job that it became")      \
    X(SERVE_SAYS, "uutuub",                                                                        \
      "cordond -> request, how it stands, handle, a number that goes with it, bytes of the body, " \
      "its first piece")                                                                           \
    X(SERVE_LIMITS, "U", "cordond -> what a client can tighten, from now on")

/* Between cordon-proxy-front, which reads what clients and models wrote, and cordon-proxy, which has the keys. The front may have been
 * taken over by either: cordon-proxy lets it do what a client may, and no message has a key in it. */
#define WIRE_PROXY_MESSAGES(X)                                                                     \
    X(PROXY_ASK, "uut", "-> cordon-proxy: call, client, model: may it be made")                    \
    X(PROXY_MAY, "uuut",                                                                           \
      "cordon-proxy -> call, 0 or the status that refuses it, seconds to wait, why")               \
    X(PROXY_OPEN, "uuuuTu",                                                                        \
      "-> cordon-proxy: call, stream, upstream, path, headers, bytes of the body that follows")    \
    X(PROXY_BODY, "ub", "-> cordon-proxy: stream, the next piece of its body")                     \
    X(PROXY_CLOSE, "u", "-> cordon-proxy: stream: close its connection now")                       \
    X(PROXY_OVER, "utttUb",                                                                        \
      "-> cordon-proxy: call, how it ended, why, upstreams that were asked; numbers of "           \
      "struct proxy_over; what was asked, or nothing")                                             \
    X(PROXY_STATUS, "uu", "cordon-proxy -> stream, status of the upstream's answer")               \
    X(PROXY_BYTES, "ub", "cordon-proxy -> stream, the next bytes of the upstream's answer")        \
    X(PROXY_END, "uu", "cordon-proxy -> stream, how it ended (enum proxy_end)")

/* name, signature, meaning. Signature letters: u number, i signed number, t text, b bytes,
 * T list of texts, U list of numbers, B list of byte strings (arguments and paths are bytes). */
#define WIRE_MESSAGES(X)                                                                           \
    X(STARTED, "it", "launcher -> supervisor: it is locked, and this is its own status")           \
    X(LISTENER, "", "builder -> supervisor: the filter's listener rides along; the program runs")  \
    X(FILES, "", "builder -> supervisor: the folder that the guest may write rides along")         \
    X(EXITED, "iUU", "cordon-nest -> supervisor: wait status, usage, what is left of the quota")   \
    X(ORDER, "utuU", "holder -> template: number, system call table, session or not, limits")      \
    X(LOCKED, "ittuT", "new child -> template: error, layer, message; layers, notes")              \
    X(SETUP, "ttuuUuU",                                                                            \
      "builder -> worker: table, folder, id, memory by rlimit, limits; root and namespaces of "    \
      "the supervisor; descriptors ride along")                                                    \
    X(CHILD, "uutuuUuT",                                                                           \
      "template -> holder -> client: descriptors that ride along, number, "                        \
      "table, session, generation, limits, layers, notes")                                         \
    X(NOCHILD, "uitt", "template -> holder: number, error, layer, message")                        \
    X(MEMBER, "", "holder -> init of a session: a branch; its pidfd and control ride along")       \
    WIRE_WORKER_MESSAGES(X)                                                                        \
    WIRE_HOLDER_MESSAGES(X)                                                                        \
    WIRE_TOOL_MESSAGES(X)                                                                          \
    WIRE_SERVE_MESSAGES(X)                                                                         \
    WIRE_PROXY_MESSAGES(X)                                                                         \
    X(DEADLINE, "u",                                                                               \
      "supervisor, holder -> init of a child: kill it then, ns of CLOCK_MONOTONIC; 0: never")      \
    X(SESSION_LAYERS, "",                                                                          \
      "client -> holder: what I hold is upon layers now; their folder and its checkout ride "      \
      "along")                                                                                     \
    X(SESSION_OWNER, "",                                                                           \
      "client -> holder: what I hold ends with the process whose pidfd rides along")               \
    X(SESSION_BEGUN, "",                                                                           \
      "client -> holder: the program runs in what I hold; an interrupt reaches it, no answer")

/* In the status of DONE: the program ended itself (SystemExit). */
#define WIRE_DONE_LEFT 0x100

/* The type of a FAULT that is no exception: the C stack is used up, and a signal ends the worker. */
#define WIRE_FAULT_STACK "StackOverflow"

enum wire_type {
    WIRE_NONE = 0,
#define WIRE_ENUM(name, sig, text) WIRE_##name,
    WIRE_MESSAGES(WIRE_ENUM)
#undef WIRE_ENUM
        WIRE_TYPES
};

const char *wire_name(enum wire_type type);

/* A number that changes with any row of the table: processes of two builds do not talk past each
 * other. */
uint32_t wire_fingerprint(void);

/* Writing: begin, one put per letter of the signature, then end, which asserts that all are there.
 */
struct wire_writer {
    struct buf *out;
    const char *left; /* letters that are still to come */
    int bad;          /* the first error; sticks */
};
void wire_begin(struct wire_writer *w, struct buf *out, enum wire_type type);
void wire_put_uint(struct wire_writer *w, uint64_t n);
void wire_put_int(struct wire_writer *w, int64_t n);
void wire_put_text(struct wire_writer *w, const char *s);
void wire_put_bytes(struct wire_writer *w, const void *p, size_t len);
void wire_put_uints(struct wire_writer *w, const uint64_t *n, size_t count);
void wire_put_strings(struct wire_writer *w, const char *const *s, size_t count);
ERR_MUST_USE int wire_end(struct wire_writer *w);

/* Reading: open checks the whole frame against the table; after it the getters cannot fail, but
 * must be called in the table's order. Pointers lie inside the frame. */
struct wire_reader {
    struct wire_cursor at;
    const char *left;
    enum wire_type type;
};
ERR_MUST_USE int wire_open(struct wire_reader *r, const void *frame, size_t len, struct err *err);
/* take.c: the next packet of SOCK into STORAGE, of LIMIT_FRAME bytes, without waiting. 1: R has it, *ret_len bytes. 0: there is none
 * now. ERR_FORMAT: it is no message of the table, or the other side is gone. */
ERR_MUST_USE int wire_take(int sock, char *storage, struct wire_reader *r, size_t *ret_len);
uint64_t wire_get_uint(struct wire_reader *r);
int64_t wire_get_int(struct wire_reader *r);
void wire_get_text(struct wire_reader *r, char *out,
                   size_t size); /* copies, cut to SIZE, terminated */
const void *wire_get_bytes(struct wire_reader *r, size_t *ret_len);
size_t wire_get_uints(struct wire_reader *r, uint64_t *out,
                      size_t cap);           /* returns the true count */
size_t wire_get_list(struct wire_reader *r); /* then wire_next for each element of a B or T list */
const char *wire_next(struct wire_reader *r, size_t *ret_len);

#endif
