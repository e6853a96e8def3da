// ZeroMQ, in plaintext or with CURVE: PAIR for round trip and stream, XPUB that may not drop for broadcast, DEALER and
// ROUTER for many connections. Large messages are sent without a copy. The high-water marks are so high that a receiver
// that keeps up never holds up the sender.

#include "benchmark.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

enum {
    /// From this size on, avoiding the copy pays.
    BY_REFERENCE = 8 << 10,
    /// The bytes that may wait in a queue; by measurement more is not faster.
    BYTES_WAITING = 4 << 20,
};

static struct benchmark_options options;
static void *context;
/// With CURVE, all sockets of a program prove this one key, and both sides know it.
static bool is_encrypted;
static char public_key[41], secret_key[41];

static void demand(bool is_good, const char *what) {
    if (!is_good) benchmark_fail(what, zmq_strerror(errno));
}

static void set(void *socket, int option, int value) {
    demand(zmq_setsockopt(socket, option, &value, sizeof value) == 0, "zmq_setsockopt");
}

static void *new_socket(int kind) {
    void *socket = zmq_socket(context, kind);
    demand(socket != NULL, "zmq_socket");
    int mark = (int)(BYTES_WAITING / options.size);
    if (mark > 20000) mark = 20000;
    if (mark < 8) mark = 8;
    set(socket, ZMQ_SNDHWM, mark);
    set(socket, ZMQ_RCVHWM, mark);
    set(socket, ZMQ_LINGER, 1000);
    set(socket, ZMQ_BACKLOG, 4096);
    if (is_encrypted) {
        demand(zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public_key, 40) == 0, "ZMQ_CURVE_PUBLICKEY");
        demand(zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret_key, 40) == 0, "ZMQ_CURVE_SECRETKEY");
    }
    return socket;
}

/// Makes one key for both sides from a number, so that two processes agree on it.
static void choose_key(void) {
    static const uint8_t number[32] = {1};
    if (!zmq_has("curve")) benchmark_unsupported("it was built without CURVE");
    is_encrypted = true;
    demand(zmq_z85_encode(secret_key, number, sizeof number) != NULL, "zmq_z85_encode");
    demand(zmq_curve_public(public_key, secret_key) == 0, "zmq_curve_public");
}

static void *listening(int kind) {
    void *socket = new_socket(kind);
    if (kind == ZMQ_XPUB) set(socket, ZMQ_XPUB_NODROP, 1);
    if (kind == ZMQ_XPUB) set(socket, ZMQ_XPUB_VERBOSE, 1);
    if (is_encrypted) set(socket, ZMQ_CURVE_SERVER, 1);
    demand(zmq_bind(socket, "tcp://127.0.0.1:*") == 0, "zmq_bind");
    return socket;
}

static void say_port(void *socket) {
    char endpoint[64];
    size_t length = sizeof endpoint;
    demand(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &length) == 0, "zmq_getsockopt");
    benchmark_report_port(strrchr(endpoint, ':') + 1);
}

static void connect_to_server(void *socket) {
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%s", options.port);
    if (is_encrypted)
        demand(zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, public_key, 40) == 0, "ZMQ_CURVE_SERVERKEY");
    demand(zmq_connect(socket, endpoint) == 0, "zmq_connect");
}

static void keep(void *bytes, void *hint) {
    (void)bytes;
    (void)hint;
}

static void post(void *socket, const uint8_t *bytes, size_t length) {
    if (length < BY_REFERENCE) {
        demand(zmq_send(socket, bytes, length, 0) >= 0, "zmq_send");
        return;
    }
    zmq_msg_t message;
    zmq_msg_init_data(&message, (void *)bytes, length, keep, NULL);
    demand(zmq_msg_send(&message, socket, 0) >= 0, "zmq_msg_send");
}

static void receive(void *socket, zmq_msg_t *message) {
    demand(zmq_msg_recv(message, socket, 0) >= 0, "zmq_msg_recv");
}

static void wait_for_message(void *socket) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    receive(socket, &message);
    zmq_msg_close(&message);
}

// MARK: Round trip

/// Sends back each message, with the parts before it that say whose it is.
static void echo(void *socket, int limit) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    for (int done = 0; limit == 0 || done < limit;) {
        receive(socket, &message);
        bool has_more = zmq_msg_more(&message);
        demand(zmq_msg_send(&message, socket, has_more ? ZMQ_SNDMORE : 0) >= 0, "zmq_msg_send");
        if (!has_more) done += 1;
    }
}

static void ask(void) {
    void *socket = new_socket(ZMQ_PAIR);
    connect_to_server(socket);
    struct benchmark_trips trips;
    benchmark_trips_begin(&trips, &options);
    zmq_msg_t message;
    zmq_msg_init(&message);
    do {
        post(socket, benchmark_trips_next(&trips), options.size);
        receive(socket, &message);
    } while (benchmark_trips_returned(&trips, zmq_msg_data(&message), zmq_msg_size(&message)));
    benchmark_trips_report(&trips);
}

// MARK: Stream and broadcast

static void send_all(void *socket) {
    struct benchmark_supply supply;
    benchmark_supply_begin(&supply, &options);
    const uint8_t *payload;
    while ((payload = benchmark_supply_next(&supply)) != NULL) post(socket, payload, options.size);
    wait_for_message(socket);
    benchmark_supply_report(&supply);
}

typedef bool receiver(struct benchmark_receipt *, struct benchmark_tally *, const uint8_t *, size_t);

static void receive_all(void *socket, int peers, receiver *is_last) {
    struct benchmark_tally tally = {.peers = peers};
    struct benchmark_receipt receipt = {.size = options.size};
    zmq_msg_t message;
    zmq_msg_init(&message);
    do receive(socket, &message);
    while (!is_last(&receipt, &tally, zmq_msg_data(&message), zmq_msg_size(&message)));
    benchmark_tally_report(&tally);
}

static void publish(void *socket) {
    for (int index = 0; index < options.peers; index++) wait_for_message(socket);
    send_all(socket);
}

/// Uses one XSUB socket for all connections: separate sockets would have to be polled, which is slower.
static void subscribe(void) {
    void *socket = new_socket(ZMQ_XSUB);
    for (int index = 0; index < options.peers; index++) connect_to_server(socket);
    demand(zmq_send(socket, "\1", 1, 0) == 1, "zmq_send");
    receive_all(socket, options.peers, benchmark_receive_mixed);
    // A message that is no subscription passes to the publisher unchanged.
    demand(zmq_send(socket, "\2", 1, 0) == 1, "zmq_send");
    zmq_close(socket);
    zmq_ctx_term(context);
}

// MARK: Connections

static void greet(void *socket, const uint8_t *payload) {
    connect_to_server(socket);
    post(socket, payload, options.size);
    wait_for_message(socket);
}

static intptr_t connect_once(const uint8_t *payload) {
    void *socket = new_socket(ZMQ_DEALER);
    greet(socket, payload);
    return (intptr_t)socket;
}

static void leave(intptr_t socket) { zmq_close((void *)socket); }

static void keep_idle(void) {
    uint64_t before = benchmark_resident();
    const uint8_t *payload = benchmark_payload(options.size, 0);
    if (options.serves) {
        void *socket = listening(ZMQ_ROUTER);
        say_port(socket);
        echo(socket, options.peers);
    } else {
        for (int index = 0; index < options.peers; index++) greet(new_socket(ZMQ_DEALER), payload);
    }
    benchmark_report_resident(before, options.peers);
}

static void serve(void) {
    if (options.work == BENCHMARK_IDLE) return keep_idle();
    static const int kinds[] = {
        [BENCHMARK_ROUND_TRIP] = ZMQ_PAIR,
        [BENCHMARK_STREAM] = ZMQ_PAIR,
        [BENCHMARK_BROADCAST] = ZMQ_XPUB,
        [BENCHMARK_CONNECT] = ZMQ_ROUTER,
    };
    void *socket = listening(kinds[options.work]);
    say_port(socket);
    switch (options.work) {
    case BENCHMARK_STREAM:
        receive_all(socket, 1, benchmark_receive);
        post(socket, benchmark_payload(options.size, 0), options.size);
        return;
    case BENCHMARK_BROADCAST: return publish(socket);
    default: return echo(socket, 0);
    }
}

int main(int argument_count, char **arguments) {
    options = benchmark_begin(argument_count, arguments);
    if (strcmp(options.way, "curve") == 0) choose_key();
    context = zmq_ctx_new();
    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, 4096);
    if (options.serves) {
        serve();
        benchmark_wait_for_other_side();
    } else {
        switch (options.work) {
        case BENCHMARK_ROUND_TRIP: ask(); break;
        case BENCHMARK_STREAM: {
            void *socket = new_socket(ZMQ_PAIR);
            connect_to_server(socket);
            send_all(socket);
            break;
        }
        case BENCHMARK_BROADCAST: subscribe(); break;
        case BENCHMARK_CONNECT: benchmark_connect_often(&options, connect_once, leave); break;
        case BENCHMARK_IDLE: keep_idle(); break;
        case BENCHMARK_FOUND: benchmark_unsupported("it has no discovery");
        case BENCHMARK_CALLS_AT_ONCE: benchmark_unsupported("it has no calls");
        }
    }
    return 0;
}
