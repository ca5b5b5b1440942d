/* SPDX-License-Identifier: Apache-2.0 */
/* A model that streams as fast as it can or as fast as it is read, and its clients, in one process, so that both look at one clock.
 * bench/proxy.py puts the gateway between them, and leaves it out: the same upstream, the same clients, a round of each after the other.
 *
 *   chunks a second   each of STREAMS clients reads one answer of CHUNKS chunks, all at once
 *   time of a chunk   one answer; the upstream sends a chunk when the client has the one before, and the clock runs from the one's send
 *                     to the other's read. A gateway that holds tokens back gives out an older chunk instead: what it adds is the same
 *
 * Usage: proxy_bench ROUNDS CHUNKS: prints its port, then reads the gateway's port and token. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PACED       2000 /* chunks whose times are taken, of one answer */
#define STREAMS_MAX 64
#define WAIT_MS                                                                                    \
    5 /* until the upstream sends the next although the client got nothing: the first ones are held back */

static const unsigned crowds[] = {1, 16, 64};
enum { CROWDS = sizeof crowds / sizeof *crowds, WAYS = 2 };

static unsigned chunks, gateway;
static char token[600];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t seen = PTHREAD_COND_INITIALIZER;
static unsigned got; /* chunks that the client of a paced answer has */
static double sent_at, times[PACED];
static unsigned timed;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void give_up(const char *what)
{
    fprintf(stderr, "proxy_bench: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void send_all(int fd, const char *data, size_t len)
{
    while (len) {
        const ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n <= 0)
            give_up("send");
        data += n;
        len -= (size_t)n;
    }
}

/* ---- the upstream ---- */

/* A chunk as OpenAI's servers send it, with a word that is another one each time. */
static void send_chunk(int fd, uint64_t *state, const char *end)
{
    char word[12] = " ", event[400], framed[460];
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    for (unsigned i = 0; i < 7; i++)
        word[i + 1] = (char)('a' + (*state >> (8 * i)) % 26);
    const int n = snprintf(
        event, sizeof event,
        "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":"
        "\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},\"logprobs\":null,"
        "\"finish_reason\":%s}]}\n\n",
        word, end);
    const int all = snprintf(framed, sizeof framed, "%x\r\n%s\r\n", (unsigned)n, event);
    send_all(fd, framed, (size_t)all);
}

static void flood(int fd, uint64_t *state)
{
    for (unsigned i = 0; i < chunks; i++)
        send_chunk(fd, state, "null");
}

/* Waits for the client's next chunk, or for WAIT_MS. */
static void pace(int fd, uint64_t *state)
{
    for (unsigned i = 0; i < PACED; i++) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += WAIT_MS * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&lock);
        const unsigned before = got;
        sent_at = now_us();
        pthread_mutex_unlock(&lock);
        send_chunk(fd, state, "null");
        pthread_mutex_lock(&lock);
        while (got == before && pthread_cond_timedwait(&seen, &lock, &until) == 0)
            continue;
        pthread_mutex_unlock(&lock);
    }
}

/* One request after the other of one connection. */
static void *serve(void *arg)
{
    const int fd = (int)(intptr_t)arg;
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n",
                      last[] = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
    char data[4096];
    size_t len = 0;
    for (;;) {
        const ssize_t n = recv(fd, data + len, sizeof data - 1 - len, 0);
        if (n <= 0)
            break;
        len += (size_t)n;
        data[len] = 0;
        const char *body = strstr(data, "\r\n\r\n");
        if (!body || !strchr(body, '}') || data[len - 1] != '}')
            continue;
        uint64_t state = 88172645463325252U + (uint64_t)fd;
        send_all(fd, head, sizeof head - 1);
        if (strstr(body, "paced"))
            pace(fd, &state);
        else
            flood(fd, &state);
        send_chunk(fd, &state, "\"stop\"");
        send_all(fd, last, sizeof last - 1);
        len = 0;
    }
    close(fd);
    return NULL;
}

static void *accept_all(void *arg)
{
    const int listener = (int)(intptr_t)arg, on = 1;
    for (;;) {
        pthread_t t;
        const int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            give_up("accept");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (pthread_create(&t, NULL, serve, (void *)(intptr_t)fd) != 0)
            give_up("pthread_create");
        pthread_detach(t);
    }
    return NULL;
}

/* ---- clients ---- */

static int ask(unsigned port, const char *model)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char body[200], text[1200];
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        give_up("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    snprintf(body, sizeof body, "{\"model\":\"%s\",\"stream\":true,\"messages\":[]}", model);
    const int n =
        snprintf(text, sizeof text,
                 "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                 "Authorization: Bearer %s\r\nContent-Type: application/json\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 token, strlen(body), body);
    send_all(fd, text, (size_t)n);
    return fd;
}

static void note(double at, unsigned count)
{
    pthread_mutex_lock(&lock);
    if (timed < PACED)
        times[timed++] = at - sent_at;
    got += count;
    pthread_cond_signal(&seen);
    pthread_mutex_unlock(&lock);
}

/* Reads an answer to its end; returns how many events it had. An event ends with an empty line. */
static unsigned read_answer(int fd, int paced)
{
    char data[65536];
    unsigned count = 0;
    char before[2] = {0};
    for (;;) {
        const ssize_t n = recv(fd, data, sizeof data, 0);
        const double at = now_us();
        unsigned more = 0;
        int over = n <= 0;
        for (ssize_t i = 0; i < n; i++) {
            more += data[i] == '\n' && before[1] == '\n';
            over |= data[i] == ']' && before[1] == 'E'; /* [DONE] */
            before[0] = before[1];
            before[1] = data[i];
        }
        count += more;
        if (paced && more && !over)
            note(at, more);
        if (over)
            break;
    }
    close(fd);
    return count;
}

struct one {
    unsigned port, count;
};

static void *read_one(void *arg)
{
    struct one *o = arg;
    o->count = read_answer(ask(o->port, "flood"), 0);
    return NULL;
}

/* Chunks a second of so many clients at once. */
static double rate(unsigned port, unsigned streams)
{
    pthread_t threads[STREAMS_MAX];
    struct one ones[STREAMS_MAX];
    const double begin = now_us();
    uint64_t all = 0;
    for (unsigned i = 0; i < streams; i++) {
        ones[i] = (struct one){.port = port};
        if (pthread_create(&threads[i], NULL, read_one, &ones[i]) != 0)
            give_up("pthread_create");
    }
    for (unsigned i = 0; i < streams; i++) {
        pthread_join(threads[i], NULL);
        all += ones[i].count;
    }
    if (all < (uint64_t)chunks * streams) {
        fprintf(stderr, "proxy_bench: of %u chunks %llu arrived\n", chunks * streams,
                (unsigned long long)all);
        exit(2);
    }
    return (double)all / (now_us() - begin) * 1e6;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* p50 and p99 of the time of a chunk, in microseconds. */
static void latency(unsigned port, double *p50, double *p99)
{
    timed = got = 0;
    read_answer(ask(port, "paced"), 1);
    if (timed < PACED / 2) {
        fprintf(stderr, "proxy_bench: only %u chunks of a paced answer came alone\n", timed);
        exit(2);
    }
    qsort(times, timed, sizeof *times, by_value);
    *p50 = times[timed / 2];
    *p99 = times[timed * 99 / 100];
}

static double best(const double *values, unsigned count, int most)
{
    double found = values[0];
    for (unsigned i = 1; i < count; i++)
        found = most                ? values[i] > found ? values[i] : found
                : values[i] < found ? values[i]
                                    : found;
    return found;
}

static void measure(unsigned direct, unsigned rounds)
{
    static double rates[WAYS][CROWDS][100], p50[WAYS][100], p99[WAYS][100];
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned way = 0; way < WAYS; way++) {
            const unsigned port = way ? gateway : direct;
            latency(port, &p50[way][round], &p99[way][round]);
            for (unsigned k = 0; k < CROWDS; k++)
                rates[way][k][round] = rate(port, crowds[k]);
        }
    for (unsigned k = 0; k < CROWDS; k++) {
        const double a = best(rates[0][k], rounds, 1), b = best(rates[1][k], rounds, 1);
        printf("%-34s %12.0f %12.0f %9.2f\n",
               k == 0   ? "chunks a second, 1 stream"
               : k == 1 ? "chunks a second, 16 streams"
                        : "chunks a second, 64 streams",
               a, b, b / a);
    }
    const double a50 = best(p50[0], rounds, 0), b50 = best(p50[1], rounds, 0),
                 a99 = best(p99[0], rounds, 0), b99 = best(p99[1], rounds, 0);
    printf("%-34s %12.1f %12.1f\n", "time of a chunk, p50, us", a50, b50);
    printf("%-34s %12.1f %12.1f\n", "time of a chunk, p99, us", a99, b99);
    printf("added by the gateway to a chunk: p50 %.1f us, p99 %.1f us\n", b50 - a50, b99 - a99);
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    pthread_t t;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    chunks = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    if (rounds < 1 || rounds > 100 || chunks < 1 || chunks > 1000000) {
        fprintf(stderr, "usage: proxy_bench ROUNDS CHUNKS\n");
        return 2;
    }
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, len) < 0 ||
        listen(listener, 128) < 0 || getsockname(listener, (struct sockaddr *)&at, &len) < 0 ||
        pthread_create(&t, NULL, accept_all, (void *)(intptr_t)listener) != 0)
        give_up("listen");
    printf("%u\n", ntohs(at.sin_port));
    fflush(stdout);
    if (scanf("%u %511s", &gateway, token) != 2)
        return 2;
    measure(ntohs(at.sin_port), rounds);
    return 0;
}
