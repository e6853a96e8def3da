// What every measured program shares, so that all do the same work: the command line, the clocks, the payloads, the checks of what
// arrives, and how results are told. Used by the peers in C and by the one in Swift.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum benchmark_work {
    BENCHMARK_ROUND_TRIP,
    BENCHMARK_STREAM,
    BENCHMARK_BROADCAST,
    BENCHMARK_CONNECT,
    BENCHMARK_IDLE,
    BENCHMARK_FOUND,
};

/// What the command line asks for: `serve|connect WORK --size N --seconds S --warm-up S --peers N --count N --port TEXT --way TEXT`.
struct benchmark_options {
    bool serves;
    enum benchmark_work work;
    size_t size;
    double seconds;
    double warm_up;
    int peers;
    int count;
    /// Where the server listens, in the server's own words; more than one number where it needs more than one.
    const char *port;
    /// Which of several ways a program has of doing the work.
    const char *way;
};

/// Reads the command line, and has the kernel end this process when its parent ends.
struct benchmark_options benchmark_begin(int argument_count, char *const *arguments);

/// Tells the driver one result: a line of a name and a number.
void benchmark_say(const char *name, uint64_t value);
/// Tells the driver where the server listens.
void benchmark_say_port(const char *port);
void benchmark_say_port_number(int port);
/// Returns when the driver has seen the other side end: until then the last word may still be under way.
void benchmark_wait_for_other_side(void);
/// Says why this cannot go on, and ends with status 1.
_Noreturn void benchmark_fail(const char *what, const char *why);
/// Says that the library has no way of doing this work, and ends with status 3.
_Noreturn void benchmark_lacks(const char *what);

/// Nanoseconds of the monotonic clock.
uint64_t benchmark_now(void);
/// Nanoseconds that all threads of this process have computed.
uint64_t benchmark_processor(void);
/// Bytes of this process that are in memory.
uint64_t benchmark_resident(void);
/// Tells what each of so many idle peers takes, half a second after they fell silent: by then all is acknowledged.
void benchmark_say_resident(uint64_t before, int peers);
/// A TCP port that was free a moment ago, for libraries that cannot say which one they were given.
int benchmark_free_port(void);

// MARK: Payloads

// Message n begins with the number n modulo 4, eight bytes wide, and ends with it, one byte wide. So a receiver notices
// what is lost, doubled, swapped or cut short, and yet a message can be sent without a copy while others are under way.
// Two further messages mark the end of the warm-up and the end of all; they also say how many were sent before them.
enum { BENCHMARK_PAYLOADS = 4, BENCHMARK_LENGTH_PREFIX = 4, BENCHMARK_SMALLEST = 16 };
static const uint64_t benchmark_mark_begin = UINT64_MAX - 1;
static const uint64_t benchmark_mark_end = UINT64_MAX;

/// What a sender sends, one message after the other, for as long as the command line says.
struct benchmark_supply {
    size_t size;
    uint64_t sent;
    /// Messages until the clock is looked at again.
    uint64_t until_look;
    uint64_t look_after;
    uint64_t begins_at;
    uint64_t ends_at;
    uint64_t processor_at_begin;
    bool has_begun;
    bool has_ended;
    uint8_t *payloads[BENCHMARK_PAYLOADS];
    uint8_t *begin;
    uint8_t *end;
};

/// A payload that lies behind a length prefix of four bytes, least significant first, for those who frame by themselves.
uint8_t *benchmark_payload(size_t size, uint64_t number);
void benchmark_supply_begin(struct benchmark_supply *supply, const struct benchmark_options *options);
/// Not to be called from outside.
const uint8_t *benchmark_supply_look(struct benchmark_supply *supply);
/// Tells what the sender has computed since the warm-up; to be called when the receiver has answered the end.
void benchmark_supply_report(const struct benchmark_supply *supply);

/// The next message, `size` bytes that stay where and what they are; null after the last one.
static inline const uint8_t *benchmark_supply_next(struct benchmark_supply *supply) {
    if (__builtin_expect(supply->until_look == 0, 0)) {
        const uint8_t *mark = benchmark_supply_look(supply);
        if (mark != NULL || supply->has_ended) return mark;
    }
    supply->until_look -= 1;
    return supply->payloads[supply->sent++ % BENCHMARK_PAYLOADS];
}

/// What a receiver has received on one connection.
struct benchmark_receipt {
    size_t size;
    uint64_t received;
    uint64_t received_at_begin;
    bool has_begun;
    bool has_ended;
};

/// What a receiver has received on all connections.
struct benchmark_tally {
    int peers;
    int begun;
    int ended;
    uint64_t begun_at;
    uint64_t processor_at_begin;
    uint64_t messages;
};

/// Not to be called from outside.
bool benchmark_receive_mark(
    struct benchmark_receipt *receipt, struct benchmark_tally *tally, const uint8_t *bytes, size_t length);
/// Tells what arrived since the warm-up, and in what time.
void benchmark_tally_report(const struct benchmark_tally *tally);

static inline uint64_t benchmark_number(const uint8_t *bytes) {
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

/// Checks a message and counts it; true when it was the last one of all connections.
static inline bool benchmark_receive(
    struct benchmark_receipt *receipt, struct benchmark_tally *tally, const uint8_t *bytes, size_t length) {
    uint64_t expected = receipt->received % BENCHMARK_PAYLOADS;
    if (__builtin_expect(
            length == receipt->size && benchmark_number(bytes) == expected && bytes[length - 1] == (uint8_t)expected,
            1)) {
        receipt->received += 1;
        return false;
    }
    return benchmark_receive_mark(receipt, tally, bytes, length);
}

/// For a socket that mixes the messages of several connections: counts what cannot be told apart, checks sizes and ends.
bool benchmark_receive_mixed(
    struct benchmark_receipt *receipt, struct benchmark_tally *tally, const uint8_t *bytes, size_t length);

// MARK: Round trips

/// The times of round trips, or of connections made.
struct benchmark_trips {
    size_t size;
    uint64_t count;
    uint64_t last;
    uint64_t begins_at;
    uint64_t ends_at;
    uint32_t *samples;
    uint64_t sample_count;
    uint8_t *payloads[BENCHMARK_PAYLOADS];
};

void benchmark_trips_begin(struct benchmark_trips *trips, const struct benchmark_options *options);
/// Takes a time that was measured by the caller.
void benchmark_trips_add(struct benchmark_trips *trips, uint64_t nanoseconds);
/// Tells p50, p99, p99.9 and the number of trips.
void benchmark_trips_report(struct benchmark_trips *trips);

/// Connects as often as the command line says, and tells how long that took. `connect` makes a connection and has `payload` go there
/// and back on it; `leave` ends what that returned, which is not timed.
void benchmark_connect_often(
    const struct benchmark_options *options, intptr_t (*connect)(const uint8_t *payload), void (*leave)(intptr_t));

/// The next message to be sent; its time runs from the answer before.
static inline const uint8_t *benchmark_trips_next(const struct benchmark_trips *trips) {
    return trips->payloads[trips->count % BENCHMARK_PAYLOADS];
}

/// Checks an answer; false when there were enough.
bool benchmark_trips_returned(struct benchmark_trips *trips, const uint8_t *bytes, size_t length);
