// Blocking sockets and a length prefix, with small messages copied together before they are written: the limit of what
// is possible, in plaintext and under TLS. The including file defines the sockets, how bytes pass over a connection,
// and `LARGEST_COPIED`.

#pragma once

#include "framing.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static struct benchmark_options options;

struct connection {
    int descriptor;
    /// For the including file.
    void *channel;
};

/// Begins to listen, and reports where.
static int listening(void);
/// Waits for a caller.
static int accept_descriptor(int listener);
/// Connects to the server.
static int connect_descriptor(void);
/// Prepares a new connection.
static void connection_begin(struct connection *connection, bool is_server);
static void connection_end(struct connection *connection);
/// Writes all bytes.
static void write_all(struct connection *connection, const uint8_t *bytes, size_t count);
/// Writes messages that are too large to copy together.
static void write_frames(struct connection *connection, const struct iovec *frames, int count);
/// Reads at least one byte, or none at the end.
static size_t read_some(struct connection *connection, uint8_t *room, size_t size);
/// Returns whether bytes may wait that the socket no longer reports.
static bool has_more(const struct connection *connection);

static void demand(bool is_good, const char *what) {
    if (!is_good) benchmark_fail(what, strerror(errno));
}

// MARK: Connections

static struct connection accepted(int listener) {
    struct connection connection = {.descriptor = accept_descriptor(listener)};
    connection_begin(&connection, true);
    return connection;
}

static struct connection connected(void) {
    struct connection connection = {.descriptor = connect_descriptor()};
    connection_begin(&connection, false);
    return connection;
}

/// Reads one message, and nothing after it. Returns null if the connection has ended.
static const uint8_t *one_message(struct connection *connection, uint8_t *room, size_t size) {
    size_t count = BENCHMARK_LENGTH_PREFIX + size, held = 0;
    while (held < count) {
        size_t got = read_some(connection, room + held, count - held);
        if (got == 0 && held == 0) return NULL;
        if (got == 0) benchmark_fail("a connection", "ended within a message");
        held += got;
    }
    uint32_t length;
    memcpy(&length, room, BENCHMARK_LENGTH_PREFIX);
    if (length != size) benchmark_fail("a length prefix", "is out of range");
    return room + BENCHMARK_LENGTH_PREFIX;
}

// MARK: Round trip

static void echo(struct connection *connection, uint8_t *room) {
    while (one_message(connection, room, options.size) != NULL)
        write_all(connection, room, BENCHMARK_LENGTH_PREFIX + options.size);
}

static void ask(void) {
    uint8_t *room = allocated(BENCHMARK_LENGTH_PREFIX + options.size);
    struct connection connection = connected();
    struct benchmark_trips trips;
    benchmark_trips_begin(&trips, &options);
    const uint8_t *answer;
    do {
        const uint8_t *payload = benchmark_trips_next(&trips);
        write_all(&connection, payload - BENCHMARK_LENGTH_PREFIX, BENCHMARK_LENGTH_PREFIX + options.size);
        answer = one_message(&connection, room, options.size);
        if (answer == NULL) benchmark_fail("a connection", "ended");
    } while (benchmark_trips_returned(&trips, answer, options.size));
    benchmark_trips_report(&trips);
}

// MARK: Stream and broadcast

struct receiving {
    struct incoming incoming;
    struct benchmark_receipt receipt;
    bool is_last;
};

static struct benchmark_tally tally;

static void take(void *context, const uint8_t *bytes, size_t length) {
    struct receiving *receiving = context;
    if (benchmark_receive(&receiving->receipt, &tally, bytes, length)) receiving->is_last = true;
}

static void receiving_begin(struct receiving *receiving) {
    *receiving = (struct receiving){.incoming = {.largest = options.size}, .receipt = {.size = options.size}};
}

/// Returns false if it was the last message of all connections.
static bool receive_some(struct receiving *receiving, struct connection *connection) {
    do {
        size_t room;
        uint8_t *place = incoming_room(&receiving->incoming, &room);
        size_t got = read_some(connection, place, room);
        if (got == 0) benchmark_fail("a connection", "ended");
        incoming_read(&receiving->incoming, got, take, receiving);
    } while (has_more(connection));
    return !receiving->is_last;
}

/// Sends all messages to each of `connections`, and returns when the last connection has answered.
static void send_all(struct connection *connections, int count) {
    struct benchmark_supply supply;
    benchmark_supply_begin(&supply, &options);
    size_t framed = BENCHMARK_LENGTH_PREFIX + options.size;
    bool is_small = options.size <= LARGEST_COPIED;
    uint8_t *gathered = allocated(GATHERED);
    const uint8_t *payload = NULL;
    do {
        struct iovec pieces[MOST_REFERENCED];
        int piece_count = 0;
        size_t used = 0;
        while ((used == 0 || used + framed <= GATHERED) && piece_count < MOST_REFERENCED &&
               (payload = benchmark_supply_next(&supply)) != NULL) {
            uint8_t *frame = (uint8_t *)payload - BENCHMARK_LENGTH_PREFIX;
            if (is_small) memcpy(gathered + used, frame, framed);
            else pieces[piece_count++] = (struct iovec){.iov_base = frame, .iov_len = framed};
            used += framed;
        }
        for (int index = 0; index < count; index++) {
            if (is_small) write_all(&connections[index], gathered, used);
            else write_frames(&connections[index], pieces, piece_count);
        }
    } while (payload != NULL);
    uint8_t answer;
    if (read_some(&connections[count - 1], &answer, 1) != 1) benchmark_fail("a connection", "ended");
    benchmark_supply_report(&supply);
}

static void receive_stream(int listener) {
    struct connection connection = accepted(listener);
    tally.peers = 1;
    struct receiving receiving;
    receiving_begin(&receiving);
    while (receive_some(&receiving, &connection)) {}
    benchmark_tally_report(&tally);
    write_all(&connection, (const uint8_t *)"", 1);
}

static void publish(int listener) {
    struct connection *connections = allocated((size_t)options.peers * sizeof *connections);
    for (int index = 0; index < options.peers; index++) connections[index] = accepted(listener);
    send_all(connections, options.peers);
}

static void subscribe(void) {
    int set = epoll_create1(EPOLL_CLOEXEC);
    tally.peers = options.peers;
    struct subscriber {
        struct receiving receiving;
        struct connection connection;
    } *subscribers = calloc((size_t)options.peers, sizeof *subscribers);
    for (int index = 0; index < options.peers; index++) {
        receiving_begin(&subscribers[index].receiving);
        subscribers[index].connection = connected();
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &subscribers[index]};
        demand(epoll_ctl(set, EPOLL_CTL_ADD, subscribers[index].connection.descriptor, &event) == 0, "epoll_ctl");
    }
    for (bool goes_on = true; goes_on;) {
        struct epoll_event events[256];
        int count = epoll_wait(set, events, 256, -1);
        for (int index = 0; index < count && goes_on; index++) {
            struct subscriber *subscriber = events[index].data.ptr;
            goes_on = receive_some(&subscriber->receiving, &subscriber->connection);
        }
    }
    benchmark_tally_report(&tally);
    write_all(&subscribers[options.peers - 1].connection, (const uint8_t *)"", 1);
}

// MARK: Connections

static intptr_t connect_once(const uint8_t *payload) {
    static uint8_t *room;
    if (room == NULL) room = allocated(BENCHMARK_LENGTH_PREFIX + options.size);
    struct connection *connection = allocated(sizeof *connection);
    *connection = connected();
    write_all(connection, payload - BENCHMARK_LENGTH_PREFIX, BENCHMARK_LENGTH_PREFIX + options.size);
    if (one_message(connection, room, options.size) == NULL) benchmark_fail("a connection", "ended");
    return (intptr_t)connection;
}

static void leave(intptr_t connection) {
    connection_end((struct connection *)connection);
    free((struct connection *)connection);
}

/// Connects or accepts all peers, sends one message there and back on each, and reports their memory.
static void keep_idle(int listener) {
    uint8_t *room = allocated(BENCHMARK_LENGTH_PREFIX + options.size);
    uint8_t *payload = benchmark_payload(options.size, 0);
    uint64_t before = benchmark_resident();
    struct connection *connections = allocated((size_t)options.peers * sizeof *connections);
    for (int index = 0; index < options.peers; index++) {
        struct connection *connection = &connections[index];
        *connection = options.serves ? accepted(listener) : connected();
        if (!options.serves)
            write_all(connection, payload - BENCHMARK_LENGTH_PREFIX, BENCHMARK_LENGTH_PREFIX + options.size);
        if (one_message(connection, room, options.size) == NULL) benchmark_fail("a connection", "ended");
        if (options.serves) write_all(connection, room, BENCHMARK_LENGTH_PREFIX + options.size);
    }
    benchmark_report_resident(before, options.peers);
    for (int index = 0; index < options.peers; index++) connection_end(&connections[index]);
}

static void serve(void) {
    int listener = listening();
    switch (options.work) {
    case BENCHMARK_ROUND_TRIP:
    case BENCHMARK_CONNECT: {
        uint8_t *room = allocated(BENCHMARK_LENGTH_PREFIX + options.size);
        while (true) {
            struct connection connection = accepted(listener);
            echo(&connection, room);
            connection_end(&connection);
        }
    }
    case BENCHMARK_STREAM: return receive_stream(listener);
    case BENCHMARK_BROADCAST: return publish(listener);
    case BENCHMARK_IDLE: return keep_idle(listener);
    case BENCHMARK_FOUND: benchmark_unsupported("it has no discovery");
    case BENCHMARK_CALLS_AT_ONCE: benchmark_unsupported("it has no calls");
    }
}

/// Runs the program; called by `main`.
static int work(int argument_count, char **arguments) {
    options = benchmark_begin(argument_count, arguments);
    if (options.serves) {
        serve();
        return 0;
    }
    switch (options.work) {
    case BENCHMARK_ROUND_TRIP: ask(); break;
    case BENCHMARK_STREAM: {
        struct connection connection = connected();
        send_all(&connection, 1);
        break;
    }
    case BENCHMARK_BROADCAST: subscribe(); break;
    case BENCHMARK_CONNECT: benchmark_connect_often(&options, connect_once, leave); break;
    case BENCHMARK_IDLE: keep_idle(-1); break;
    case BENCHMARK_FOUND: benchmark_unsupported("it has no discovery");
    case BENCHMARK_CALLS_AT_ONCE: benchmark_unsupported("it has no calls");
    }
    return 0;
}
