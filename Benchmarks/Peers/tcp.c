// The limit: blocking sockets and a length prefix, small messages copied together before they are written.

#include "framing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static struct benchmark_options options;

static void demand(bool is_good, const char *what) {
    if (!is_good) benchmark_fail(what, strerror(errno));
}

// MARK: Sockets

static struct sockaddr_in loopback(int port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static int listening(void) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    demand(bind(listener, (struct sockaddr *)&address, length) == 0, "bind");
    demand(listen(listener, 4096) == 0, "listen");
    demand(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    benchmark_say_port_number(ntohs(address.sin_port));
    return listener;
}

static int without_delay(int descriptor) {
    int yes = 1;
    demand(setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0, "TCP_NODELAY");
    return descriptor;
}

static int accepted(int listener) {
    int descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    demand(descriptor >= 0, "accept");
    return without_delay(descriptor);
}

static int connected(void) {
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(atoi(options.port));
    demand(connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    return without_delay(descriptor);
}

static void write_all(int descriptor, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = write(descriptor, bytes, count);
        demand(written > 0, "write");
        bytes += written;
        count -= (size_t)written;
    }
}

static void write_pieces(int descriptor, const struct iovec *given, int count) {
    struct iovec pieces[MOST_REFERENCED];
    memcpy(pieces, given, (size_t)count * sizeof *pieces);
    struct iovec *first = pieces;
    while (count > 0) {
        ssize_t written = writev(descriptor, first, count);
        demand(written > 0, "writev");
        for (; count > 0 && (size_t)written >= first->iov_len; first++, count--) written -= (ssize_t)first->iov_len;
        if (count == 0) return;
        first->iov_base = (uint8_t *)first->iov_base + written;
        first->iov_len -= (size_t)written;
    }
}

/// Reads one message, with nothing behind it; null when the connection has ended.
static const uint8_t *one_message(int descriptor, uint8_t *room, size_t size) {
    size_t count = BENCHMARK_LENGTH_PREFIX + size, held = 0;
    while (held < count) {
        ssize_t got = read(descriptor, room + held, count - held);
        if (got <= 0 && held == 0) return NULL;
        demand(got > 0, "read");
        held += (size_t)got;
    }
    uint32_t length;
    memcpy(&length, room, BENCHMARK_LENGTH_PREFIX);
    if (length != size) benchmark_fail("a length prefix", "is out of range");
    return room + BENCHMARK_LENGTH_PREFIX;
}

// MARK: Round trip

static void echo(int descriptor, uint8_t *room) {
    while (one_message(descriptor, room, options.size) != NULL)
        write_all(descriptor, room, BENCHMARK_LENGTH_PREFIX + options.size);
}

static void ask(void) {
    uint8_t *room = allocated(BENCHMARK_LENGTH_PREFIX + options.size);
    int descriptor = connected();
    struct benchmark_trips trips;
    benchmark_trips_begin(&trips, &options);
    const uint8_t *answer;
    do {
        const uint8_t *payload = benchmark_trips_next(&trips);
        write_all(descriptor, payload - BENCHMARK_LENGTH_PREFIX, BENCHMARK_LENGTH_PREFIX + options.size);
        answer = one_message(descriptor, room, options.size);
        demand(answer != NULL, "read");
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

/// False when it was the last message of all connections.
static bool receive_some(struct receiving *receiving, int descriptor) {
    size_t room;
    uint8_t *place = incoming_room(&receiving->incoming, &room);
    ssize_t got = read(descriptor, place, room);
    demand(got > 0, "read");
    incoming_read(&receiving->incoming, (size_t)got, take, receiving);
    return !receiving->is_last;
}

/// Sends all there is to each of `descriptors`, and returns when the last has answered.
static void send_all(const int *descriptors, int count) {
    struct benchmark_supply supply;
    benchmark_supply_begin(&supply, &options);
    size_t framed = BENCHMARK_LENGTH_PREFIX + options.size;
    bool is_small = options.size <= SMALL_MESSAGE;
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
            if (is_small) write_all(descriptors[index], gathered, used);
            else write_pieces(descriptors[index], pieces, piece_count);
        }
    } while (payload != NULL);
    uint8_t answer;
    demand(read(descriptors[count - 1], &answer, 1) == 1, "read");
    benchmark_supply_report(&supply);
}

static void receive_stream(int listener) {
    int descriptor = accepted(listener);
    tally.peers = 1;
    struct receiving receiving;
    receiving_begin(&receiving);
    while (receive_some(&receiving, descriptor)) {}
    benchmark_tally_report(&tally);
    write_all(descriptor, (const uint8_t *)"", 1);
}

static void publish(int listener) {
    int *descriptors = allocated((size_t)options.peers * sizeof *descriptors);
    for (int index = 0; index < options.peers; index++) descriptors[index] = accepted(listener);
    send_all(descriptors, options.peers);
}

static void subscribe(void) {
    int set = epoll_create1(EPOLL_CLOEXEC), last = -1;
    tally.peers = options.peers;
    struct subscriber {
        struct receiving receiving;
        int descriptor;
    } *subscribers = calloc((size_t)options.peers, sizeof *subscribers);
    for (int index = 0; index < options.peers; index++) {
        receiving_begin(&subscribers[index].receiving);
        last = subscribers[index].descriptor = connected();
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &subscribers[index]};
        demand(epoll_ctl(set, EPOLL_CTL_ADD, last, &event) == 0, "epoll_ctl");
    }
    for (bool goes_on = true; goes_on;) {
        struct epoll_event events[256];
        int count = epoll_wait(set, events, 256, -1);
        for (int index = 0; index < count && goes_on; index++) {
            struct subscriber *subscriber = events[index].data.ptr;
            goes_on = receive_some(&subscriber->receiving, subscriber->descriptor);
        }
    }
    benchmark_tally_report(&tally);
    write_all(last, (const uint8_t *)"", 1);
}

// MARK: Connections

static intptr_t connect_once(const uint8_t *payload) {
    static uint8_t *room;
    if (room == NULL) room = allocated(BENCHMARK_LENGTH_PREFIX + options.size);
    int descriptor = connected();
    write_all(descriptor, payload - BENCHMARK_LENGTH_PREFIX, BENCHMARK_LENGTH_PREFIX + options.size);
    demand(one_message(descriptor, room, options.size) != NULL, "read");
    return descriptor;
}

static void leave(intptr_t descriptor) { close((int)descriptor); }

/// Connects or accepts so many peers, has one message go there and back on each, and says what they take in memory.
static void keep_idle(int listener) {
    uint8_t *room = allocated(BENCHMARK_LENGTH_PREFIX + options.size);
    uint8_t *payload = benchmark_payload(options.size, 0);
    uint64_t before = benchmark_resident();
    int *descriptors = allocated((size_t)options.peers * sizeof *descriptors);
    for (int index = 0; index < options.peers; index++) {
        int descriptor = descriptors[index] = options.serves ? accepted(listener) : connected();
        if (!options.serves)
            write_all(descriptor, payload - BENCHMARK_LENGTH_PREFIX, BENCHMARK_LENGTH_PREFIX + options.size);
        demand(one_message(descriptor, room, options.size) != NULL, "read");
        if (options.serves) write_all(descriptor, room, BENCHMARK_LENGTH_PREFIX + options.size);
    }
    benchmark_say_resident(before, options.peers);
    for (int index = 0; index < options.peers; index++) close(descriptors[index]);
}

static void serve(void) {
    int listener = listening();
    switch (options.work) {
    case BENCHMARK_ROUND_TRIP:
    case BENCHMARK_CONNECT: {
        uint8_t *room = allocated(BENCHMARK_LENGTH_PREFIX + options.size);
        while (true) {
            int descriptor = accepted(listener);
            echo(descriptor, room);
            close(descriptor);
        }
    }
    case BENCHMARK_STREAM: return receive_stream(listener);
    case BENCHMARK_BROADCAST: return publish(listener);
    case BENCHMARK_IDLE: return keep_idle(listener);
    case BENCHMARK_FOUND: benchmark_lacks("it finds nobody");
    }
}

int main(int argument_count, char **arguments) {
    options = benchmark_begin(argument_count, arguments);
    if (options.serves) {
        serve();
        return 0;
    }
    switch (options.work) {
    case BENCHMARK_ROUND_TRIP: ask(); break;
    case BENCHMARK_STREAM: {
        int descriptor = connected();
        send_all(&descriptor, 1);
        break;
    }
    case BENCHMARK_BROADCAST: subscribe(); break;
    case BENCHMARK_CONNECT: benchmark_connect_often(&options, connect_once, leave); break;
    case BENCHMARK_IDLE: keep_idle(-1); break;
    case BENCHMARK_FOUND: benchmark_lacks("it finds nobody");
    }
    return 0;
}
