// An echo server for the Linux guest, at TCP port 7, in both ways that are usual:
//
//   echo threads   a thread for each connection, which blocks in read and write (Magpie's example has a process for each)
//   echo epoll     one thread for all connections
//
// It reads pieces of 4096 bytes, as Magpie's example does.

#define _GNU_SOURCE

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7, PIECE = 4096, BACKLOG = 64, AT_ONCE = 64 };

// Blocks until all is written; false if the connection has ended.
static int write_all(int tcp, const char *bytes, size_t size) {
    while (size) {
        ssize_t count = send(tcp, bytes, size, MSG_NOSIGNAL);
        if (count < 0) return 0;
        bytes += count, size -= count;
    }
    return 1;
}

static void *answer(void *given) {
    int tcp = (int)(intptr_t)given;
    char bytes[PIECE];
    ssize_t count;
    while ((count = recv(tcp, bytes, PIECE, 0)) > 0 && write_all(tcp, bytes, count)) {}
    close(tcp);
    return 0;
}

// A connection of the epoll way: what is read and not yet written.
struct Connection {
    int tcp;
    size_t from, until;
    char bytes[PIECE];
};

// Reads and writes while both go; false when it has ended.
static int turn(int epoll, struct Connection *this) {
    for (;;) {
        while (this->from < this->until) {
            ssize_t count = send(this->tcp, this->bytes + this->from, this->until - this->from, MSG_NOSIGNAL);
            if (count < 0) {
                struct epoll_event wanted = {.events = EPOLLOUT, .data.ptr = this};
                return errno == EAGAIN && !epoll_ctl(epoll, EPOLL_CTL_MOD, this->tcp, &wanted);
            }
            this->from += count;
        }
        ssize_t count = recv(this->tcp, this->bytes, PIECE, 0);
        if (count <= 0) {
            struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = this};
            return count < 0 && errno == EAGAIN && !epoll_ctl(epoll, EPOLL_CTL_MOD, this->tcp, &wanted);
        }
        this->from = 0, this->until = count;
    }
}

static void serve_epoll(int listener) {
    int epoll = epoll_create1(0);
    struct epoll_event here = {.events = EPOLLIN}, ready[AT_ONCE];
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &here)) err(1, "epoll");
    for (;;) {
        int count = epoll_wait(epoll, ready, AT_ONCE, -1);
        for (int i = 0; i < count; i++) {
            struct Connection *this = ready[i].data.ptr;
            if (!this) {
                int one = 1;
                if (!(this = calloc(1, sizeof *this))) err(1, "calloc");
                if ((this->tcp = accept4(listener, 0, 0, SOCK_NONBLOCK)) < 0) err(1, "accept");
                setsockopt(this->tcp, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = this};
                if (epoll_ctl(epoll, EPOLL_CTL_ADD, this->tcp, &wanted)) err(1, "epoll_ctl");
            } else if (!turn(epoll, this)) {
                close(this->tcp);
                free(this);
            }
        }
    }
}

static void serve_threads(int listener) {
    for (;;) {
        pthread_t thread;
        int one = 1, tcp = accept(listener, 0, 0);
        if (tcp < 0) err(1, "accept");
        setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if ((errno = pthread_create(&thread, 0, answer, (void *)(intptr_t)tcp))) err(1, "pthread_create");
        pthread_detach(thread);
    }
}

int main(int count, char **words) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (count != 2) errx(1, "threads|epoll");
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, BACKLOG)) err(1, "listen");
    puts("listening at port 7"), fflush(stdout);
    if (!strcmp(words[1], "epoll")) serve_epoll(listener);
    else serve_threads(listener);
}
