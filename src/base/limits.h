/* SPDX-License-Identifier: Apache-2.0 */
/* Every ceiling of Cordon in one file: no buffer grows without one.
 *
 * Takes:   nothing.
 * Gives:   constants.
 * Never:   depends on the machine.
 * Runs in: every process.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#define KIB 1024ULL
#define MIB (1024ULL * KIB)
#define GIB (1024ULL * MIB)

/* Defaults of a run (docs/policy.md, limits). */
#define LIMIT_WALL_MS      30000ULL
#define LIMIT_CPU_MS       30000ULL
#define LIMIT_MEMORY       (512 * MIB)
#define LIMIT_DESCRIPTORS  64ULL
#define LIMIT_DISK         (100 * MIB)
#define LIMIT_INODES       10000ULL
#define LIMIT_PROCESSES    0ULL
#define LIMIT_THREADS      16ULL
#define LIMIT_OUTPUT       (10 * MIB)
#define LIMIT_FLOOD_FACTOR 10ULL
#define LIMIT_STACK        (256 * MIB) /* of a language's worker; a page of it costs when it is touched */

/* Of cordon-javascript, beside a run's memory: 128 MB that the engine reserves for its own lists and hardly uses, and its libraries, which all
 * processes share. More would let a program fill them, so where addresses are counted the engine does not start with less than LIMIT_JAVASCRIPT_LEAST. */
#define LIMIT_JAVASCRIPT_SPACE (192 * MIB)
#define LIMIT_JAVASCRIPT_LEAST (96 * MIB)
/* Of cordon-ruby its libraries, and what it reserves for fibers: without them it does not start within 16 MB, or goes round in its collector. */
#define LIMIT_RUBY_SPACE (64 * MIB)
#define LIMIT_NODE_SPACE                                                                           \
    (512 * MIB) /* of Node, the same: V8 reserves 128 MB for code, and more for its heap */

/* What a caller may ask for: beyond these a limit is absurd and refused by name. */
#define LIMIT_WALL_MS_MAX     (7ULL * 24 * 3600 * 1000)
#define LIMIT_MEMORY_MIN      (4 * MIB)
#define LIMIT_MEMORY_MAX      (1024 * GIB)
#define LIMIT_DESCRIPTORS_MIN 8ULL
#define LIMIT_DESCRIPTORS_MAX 65536ULL
#define LIMIT_DISK_MIN        (64 * KIB)
#define LIMIT_DISK_MAX        (1024 * GIB)
#define LIMIT_INODES_MIN      16ULL
#define LIMIT_INODES_MAX      10000000ULL
#define LIMIT_PROCESSES_MAX   4096ULL
#define LIMIT_THREADS_MAX     4096ULL
#define LIMIT_OUTPUT_MAX      (1 * GIB)

/* Our own buffers. */
#define LIMIT_FRAME          (256 * KIB) /* one wire message */
#define LIMIT_FRAME_FDS      64          /* descriptors that travel with one message */
#define LIMIT_BINDS          32          /* --ro and --rw together */
#define LIMIT_ARGS           1024        /* words of the guest's command line */
#define LIMIT_ENV            256         /* --env */
#define LIMIT_SOURCE         (1 * MIB)   /* bytes of a program, whatever the policy says */
#define LIMIT_VALUE          100000      /* characters of a value, of an answer */
#define LIMIT_CHARACTER      4           /* bytes of one character in UTF-8, at most */
#define LIMIT_CALL           (64 * KIB)  /* arguments of a tool, as JSON */
#define LIMIT_NAMED          (80 * KIB)  /* the same with the name of each, for the record */
#define LIMIT_ANSWER         (200 * KIB) /* its answer, as JSON: one packet of a socket */
#define LIMIT_FILE_PIECE     (128 * KIB) /* bytes of a file in one message */
#define LIMIT_FILE_ASKS      100000ULL   /* requests for files of one program */
#define LIMIT_FILE_BYTES     (1 * GIB)   /* that they move together */
#define LIMIT_ANSWER_TEXT    (192 * KIB) /* text of files in an answer, before it is written as JSON */
#define LIMIT_CONTENTS_BYTES (64 * MIB) /* of shared folders that an approval is bound to */
#define LIMIT_CONTENTS_FILES 10000      /* files and folders of each of them */
#define LIMIT_TASK           64         /* letters of the name of a task */
#define LIMIT_HOST_TOOLS     64         /* tools that one run may call */
#define LIMIT_NESTED         2          /* runs that calls of tools started, one within the other */
#define LIMIT_NESTED_MEMORY  (64 * MIB) /* that such a run needs at least */
#define LIMIT_WORKERS        10         /* completed workers of a run whose results are kept */
#define LIMIT_MADE           50         /* tools that a run may make */
#define LIMIT_RAN_TEXT       (64 * KIB) /* bytes of a text that such a run gave: the answer FINAL */
#define LIMIT_RAN_OUTPUT     (32 * KIB) /* and of each of its streams and its value */
#define LIMIT_FILES          1000       /* files of /workspace that a result lists */
#define LIMIT_HINT                                                                                 \
    1024 /* bytes of what to do instead: a list of all modules fits, nothing of it is cut */
#define LIMIT_VIOLATIONS                                                                           \
    200 /* kept word for word, more than there are rules; the rest is counted */

/* A workspace: what one commit may hold. */
#define LIMIT_WORKSPACE_FILE                                                                       \
    (256 * MIB) /* bytes of one file, holes counted; a larger one is left out */
#define LIMIT_WORKSPACE_BYTES (4 * GIB) /* of all files; beyond it there is no commit */
#define LIMIT_WORKSPACE_FILES 200000    /* files and folders; the same */
#define LIMIT_WORKSPACE_DEPTH 64        /* folders below each other; deeper ones are left out */
#define LIMIT_WORKSPACE_DIFF                                                                       \
    (4 *                                                                                           \
     MIB) /* a file that is compared line by line: lines of one character take a hundred times as much memory */
#define LIMIT_WORKSPACE_LEFT                                                                       \
    1000 /* names of what was left out that are kept; the rest is counted */
#define LIMIT_WORKSPACE_MS                                                                         \
    3600000ULL /* an export to a file; then it is killed, and the file removed */
#define LIMIT_WORKSPACE_RUN_MS                                                                     \
    600000ULL /* a checkout or commit of a run: 4 GB to a slow disk; then it is killed, and the head stays */
#define LIMIT_WORKSPACE_LOCK_MS                                                                    \
    600000ULL /* a run for another's checkout or commit: with less the work of a run that is over would be lost */

/* How long one of our processes waits for another that holds what it needs. A lock is held for microseconds; with
 * hundreds of clients on one core its holder may not have run for hundreds of milliseconds. */
#define LIMIT_LOCK_MS 2000ULL /* a lock; then the run is refused, and the holder named */
#define LIMIT_LOCK_BRIEF_MS                                                                        \
    200ULL /* the same for `--no-wait`, for `cordon stop`, and after a wait that timed out */
#define LIMIT_SYNC_SHARE_MS                                                                        \
    50ULL /* for another's fdatasync that covers our record; then we sync ourselves */
#define LIMIT_SYNC_NOTE_MS 2ULL /* to note for others what was synced; then it stays unnoted */
#define LIMIT_JANITOR_MS                                                                           \
    2000ULL /* the janitor of a run; then it is killed, and the supervisor cleans up */
#define LIMIT_SCRATCH_MS                                                                           \
    10000ULL /* to empty a folder: a guest that lives on could make folders for ever */
#define LIMIT_DYING_MS                                                                             \
    100ULL /* the holder for a session that it killed; then its relatives count in full */
#define LIMIT_TOOL_MS                                                                              \
    10000ULL /* cordon-tool to check arguments, and again to carry a call out; then it is killed */
#define LIMIT_SPACE_MS  500ULL       /* between two looks at the disk space that a program takes */
#define LIMIT_BROKER_MS 2000ULL      /* the broker to end, once its socket is closed */
#define LIMIT_INDEX     (1024 * MIB) /* of one folder's documents, for Search */
#define LIMIT_LOOK_MS                                                                              \
    10000 /* a run that searches a collection again looks at its files anew by then */
#define LIMIT_INDEX_LOCK_MS                                                                        \
    5000ULL /* a search for another that brings the same index up to date; then it takes the old one */
#define LIMIT_TOOL_MEMORY (512 * MIB) /* of cordon-tool; of a host tool that names none */
#define LIMIT_TOOL_OUTPUT (16 * KIB)  /* bytes of a host tool that names none */
#define LIMIT_TOOL_OUTPUT_MAX                                                                      \
    (64 * KIB) /* what it may name: marked and as JSON, it fits an answer */
#define LIMIT_TOOL_SAID         (2 * KIB)  /* what a host tool says to stderr */
#define LIMIT_TOOL_FILE         (64 * MIB) /* one file that is given to a host tool */
#define LIMIT_TOOL_FILES        8          /* such files of one call */
#define LIMIT_APPROVALS_BUSY_MS 2000ULL    /* cordon-approvals for the lock of its database */
#define LIMIT_APPROVALS_MS      10000ULL   /* the gate for cordon-approvals, its fsyncs included */

/* A picture that a guest left, shown by cordon. */
#define LIMIT_IMAGE_FILE   (32 * MIB)  /* of its file */
#define LIMIT_IMAGE_PIXELS 40000000ULL /* of it */
#define LIMIT_IMAGE_SIDE   800         /* pixels of its longer side as it is shown */
#define LIMIT_IMAGE_SENT   (8 * MIB)   /* what is made of it for a terminal or a client */
#define LIMIT_IMAGE_MEMORY (512 * MIB) /* of cordon-image */
#define LIMIT_IMAGE_MS     5000ULL     /* cordon-image for all of one call; then it is killed */
#define LIMIT_IMAGES       4           /* of one block */

/* Processes that listen, cordond and the fronts of HTTP: until the next try, where a client could not be accepted. */
#define LIMIT_ACCEPT_MS 100ULL

/* cordon serve: what one client may have at once, and how long things are kept for it. */
#define LIMIT_SERVE_CLIENTS        32      /* of one socket */
#define LIMIT_SERVE_FULL_MS        5000ULL /* that a further one waits for one of them to leave */
#define LIMIT_SERVE_CLIENTS_USER   12 /* of it that one user has, where others are served, too */
#define LIMIT_SERVE_RUNNERS        256 /* under way for all clients: processes, most wait for a slot */
#define LIMIT_SERVE_RUNNERS_USER   96 /* of it that one user has, where others are served, too */
#define LIMIT_SERVE_RUNNERS_SETTLE 16 /* beyond it: for what ends, answers or measures others */
#define LIMIT_SERVE_LINE           (4 * MIB) /* one message of a client */
#define LIMIT_SERVE_DEPTH          32        /* brackets within each other in it */
#define LIMIT_SERVE_ID             256 /* bytes of a request's id or progress token, as JSON */
#define LIMIT_SERVE_REQUESTS       32  /* of one client that are not answered yet */
#define LIMIT_SERVE_SETTLE         64  /* beyond it: what ends, answers or looks at others */
#define LIMIT_SERVE_BATCH          32  /* messages in one array of the revision that has them */
#define LIMIT_SERVE_JOBS           64 /* runs of one client whose results are kept, running ones too */
#define LIMIT_SERVE_KEPT           (256 * MIB) /* of results that are kept, all clients together */
#define LIMIT_SERVE_SESSIONS       16          /* of one client */
#define LIMIT_SERVE_OUTPUT                                                                         \
    100000ULL /* bytes of each stream of a run, unless --output says less or more */
#define LIMIT_SERVE_OUTPUT_MAX (1 * MIB) /* what --output may say */
#define LIMIT_SERVE_MEMORY_MB  16        /* for a run: Python itself takes most of it */
#define LIMIT_SERVE_ANSWER                                                                         \
    (48 * MIB) /* what a runner may print: both streams escaped, told twice */
#define LIMIT_SERVE_SHOWN                                                                          \
    (8 * KIB) /* of what a run prints, and of its code: where a person is asked at the client */
#define LIMIT_SERVE_FILE (2 * MIB)   /* of a file, in one request to read or to write it */
#define LIMIT_SERVE_OUT  (128 * MIB) /* answers that a client has not read yet */
#define LIMIT_SERVE_ARRAY                                                                          \
    (64 * MIB) /* answers to one array: they are copied together for the client */
#define LIMIT_SERVE_HOLD  (8 * MIB)  /* beyond it nothing new is read from whoever caused them */
#define LIMIT_SERVE_PIECE (32 * KIB) /* of a body, in one packet: a socket takes it whole */
#define LIMIT_SERVE_TURN  64 /* packets of one front in a row: then cordond looks at all else */
#define LIMIT_SERVE_ANSWER_MS                                                                      \
    45000ULL /* then a request is answered with a job: clients give up at 60 s */
#define LIMIT_SERVE_ANSWER_MIN_MS 100ULL    /* what --answer may say, at least */
#define LIMIT_SERVE_QUESTION_MS   600000ULL /* the word for a question to the person at a client */
#define LIMIT_SERVE_NOTES         9ULL /* that a request is not forgotten, until then: every 5 s */
#define LIMIT_SERVE_KEEP_MS       600000ULL  /* the result of a job, once it is there */
#define LIMIT_SERVE_POLL_MS       1000ULL    /* a client that asks how a task stands */
#define LIMIT_SERVE_IDLE_MS       1800000ULL /* a session without a call; then it ends */
#define LIMIT_SERVE_QUEUE_MS                                                                       \
    900000ULL /* a runner beyond its time limit: slots, people; then it is killed */
#define LIMIT_SERVE_STOP_MS 5000ULL /* a runner after SIGTERM; then it is killed */
#define LIMIT_SERVE_END_MS                                                                         \
    10000ULL /* the end of cordond: runs ended, sessions closed; then it leaves */
#define LIMIT_SERVE_DRAIN_MS 10000ULL /* what runs, after SIGTERM, unless --drain says otherwise */
#define LIMIT_SERVE_FLUSH_MS                                                                       \
    2000ULL                     /* a front without cordond, for what its clients have not read */
#define LIMIT_SERVE_PASS_MS 100 /* a runner that is done: for its answer to be on its way */
#define LIMIT_SERVE_QUIET_MS                                                                       \
    20ULL /* of a run: what it prints is taken with its end, or after that */
#define LIMIT_SERVE_REST_US                                                                        \
    500ULL /* after an answer: nothing of ours takes the machine from whoever passes it on */
#define LIMIT_SERVE_READY     2           /* runners that wait for a request */
#define LIMIT_SERVE_WORDS     8192        /* bytes of a runner's command line */
#define LIMIT_SERVE_FIGURES   (256 * KIB) /* what --metrics prints */
#define LIMIT_SERVE_RELOAD_MS 10000ULL /* whoever reads the policy again; then it stays as it was */

/* cordon serve --http: what strangers may have of the front, and those who have the token. */
#define LIMIT_HTTP_CONNECTIONS 256
#define LIMIT_HTTP_HEAD        (16 * KIB)  /* request line and headers */
#define LIMIT_HTTP_FIELDS      64          /* headers */
#define LIMIT_HTTP_BODIES      (128 * MIB) /* of requests that are being read, all together */
#define LIMIT_HTTP_SESSIONS    256         /* of revisions that have them */
#define LIMIT_HTTP_EXCHANGES   512 /* requests and streams, those that can be resumed included */
#define LIMIT_HTTP_LOGS        (32 * MIB) /* events that are kept for who comes back, all together */
#define LIMIT_HTTP_LOGS_MS     300000ULL  /* and so long after the last of them */
#define LIMIT_HTTP_HEAD_MS     10000ULL   /* from the first byte of a head to its last */
#define LIMIT_HTTP_BODY_MS     30000ULL   /* of a body */
#define LIMIT_HTTP_IDLE_MS     60000ULL   /* a connection between two requests */
#define LIMIT_HTTP_STALL_MS    60000ULL   /* a client that does not read; then it is dropped */
#define LIMIT_HTTP_UNREAD      (128 * MIB) /* answers that clients have not read, all together */
#define LIMIT_HTTP_UNREAD_MS   5000ULL /* and where there are more: one of them, then it is dropped */
#define LIMIT_HTTP_BEAT_MS     15000ULL /* a stream on which nothing was said */
#define LIMIT_HTTP_LINGER_MS   2000ULL  /* after an answer that ends a connection, for its reader */
#define LIMIT_HTTP_TOKEN_MIN   32       /* characters of a bearer token */
#define LIMIT_HTTP_TOKEN       512
#define LIMIT_HTTP_NAMES       1024 /* characters of the names that --allow-host gives */

/* cordon proxy: what its clients and its upstreams may have at once. */
#define LIMIT_PROXY_STREAMS    1100       /* calls at once, of all clients */
#define LIMIT_PROXY_BODY       (16 * MIB) /* of a request */
#define LIMIT_PROXY_EVENT      (1 * MIB)  /* one event of an upstream */
#define LIMIT_PROXY_HELD       (4 * MIB)  /* of one answer that is not handed on yet */
#define LIMIT_PROXY_UNREAD     (4 * MIB)  /* that a client does not read; then it is dropped */
#define LIMIT_PROXY_TEXT       (1 * MIB)  /* of an answer that another tier can continue */
#define LIMIT_PROXY_ERROR      (64 * KIB) /* of what an upstream says of an error */
#define LIMIT_PROXY_BACKLOG    (32 * MIB) /* for the front; beyond it upstreams wait */
#define LIMIT_PROXY_ATTEMPTS   16         /* of one call, all tiers together */
#define LIMIT_PROXY_PROMPT     (64 * KIB) /* of what was asked, in a record */
#define LIMIT_PROXY_CONNECT_MS 10000ULL   /* to connect to an upstream */
#define LIMIT_PROXY_LINGER_MS  1000ULL    /* an upstream after the last event of its answer */
#define LIMIT_GATEWAY          (8 * MIB) /* what a gateway says of itself: the names of its models */

/* cordon-ask: one question to a model, for a run. */
#define LIMIT_ASK_REPLY  (1 * MIB)   /* what the gateway answers */
#define LIMIT_ASK_TEXT   (128 * KIB) /* of a model's answer; the rest is cut */
#define LIMIT_ASK_SYSTEM (64 * KIB)  /* of a system message, or of the rules of a judge */
#define LIMIT_ASK_MODEL  200         /* bytes of the name of a model, as the gateway takes it */

#endif
