// The code that all measured programs share, so that they do the same work: the command line, the clocks, the payloads,
// the checks of received messages, and the format of results. Used by the peers in C, C++ and Swift.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum benchmark_work {
    BENCHMARK_ROUND_TRIP,
    BENCHMARK_STREAM,
    BENCHMARK_BROADCAST,
    BENCHMARK_CONNECT,
    BENCHMARK_IDLE,
    BENCHMARK_FOUND,
    BENCHMARK_CALLS_AT_ONCE,
};

/// The command line:
/// `serve|connect WORK --size N --seconds S --warm-up S --peers N --count N --port TEXT --way TEXT --broker URL
/// --authorities FILE`.
struct benchmark_options {
    bool serves;
    enum benchmark_work work;
    size_t size;
    double seconds;
    double warm_up;
    int peers;
    int count;
    /// Where the server listens, in the server's own format; several numbers if it needs several.
    const char *port;
    /// Which of several ways the program uses to do the work.
    const char *way;
    /// The message broker between the two sides; empty without one.
    const char *broker;
    /// The file, in PEM, with the certificate that the broker shows; empty if the way to it is in plaintext.
    const char *authorities;
};

/// Reads the command line, and makes the kernel end this process when its parent ends.
struct benchmark_options benchmark_begin(int argument_count, char *const *arguments);

/// Reports one result to the driver: a line with a name and a number.
void benchmark_report(const char *name, uint64_t value);
/// Reports to the driver where the server listens.
void benchmark_report_port(const char *port);
void benchmark_report_port_number(int port);
/// Returns when the driver has seen the other side end. Until then, the last message may still be under way.
void benchmark_wait_for_other_side(void);
/// Prints why the program cannot go on, and ends it with status 1.
__attribute__((noreturn)) void benchmark_fail(const char *what, const char *why);
/// Prints that the library cannot do this work, and ends the program with status 3.
__attribute__((noreturn)) void benchmark_unsupported(const char *what);

/// Returns the time of the monotonic clock, in nanoseconds.
uint64_t benchmark_now(void);
/// Returns the processor time of all threads of this process, in nanoseconds.
uint64_t benchmark_processor(void);
/// Returns the resident memory of this process, in bytes.
uint64_t benchmark_resident(void);
/// Reports the memory per idle peer, half a second after the peers fell silent: by then everything is acknowledged.
void benchmark_report_resident(uint64_t before, int peers);
/// Returns a TCP port that was free a moment ago, for libraries that cannot report which one they were given.
int benchmark_free_port(void);

// MARK: Payloads

// Message n begins with the number n modulo 4, in eight bytes, and ends with the same number in one byte. So a receiver
// notices when a message is lost, doubled, swapped or cut short, and a message can still be sent without a copy while
// others are under way. Two more messages mark the end of the warm-up and the end of the work. They also have the
// number of messages that were sent before them.
enum { BENCHMARK_PAYLOADS = 4, BENCHMARK_LENGTH_PREFIX = 4, BENCHMARK_SMALLEST = 16 };
static const uint64_t benchmark_mark_begin = UINT64_MAX - 1;
static const uint64_t benchmark_mark_end = UINT64_MAX;

/// The messages of a sender, one after the other, for as long as the command line says.
struct benchmark_supply {
    size_t size;
    uint64_t sent;
    /// How many messages are sent before the clock is read again.
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

/// Makes a payload that follows a length prefix of four bytes, least significant first, for programs that do their own
/// framing.
uint8_t *benchmark_payload(size_t size, uint64_t number);
void benchmark_supply_begin(struct benchmark_supply *supply, const struct benchmark_options *options);
/// Only for benchmark_supply_next.
const uint8_t *benchmark_supply_look(struct benchmark_supply *supply);
/// Reports the sender's processor time since the warm-up. Call it after the receiver has answered the last message.
void benchmark_supply_report(const struct benchmark_supply *supply);

/// Returns the next message: `size` bytes that stay where and as they are. Returns null after the last one.
static inline const uint8_t *benchmark_supply_next(struct benchmark_supply *supply) {
    if (__builtin_expect(supply->until_look == 0, 0)) {
        const uint8_t *mark = benchmark_supply_look(supply);
        if (mark != NULL || supply->has_ended) return mark;
    }
    supply->until_look -= 1;
    return supply->payloads[supply->sent++ % BENCHMARK_PAYLOADS];
}

/// A receiver's counts for one connection.
struct benchmark_receipt {
    size_t size;
    uint64_t received;
    uint64_t received_at_begin;
    bool has_begun;
    bool has_ended;
};

/// A receiver's counts for all connections.
struct benchmark_tally {
    int peers;
    int begun;
    int ended;
    uint64_t begun_at;
    uint64_t processor_at_begin;
    uint64_t messages;
};

/// Only for benchmark_receive.
bool benchmark_receive_mark(
    struct benchmark_receipt *receipt, struct benchmark_tally *tally, const uint8_t *bytes, size_t length);
/// Reports how many messages have arrived since the warm-up, and in what time.
void benchmark_tally_report(const struct benchmark_tally *tally);

static inline uint64_t benchmark_number(const uint8_t *bytes) {
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

/// Checks and counts a message. Returns true if it was the last one of all connections.
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

/// Counts a message of a socket that mixes several connections. It cannot tell their messages apart, and checks sizes
/// and ends only.
bool benchmark_receive_mixed(
    struct benchmark_receipt *receipt, struct benchmark_tally *tally, const uint8_t *bytes, size_t length);

// MARK: Round trips

/// The durations of round trips, or of connecting.
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
/// Adds a duration that the caller has measured.
void benchmark_trips_add(struct benchmark_trips *trips, uint64_t nanoseconds);
/// Reports p50, p99, p99.9 and the number of trips.
void benchmark_trips_report(struct benchmark_trips *trips);

/// Connects as often as the command line says, and reports the durations. `connect` makes a connection and sends
/// `payload` there and back on it. `leave` ends the connection that `connect` returned, and is not timed.
void benchmark_connect_often(
    const struct benchmark_options *options, intptr_t (*connect)(const uint8_t *payload), void (*leave)(intptr_t));

/// Returns the next message to send. Its time runs from the previous answer.
static inline const uint8_t *benchmark_trips_next(const struct benchmark_trips *trips) {
    return trips->payloads[trips->count % BENCHMARK_PAYLOADS];
}

/// Checks an answer. Returns false if there were enough.
bool benchmark_trips_returned(struct benchmark_trips *trips, const uint8_t *bytes, size_t length);

// MARK: Calls at once

enum { BENCHMARK_AT_ONCE = 64 };

/// Calls with BENCHMARK_AT_ONCE under way at any time. The program makes that many calls, and when one is answered, it
/// makes the next. It may do so on any thread.
struct benchmark_calls {
    size_t size;
    uint64_t begins_at;
    uint64_t ends_at;
    uint64_t made;
    uint64_t answered;
    /// 0 during the warm-up, 1 while calls are counted, 2 when enough were made.
    int phase;
    uint64_t begun_at;
    uint64_t processor_at_begin;
    uint64_t nanoseconds;
    uint64_t processor;
    uint8_t *payloads[BENCHMARK_PAYLOADS];
    uint8_t *begin;
    uint8_t *end;
};

void benchmark_calls_begin(struct benchmark_calls *calls, const struct benchmark_options *options);
/// Returns the content of the next call: `size` bytes that stay where and as they are. Returns null after the last one.
const uint8_t *benchmark_calls_next(struct benchmark_calls *calls);
/// Checks and counts an answer. `content` is the content of the call.
void benchmark_calls_answered(
    struct benchmark_calls *calls, const uint8_t *content, const uint8_t *bytes, size_t length);
/// Reports how many calls were answered, in what time, and the client's processor time. Call it after the last answer.
void benchmark_calls_report(const struct benchmark_calls *calls);

/// The calls that a server gets.
struct benchmark_called {
    size_t size;
    uint64_t processor_at_begin;
};

/// Checks the content of a call. Reports the server's processor time after the last call. Call it on any thread.
void benchmark_call_received(struct benchmark_called *called, const uint8_t *bytes, size_t length);

#ifdef __cplusplus
}
#endif
