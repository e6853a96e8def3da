// NATS: publish and subscribe of libnats through a server, in plaintext or with TLS to the server.
//
// Neither libnats nor the server holds up a sender whose receiver is slower: beyond their limits they drop messages, or
// the connection. So the receiver acknowledges each half of a window of 4 MiB by an empty message, and the sender has
// at most a window of messages under way. Both are messages of the same library, and such an acknowledgement costs as
// little as one message in thousands of small ones, or in 32 of 64 KiB.
//
// libnats gets the messages on a thread of its own, and hands them over to the thread of this program that asks for
// the next one. A handler would be called on a third thread of the library, which is the same way.

#include "benchmark.h"

#include <nats/nats.h>
#include <stdio.h>

enum { BYTES_WAITING = 4 << 20, MOST_WAITING = 16384, TIMEOUT = 30000 };

static struct benchmark_options options;
static natsConnection *connection;
static natsSubscription *incoming;
/// The subjects under which this side receives and sends.
static const char *own, *other;

static void demand(natsStatus status, const char *what) {
    if (status != NATS_OK) benchmark_fail(what, natsStatus_GetText(status));
}

/// Connects to the server, and subscribes.
static void begin(void) {
    natsOptions *settings;
    demand(natsOptions_Create(&settings), "natsOptions_Create");
    demand(natsOptions_SetURL(settings, options.broker), "natsOptions_SetURL");
    demand(natsOptions_SetAllowReconnect(settings, false), "natsOptions_SetAllowReconnect");
    // A round trip leaves at once. A stream waits for more to write at once, as libnats does by default.
    demand(natsOptions_SetSendAsap(settings, options.work == BENCHMARK_ROUND_TRIP), "natsOptions_SetSendAsap");
    demand(natsOptions_SetIOBufSize(settings, 256 << 10), "natsOptions_SetIOBufSize");
    if (*options.authorities != 0) {
        demand(natsOptions_SetSecure(settings, true), "natsOptions_SetSecure");
        demand(natsOptions_LoadCATrustedCertificates(settings, options.authorities), options.authorities);
    }
    demand(natsConnection_Connect(&connection, settings), "natsConnection_Connect");
    natsOptions_Destroy(settings);
    own = options.serves ? "bench.server" : "bench.client";
    other = options.serves ? "bench.client" : "bench.server";
    demand(natsConnection_SubscribeSync(&incoming, connection, own), "natsConnection_SubscribeSync");
    demand(natsSubscription_SetPendingLimits(incoming, -1, -1), "natsSubscription_SetPendingLimits");
    // From here on nothing that is sent to this side is lost.
    demand(natsConnection_Flush(connection), "natsConnection_Flush");
}

/// Returns how many messages may be under way.
static uint64_t window(void) {
    uint64_t messages = BYTES_WAITING / options.size;
    return messages > MOST_WAITING ? MOST_WAITING : messages < 8 ? 8 : messages;
}

static void post(const uint8_t *bytes, size_t length) {
    demand(natsConnection_Publish(connection, other, bytes, (int)length), "natsConnection_Publish");
}

static natsMsg *received(void) {
    natsMsg *message;
    demand(natsSubscription_NextMsg(&message, incoming, TIMEOUT), "natsSubscription_NextMsg");
    return message;
}

static const uint8_t *bytes_of(natsMsg *message) { return (const uint8_t *)natsMsg_GetData(message); }

static size_t length_of(natsMsg *message) { return (size_t)natsMsg_GetDataLength(message); }

static void wait_for_message(void) { natsMsg_Destroy(received()); }

__attribute__((noreturn)) static void echo(void) {
    for (;;) {
        natsMsg *message;
        natsStatus status = natsSubscription_NextMsg(&message, incoming, TIMEOUT);
        if (status == NATS_TIMEOUT) continue;
        demand(status, "natsSubscription_NextMsg");
        post(bytes_of(message), length_of(message));
        natsMsg_Destroy(message);
    }
}

static void ask(void) {
    struct benchmark_trips trips;
    benchmark_trips_begin(&trips, &options);
    for (bool goes_on = true; goes_on;) {
        post(benchmark_trips_next(&trips), options.size);
        natsMsg *message = received();
        goes_on = benchmark_trips_returned(&trips, bytes_of(message), length_of(message));
        natsMsg_Destroy(message);
    }
    benchmark_trips_report(&trips);
}

static void send_stream(void) {
    struct benchmark_supply supply;
    benchmark_supply_begin(&supply, &options);
    const uint8_t *payload;
    uint64_t sent = 0, acknowledged = 0;
    while ((payload = benchmark_supply_next(&supply)) != NULL) {
        while (sent - acknowledged >= window()) {
            wait_for_message();
            acknowledged += window() / 2;
        }
        post(payload, options.size);
        sent += 1;
    }
    // The last message is the only one with content.
    for (size_t length = 0; length == 0;) {
        natsMsg *message = received();
        length = length_of(message);
        natsMsg_Destroy(message);
    }
    benchmark_supply_report(&supply);
}

static void receive_stream(void) {
    struct benchmark_tally tally = {.peers = 1};
    struct benchmark_receipt receipt = {.size = options.size};
    uint64_t count = 0;
    for (bool goes_on = true; goes_on;) {
        natsMsg *message = received();
        goes_on = !benchmark_receive(&receipt, &tally, bytes_of(message), length_of(message));
        natsMsg_Destroy(message);
        if (++count % (window() / 2) == 0) post((const uint8_t *)"", 0);
    }
    benchmark_tally_report(&tally);
    post((const uint8_t *)"", 1);
    demand(natsConnection_Flush(connection), "natsConnection_Flush");
}

int main(int argument_count, char **arguments) {
    options = benchmark_begin(argument_count, arguments);
    if (options.work != BENCHMARK_ROUND_TRIP && options.work != BENCHMARK_STREAM)
        benchmark_unsupported("this program does round trips and streams only");
    begin();
    if (!options.serves) {
        options.work == BENCHMARK_STREAM ? send_stream() : ask();
        return 0;
    }
    benchmark_report_port(own);
    if (options.work == BENCHMARK_ROUND_TRIP) echo();
    receive_stream();
    benchmark_wait_for_other_side();
    return 0;
}
