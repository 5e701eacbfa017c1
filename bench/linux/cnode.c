// A C node (`ei`) for the Linux guest: its registered name `echo` answers gen_server:call with what it was asked.
//
//   cnode NODE@HOST COOKIE PORT      ERL_EPMD_PORT says where the port mapper is
//
// One thread, one connection, as is usual for such nodes. The answer is made of the question's own bytes, without decoding what was asked: as short a way
// as `ei` has.

#include <ei.h>
#include <err.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Answers {'$gen_call', {Pid, Tag}, What} to Pid with {Tag, What}; anything else is left alone.
static void answer(int line, const char *term, ei_x_buff *out) {
    char label[MAXATOMLEN_UTF8];
    erlang_pid from;
    int at = 0, arity;
    if (ei_decode_version(term, &at, &arity) || ei_decode_tuple_header(term, &at, &arity) || arity != 3) return;
    if (ei_decode_atom(term, &at, label) || strcmp(label, "$gen_call")) return;
    if (ei_decode_tuple_header(term, &at, &arity) || arity != 2 || ei_decode_pid(term, &at, &from)) return;
    // Tag and What follow one another, as they do in the answer.
    int tag = at;
    if (ei_skip_term(term, &at) || ei_skip_term(term, &at)) return;
    out->index = 0;
    if (ei_x_encode_version(out) || ei_x_encode_tuple_header(out, 2) || ei_x_append_buf(out, term + tag, at - tag)) errx(1, "no memory");
    if (ei_send(line, &from, out->buff, out->index)) errx(1, "ei_send: %d", erl_errno);
}

int main(int count, char **words) {
    ei_cnode node;
    char *host;
    if (count != 4 || !(host = strchr(words[1], '@'))) errx(1, "NODE@HOST COOKIE PORT");
    *host++ = 0;
    char full[MAXNODELEN + 1];
    snprintf(full, sizeof full, "%s@%s", words[1], host);
    struct in_addr address = {.s_addr = htonl(INADDR_LOOPBACK)};
    if (ei_init() || ei_connect_xinit(&node, host, words[1], full, &address, words[2], 1)) errx(1, "ei_connect_xinit: %d", erl_errno);
    int port = atoi(words[3]), listener = ei_listen(&node, &port, 5);
    if (listener < 0) err(1, "ei_listen");
    if (ei_publish(&node, port) < 0) errx(1, "ei_publish: %d", erl_errno);
    printf("%s is up\n", full), fflush(stdout);
    ei_x_buff in, out;
    ei_x_new(&in), ei_x_new(&out);
    for (;;) {
        ErlConnect other;
        int line = ei_accept(&node, listener, &other);
        if (line < 0) continue;
        for (;;) {
            erlang_msg message;
            int kind = ei_xreceive_msg(line, &message, &in);
            if (kind == ERL_ERROR) break;
            if (kind == ERL_MSG && message.msgtype == ERL_REG_SEND) answer(line, in.buff, &out);
        }
        close(line);
    }
}
