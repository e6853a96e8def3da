// nanomsg: PAIR for round trip and stream, REQ and REP for many connections. Its PUB drops what a connection cannot
// take at once, and has no queue. So a broadcast that loses nothing needs a PAIR for each peer; a process may have 512
// of them.

#include "benchmark.h"

#include <errno.h>
#include <nanomsg/nn.h>
#include <nanomsg/pair.h>
#include <nanomsg/reqrep.h>
#include <nanomsg/tcp.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_SOCKETS = 500, BYTES_WAITING = 4 << 20, BY_REFERENCE = 4 << 10 };

static struct benchmark_options options;

static void demand(bool is_good, const char *what) {
    if (!is_good) benchmark_fail(what, nn_strerror(nn_errno()));
}

static void set(int socket, int level, int option, int value) {
    demand(nn_setsockopt(socket, level, option, &value, sizeof value) == 0, "nn_setsockopt");
}

static int opened(int protocol) {
    int socket = nn_socket(AF_SP, protocol);
    demand(socket >= 0, "nn_socket");
    set(socket, NN_SOL_SOCKET, NN_SNDBUF, BYTES_WAITING);
    set(socket, NN_SOL_SOCKET, NN_RCVBUF, BYTES_WAITING);
    set(socket, NN_SOL_SOCKET, NN_RCVMAXSIZE, -1);
    set(socket, NN_TCP, NN_TCP_NODELAY, 1);
    return socket;
}

/// Listens on a port that was free a moment ago, because nanomsg cannot report which port the kernel gave.
static int listening(int socket) {
    char address[64];
    int port = benchmark_free_port();
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    demand(nn_bind(socket, address) >= 0, "nn_bind");
    return port;
}

static void connect_to(int socket, const char *port) {
    char address[64];
    snprintf(address, sizeof address, "tcp://127.0.0.1:%s", port);
    demand(nn_connect(socket, address) >= 0, "nn_connect");
}

static void post(int socket, const uint8_t *bytes, size_t length) {
    if (length < BY_REFERENCE) {
        demand(nn_send(socket, bytes, length, 0) >= 0, "nn_send");
        return;
    }
    // Hands over memory of the library, which saves the second of two copies.
    void *message = nn_allocmsg(length, 0);
    demand(message != NULL, "nn_allocmsg");
    memcpy(message, bytes, length);
    demand(nn_send(socket, &message, NN_MSG, 0) >= 0, "nn_send");
}

static size_t receive(int socket, uint8_t **message) {
    int length = nn_recv(socket, message, NN_MSG, 0);
    demand(length >= 0, "nn_recv");
    return (size_t)length;
}

static void wait_for_message(int socket) {
    uint8_t *message;
    receive(socket, &message);
    nn_freemsg(message);
}

static void echo(int socket, int limit) {
    for (int done = 0; limit == 0 || done < limit; done++) {
        uint8_t *message;
        receive(socket, &message);
        demand(nn_send(socket, &message, NN_MSG, 0) >= 0, "nn_send");
    }
}

static void ask(int socket) {
    struct benchmark_trips trips;
    benchmark_trips_begin(&trips, &options);
    for (bool goes_on = true; goes_on;) {
        uint8_t *message;
        post(socket, benchmark_trips_next(&trips), options.size);
        size_t length = receive(socket, &message);
        goes_on = benchmark_trips_returned(&trips, message, length);
        nn_freemsg(message);
    }
    benchmark_trips_report(&trips);
}

// MARK: Stream and broadcast

static void send_all(const int *sockets, int count) {
    struct benchmark_supply supply;
    benchmark_supply_begin(&supply, &options);
    const uint8_t *payload;
    while ((payload = benchmark_supply_next(&supply)) != NULL)
        for (int index = 0; index < count; index++) post(sockets[index], payload, options.size);
    wait_for_message(sockets[0]);
    benchmark_supply_report(&supply);
}

static struct benchmark_tally tally;

static bool receive_one(int socket, struct benchmark_receipt *receipt, int flags, bool *is_last) {
    uint8_t *message;
    int length = nn_recv(socket, &message, NN_MSG, flags);
    if (length < 0 && nn_errno() == EAGAIN) return false;
    demand(length >= 0, "nn_recv");
    if (benchmark_receive(receipt, &tally, message, (size_t)length)) *is_last = true;
    nn_freemsg(message);
    return true;
}

static void receive_all(const int *sockets, int count) {
    struct nn_pollfd *polled = calloc((size_t)count, sizeof *polled);
    struct benchmark_receipt *receipts = calloc((size_t)count, sizeof *receipts);
    tally.peers = count;
    for (int index = 0; index < count; index++) {
        polled[index] = (struct nn_pollfd){.fd = sockets[index], .events = NN_POLLIN};
        receipts[index].size = options.size;
    }
    for (bool is_last = false; !is_last;) {
        if (count == 1) {
            receive_one(sockets[0], receipts, 0, &is_last);
            continue;
        }
        demand(nn_poll(polled, count, -1) > 0, "nn_poll");
        for (int index = 0; index < count; index++)
            while ((polled[index].revents & NN_POLLIN) != 0 &&
                   receive_one(sockets[index], &receipts[index], NN_DONTWAIT, &is_last)) {}
    }
    benchmark_tally_report(&tally);
    post(sockets[0], (const uint8_t *)"", 1);
}

static int *pairs(int count) {
    if (count > MOST_SOCKETS) benchmark_unsupported("nanomsg has no more than 512 sockets a process");
    int *sockets = calloc((size_t)count, sizeof *sockets);
    for (int index = 0; index < count; index++) sockets[index] = opened(NN_PAIR);
    return sockets;
}

static void publish(void) {
    int *sockets = pairs(options.peers);
    char *ports = calloc((size_t)options.peers, 8), *end = ports;
    for (int index = 0; index < options.peers; index++)
        end += sprintf(end, index == 0 ? "%d" : ",%d", listening(sockets[index]));
    benchmark_report_port(ports);
    for (int index = 0; index < options.peers; index++) wait_for_message(sockets[index]);
    send_all(sockets, options.peers);
}

static void subscribe(void) {
    int *sockets = pairs(options.peers);
    char *rest, *port = strtok_r((char *)options.port, ",", &rest);
    for (int index = 0; index < options.peers; index++, port = strtok_r(NULL, ",", &rest)) {
        connect_to(sockets[index], port);
        post(sockets[index], (const uint8_t *)"", 1);
    }
    receive_all(sockets, options.peers);
    benchmark_wait_for_other_side();
}

// MARK: Connections

static void greet(int socket, const uint8_t *payload) {
    post(socket, payload, options.size);
    wait_for_message(socket);
}

static intptr_t connect_once(const uint8_t *payload) {
    int socket = opened(NN_REQ);
    connect_to(socket, options.port);
    greet(socket, payload);
    return socket;
}

static void leave(intptr_t socket) { nn_close((int)socket); }

/// Uses one socket on either side for all connections, because there are not enough sockets.
static void keep_idle(void) {
    uint64_t before = benchmark_resident();
    const uint8_t *payload = benchmark_payload(options.size, 0);
    int socket = opened(options.serves ? NN_REP : NN_REQ);
    if (options.serves) {
        benchmark_report_port_number(listening(socket));
        echo(socket, options.peers);
    } else {
        for (int index = 0; index < options.peers; index++) {
            connect_to(socket, options.port);
            while (nn_get_statistic(socket, NN_STAT_CURRENT_CONNECTIONS) <= (uint64_t)index) {}
        }
        // The connections take turns, so each carries one message.
        for (int index = 0; index < options.peers; index++) greet(socket, payload);
    }
    benchmark_report_resident(before, options.peers);
}

static void serve(void) {
    if (options.work == BENCHMARK_IDLE) return keep_idle();
    if (options.work == BENCHMARK_BROADCAST) return publish();
    int socket = opened(options.work == BENCHMARK_CONNECT ? NN_REP : NN_PAIR);
    benchmark_report_port_number(listening(socket));
    if (options.work == BENCHMARK_STREAM) return receive_all(&socket, 1);
    echo(socket, 0);
}

int main(int argument_count, char **arguments) {
    options = benchmark_begin(argument_count, arguments);
    if (options.serves) {
        serve();
        benchmark_wait_for_other_side();
        return 0;
    }
    int socket;
    switch (options.work) {
    case BENCHMARK_ROUND_TRIP:
    case BENCHMARK_STREAM:
        socket = opened(NN_PAIR);
        connect_to(socket, options.port);
        options.work == BENCHMARK_STREAM ? send_all(&socket, 1) : ask(socket);
        break;
    case BENCHMARK_BROADCAST: subscribe(); break;
    case BENCHMARK_CONNECT: benchmark_connect_often(&options, connect_once, leave); break;
    case BENCHMARK_IDLE: keep_idle(); break;
    case BENCHMARK_FOUND: benchmark_unsupported("it has no discovery");
    case BENCHMARK_CALLS_AT_ONCE: benchmark_unsupported("it has no calls");
    }
    return 0;
}
