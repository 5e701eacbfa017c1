// Asks an echo server over TCP, from the host, and says how fast it was. The same program for every server.
//
//   client bulk  ADDRESS PORT BYTES             one connection, sent as fast as it is taken: MB/s
//   client trips ADDRESS PORT COUNT             64 bytes there and back, one after the other: p50 and p99 in us
//   client many  ADDRESS PORT CONNECTIONS COUNT the same on many connections at once: round trips a second
//
// What comes back is compared with what was sent, byte for byte. Any failure ends it with a message and status 1.
// It is no load generator: one thread, closed loop, so a slow answer delays the next question.

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 64, PIECE = 65536, PATIENCE_S = 60 };

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static int connected(const char *address, const char *port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int one = 1, tcp = socket(AF_INET, SOCK_STREAM, 0);
    if (tcp < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1) errx(1, "no such address: %s", address);
    if (connect(tcp, (struct sockaddr *)&to, sizeof to)) err(1, "connect");
    setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return tcp;
}

// What is at this place of the stream.
static char expected(uint64_t place) { return (char)((place * 0x9e3779b97f4a7c15) >> 56); }

static void ask(int tcp, uint64_t trip) {
    char bytes[SIZE];
    for (int i = 0; i < SIZE; i++) bytes[i] = expected(trip * SIZE + i);
    if (send(tcp, bytes, SIZE, MSG_NOSIGNAL) != SIZE) err(1, "send");
}

static void hear(int tcp, uint64_t trip) {
    char bytes[SIZE];
    for (int have = 0; have < SIZE;) {
        ssize_t count = recv(tcp, bytes + have, SIZE - have, 0);
        if (count <= 0) errx(1, "recv: %s", count ? strerror(errno) : "closed by the other side");
        have += count;
    }
    for (int i = 0; i < SIZE; i++)
        if (bytes[i] != expected(trip * SIZE + i)) errx(1, "trip %llu came back changed", (unsigned long long)trip);
}

static int by_size(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

static void bulk(int tcp, uint64_t bytes) {
    static char out[PIECE], in[PIECE];
    // The first ones are for the emulator, which translates the code then.
    uint64_t before = bytes / 5, sent = 0, heard = 0;
    double begin = 0;
    while (heard < before + bytes) {
        struct pollfd ready = {.fd = tcp, .events = POLLIN | (sent < before + bytes ? POLLOUT : 0)};
        if (poll(&ready, 1, PATIENCE_S * 1000) != 1) errx(1, "nothing for %d seconds", PATIENCE_S);
        if (ready.revents & POLLOUT) {
            size_t piece = before + bytes - sent < PIECE ? before + bytes - sent : PIECE;
            for (size_t i = 0; i < piece; i++) out[i] = expected(sent + i);
            ssize_t count = send(tcp, out, piece, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (count < 0 && errno != EAGAIN) err(1, "send");
            if (count > 0) sent += count;
        }
        if (ready.revents & ~POLLOUT) {
            ssize_t count = recv(tcp, in, PIECE, MSG_DONTWAIT);
            if (count == 0 || (count < 0 && errno != EAGAIN)) errx(1, "the connection has ended");
            for (ssize_t i = 0; i < count; i++, heard++) {
                if (in[i] != expected(heard)) errx(1, "byte %llu came back changed", (unsigned long long)heard);
                if (heard == before) begin = now_us();
            }
        }
    }
    printf("bulk_MBps %.2f\n", bytes / (now_us() - begin));
}

static void trips(int tcp, int count) {
    double *took = calloc(count, sizeof *took);
    if (!took) err(1, "trips");
    int before = count / 5;
    for (int trip = 0; trip < before + count; trip++) {
        double begin = now_us();
        ask(tcp, trip);
        hear(tcp, trip);
        if (trip >= before) took[trip - before] = now_us() - begin;
    }
    qsort(took, count, sizeof *took, by_size);
    printf("trip_p50_us %.1f\ntrip_p99_us %.1f\n", took[count / 2], took[count - 1 - count / 100]);
}

static void many(const char *address, const char *port, int connections, int count) {
    struct pollfd *all = calloc(connections, sizeof *all);
    uint64_t *trip = calloc(connections, sizeof *trip);
    if (!all || !trip) err(1, "many");
    for (int i = 0; i < connections; i++) {
        all[i] = (struct pollfd){.fd = connected(address, port), .events = POLLIN};
        // Of connections that are forwarded QEMU lets one at a time wait: each is answered once before the next comes.
        ask(all[i].fd, 0);
        hear(all[i].fd, 0);
    }
    int before = count / 5, heard = 0;
    double begin = 0;
    for (int i = 0; i < connections; i++) ask(all[i].fd, ++trip[i]);
    while (heard < before + count) {
        if (poll(all, connections, PATIENCE_S * 1000) < 1) errx(1, "nothing for %d seconds", PATIENCE_S);
        for (int i = 0; i < connections; i++) {
            if (!all[i].revents) continue;
            hear(all[i].fd, trip[i]);
            ask(all[i].fd, ++trip[i]);
            if (++heard == before) begin = now_us();
        }
    }
    printf("many_per_s %.0f\n", (heard - before) / (now_us() - begin) * 1e6);
}

int main(int count, char **words) {
    if (count < 5) errx(1, "bulk|trips|many ADDRESS PORT ...");
    if (!strcmp(words[1], "bulk")) bulk(connected(words[2], words[3]), strtoull(words[4], 0, 10));
    else if (!strcmp(words[1], "trips")) trips(connected(words[2], words[3]), atoi(words[4]));
    else if (!strcmp(words[1], "many") && count == 6) many(words[2], words[3], atoi(words[4]), atoi(words[5]));
    else errx(1, "bulk|trips|many ADDRESS PORT ...");
}
