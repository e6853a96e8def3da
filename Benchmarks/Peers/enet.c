// ENet: packets on one channel, reliable ones unless the way says `unreliable`, with the largest packets on the wire that it
// allows, sent without a copy.

#include "benchmark.h"

#include <enet/enet.h>
#include <stdlib.h>
#include <sys/socket.h>

/// The most bytes given to the library, for one peer and for all peers, that may wait for an acknowledgement. By
/// measurement more is not faster: the library goes through everything that waits again and again. With very much of
/// it, that takes so long that peers give up.
enum { BYTES_WAITING = 512 << 10, ALL_BYTES_WAITING = 4 << 20, MOST_WAITING = 2048, SOCKET_ROOM = 16 << 20 };

static struct benchmark_options options;
static bool is_reliable;
static int waiting;

static void demand(bool is_good, const char *what) {
    if (!is_good) benchmark_fail(what, "failed");
}

static ENetAddress loopback(int port) {
    ENetAddress address = {.port = (enet_uint16)port};
    enet_address_set_host_ip(&address, "127.0.0.1");
    return address;
}

static ENetHost *new_host(const ENetAddress *address) {
    // Peers that have left keep their place for a moment.
    size_t peers = (size_t)options.peers + (options.work == BENCHMARK_CONNECT ? 256 : 0);
    ENetHost *host = enet_host_create(address, peers, 1, 0, 0);
    demand(host != NULL, "enet_host_create");
    host->mtu = ENET_PROTOCOL_MAXIMUM_MTU;
    // A socket that serves many peers has to hold what they all send at once. Only root can exceed the system's limit.
    int room = SOCKET_ROOM;
    enet_socket_set_option(host->socket, ENET_SOCKOPT_SNDBUF, room);
    enet_socket_set_option(host->socket, ENET_SOCKOPT_RCVBUF, room);
    setsockopt(host->socket, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    setsockopt(host->socket, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    return host;
}

static ENetHost *listening(void) {
    ENetAddress address = loopback(0);
    ENetHost *host = new_host(&address);
    benchmark_report_port_number(host->address.port);
    return host;
}

static ENetPeer *begin_connecting(ENetHost *host) {
    ENetAddress address = loopback(atoi(options.port));
    ENetPeer *peer = enet_host_connect(host, &address, 1, 0);
    demand(peer != NULL, "enet_host_connect");
    return peer;
}

/// Returns the next event, however long it takes.
static ENetEvent next(ENetHost *host) {
    ENetEvent event;
    int status;
    do status = enet_host_service(host, &event, 1000);
    while (status == 0);
    demand(status > 0, "enet_host_service");
    return event;
}

static ENetEvent expect(ENetHost *host, ENetEventType type) {
    ENetEvent event = next(host);
    demand(event.type == type, "a peer");
    return event;
}

static void on_packet_gone(ENetPacket *packet) {
    (void)packet;
    waiting -= 1;
}

static ENetPacket *packet(const uint8_t *bytes) {
    ENetPacket *packet = enet_packet_create(
        bytes, options.size, (is_reliable ? ENET_PACKET_FLAG_RELIABLE : 0) | ENET_PACKET_FLAG_NO_ALLOCATE);
    demand(packet != NULL, "enet_packet_create");
    packet->freeCallback = on_packet_gone;
    waiting += 1;
    return packet;
}

static void post(ENetHost *host, ENetPeer *peer, const uint8_t *bytes) {
    demand(enet_peer_send(peer, 0, packet(bytes)) == 0, "enet_peer_send");
    enet_host_flush(host);
}

static ENetPeer *connected(ENetHost *host) {
    begin_connecting(host);
    return expect(host, ENET_EVENT_TYPE_CONNECT).peer;
}

/// Sends back each packet, forever or until `limit` have come.
static void echo(ENetHost *host, int limit) {
    for (int done = 0; limit == 0 || done < limit;) {
        ENetEvent event = next(host);
        if (event.type != ENET_EVENT_TYPE_RECEIVE) continue;
        demand(enet_peer_send(event.peer, 0, event.packet) == 0, "enet_peer_send");
        enet_host_flush(host);
        done += 1;
    }
}

/// Keeps acknowledging until the other side has left.
static void linger(ENetHost *host) {
    while (next(host).type != ENET_EVENT_TYPE_DISCONNECT) {}
}

static void leave(ENetPeer *peer) { enet_peer_disconnect_now(peer, 0); }

static void ask(void) {
    ENetHost *host = new_host(NULL);
    ENetPeer *peer = connected(host);
    struct benchmark_trips trips;
    benchmark_trips_begin(&trips, &options);
    for (bool goes_on = true; goes_on;) {
        post(host, peer, benchmark_trips_next(&trips));
        ENetEvent event = expect(host, ENET_EVENT_TYPE_RECEIVE);
        goes_on = benchmark_trips_returned(&trips, event.packet->data, event.packet->dataLength);
        enet_packet_destroy(event.packet);
    }
    benchmark_trips_report(&trips);
    leave(peer);
}

// MARK: Stream and broadcast

static void send_all(ENetHost *host) {
    struct benchmark_supply supply;
    benchmark_supply_begin(&supply, &options);
    size_t room = ALL_BYTES_WAITING / (size_t)options.peers;
    int most = (int)((room < BYTES_WAITING ? room : BYTES_WAITING) / options.size);
    if (most > MOST_WAITING) most = MOST_WAITING;
    if (most < 2) most = 2;
    while (true) {
        while (waiting < most) {
            const uint8_t *payload = benchmark_supply_next(&supply);
            if (payload == NULL) break;
            enet_host_broadcast(host, 0, packet(payload));
        }
        ENetEvent event;
        int status = enet_host_service(host, &event, 1);
        demand(status >= 0, "enet_host_service");
        if (status > 0 && event.type == ENET_EVENT_TYPE_RECEIVE) break;
        demand(status == 0, "a peer");
    }
    benchmark_supply_report(&supply);
}

static void receive_all(ENetHost *host) {
    struct benchmark_tally tally = {.peers = options.work == BENCHMARK_BROADCAST ? options.peers : 1};
    struct benchmark_receipt *receipts = calloc((size_t)options.peers, sizeof *receipts);
    for (int index = 0; index < options.peers; index++) receipts[index].size = options.size;
    while (true) {
        ENetEvent event = next(host);
        if (event.type == ENET_EVENT_TYPE_CONNECT) continue;
        demand(event.type == ENET_EVENT_TYPE_RECEIVE, "a peer");
        struct benchmark_receipt *receipt = &receipts[event.peer - host->peers];
        bool is_last = benchmark_receive(receipt, &tally, event.packet->data, event.packet->dataLength);
        enet_packet_destroy(event.packet);
        if (!is_last) continue;
        benchmark_tally_report(&tally);
        post(host, event.peer, benchmark_payload(options.size, 0));
        return;
    }
}

static void publish(void) {
    ENetHost *host = listening();
    for (int index = 0; index < options.peers; index++) expect(host, ENET_EVENT_TYPE_CONNECT);
    send_all(host);
    for (int index = 0; index < options.peers; index++) leave(&host->peers[index]);
}

/// Connects all peers of one host, one after the other: all at once would overrun the socket.
static void subscribe(void) {
    ENetHost *host = new_host(NULL);
    for (int index = 0; index < options.peers; index++) connected(host);
    receive_all(host);
    linger(host);
}

// MARK: Connections

static ENetHost *connecting_host;

static intptr_t connect_once(const uint8_t *payload) {
    ENetPeer *peer = connected(connecting_host);
    post(connecting_host, peer, payload);
    enet_packet_destroy(expect(connecting_host, ENET_EVENT_TYPE_RECEIVE).packet);
    return (intptr_t)peer;
}

static void leave_once(intptr_t peer) { leave((ENetPeer *)peer); }

static void connect_often(void) {
    connecting_host = new_host(NULL);
    benchmark_connect_often(&options, connect_once, leave_once);
}

static void keep_idle(void) {
    uint64_t before = benchmark_resident();
    const uint8_t *payload = benchmark_payload(options.size, 0);
    ENetHost *host = options.serves ? listening() : new_host(NULL);
    if (options.serves) {
        echo(host, options.peers);
    } else {
        for (int index = 0; index < options.peers; index++) {
            post(host, connected(host), payload);
            enet_packet_destroy(expect(host, ENET_EVENT_TYPE_RECEIVE).packet);
        }
    }
    benchmark_report_resident(before, options.peers);
    if (options.serves) linger(host);
    else leave(&host->peers[0]);
}

static void serve(void) {
    switch (options.work) {
    case BENCHMARK_IDLE: return keep_idle();
    case BENCHMARK_FOUND: benchmark_unsupported("it has no discovery");
    case BENCHMARK_CALLS_AT_ONCE: benchmark_unsupported("it has no calls");
    case BENCHMARK_BROADCAST: return publish();
    case BENCHMARK_STREAM: {
        ENetHost *host = listening();
        receive_all(host);
        return linger(host);
    }
    default: echo(listening(), 0);
    }
}

int main(int argument_count, char **arguments) {
    options = benchmark_begin(argument_count, arguments);
    is_reliable = strcmp(options.way, "unreliable") != 0;
    demand(enet_initialize() == 0, "enet_initialize");
    if (options.serves) {
        serve();
        return 0;
    }
    switch (options.work) {
    case BENCHMARK_ROUND_TRIP: ask(); break;
    case BENCHMARK_STREAM: {
        ENetHost *host = new_host(NULL);
        ENetPeer *peer = connected(host);
        send_all(host);
        leave(peer);
        break;
    }
    case BENCHMARK_BROADCAST: subscribe(); break;
    case BENCHMARK_CONNECT: connect_often(); break;
    case BENCHMARK_IDLE: keep_idle(); break;
    case BENCHMARK_FOUND: benchmark_unsupported("it has no discovery");
    case BENCHMARK_CALLS_AT_ONCE: benchmark_unsupported("it has no calls");
    }
    return 0;
}
