#include "benchmark.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char *const works[] = {
    "round-trip", "stream", "broadcast", "connect", "idle", "found", "calls-at-once"};

__attribute__((noreturn)) void benchmark_fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

__attribute__((noreturn)) void benchmark_unsupported(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(3);
}

static double number(const char *flag, const char *text, double least, double most) {
    char *rest;
    double value = strtod(text, &rest);
    if (*text == 0 || *rest != 0 || !(value >= least && value <= most)) benchmark_fail(flag, text);
    return value;
}

struct benchmark_options benchmark_begin(int argument_count, char *const *arguments) {
    struct benchmark_options options = {
        .size = 64, .seconds = 1, .warm_up = 0.2, .peers = 1, .count = 200, .port = "", .way = "", .broker = "",
        .authorities = "",
    };
    if (argument_count < 3) benchmark_fail("usage", "serve|connect WORK [--size N] [--port N] ...");
    options.serves = strcmp(arguments[1], "serve") == 0;
    if (!options.serves && strcmp(arguments[1], "connect") != 0) benchmark_fail("unknown side", arguments[1]);
    size_t work = 0;
    while (work < sizeof works / sizeof *works && strcmp(works[work], arguments[2]) != 0) work += 1;
    if (work == sizeof works / sizeof *works) benchmark_fail("unknown work", arguments[2]);
    options.work = (enum benchmark_work)work;
    for (int index = 3; index + 1 < argument_count; index += 2) {
        const char *flag = arguments[index], *value = arguments[index + 1];
        if (strcmp(flag, "--size") == 0) options.size = (size_t)number(flag, value, BENCHMARK_SMALLEST, 16 << 20);
        else if (strcmp(flag, "--seconds") == 0) options.seconds = number(flag, value, 0, 3600);
        else if (strcmp(flag, "--warm-up") == 0) options.warm_up = number(flag, value, 0, 3600);
        else if (strcmp(flag, "--peers") == 0) options.peers = (int)number(flag, value, 1, 4000);
        else if (strcmp(flag, "--count") == 0) options.count = (int)number(flag, value, 1, 1000000);
        else if (strcmp(flag, "--port") == 0) options.port = value;
        else if (strcmp(flag, "--way") == 0) options.way = value;
        else if (strcmp(flag, "--broker") == 0) options.broker = value;
        else if (strcmp(flag, "--authorities") == 0) options.authorities = value;
        else benchmark_fail("unknown argument", flag);
    }
    // The driver ends what it started. If the driver itself is killed, the kernel does it.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    return options;
}

void benchmark_report(const char *name, uint64_t value) {
    printf("%s %llu\n", name, (unsigned long long)value);
    fflush(stdout);
}

void benchmark_report_port(const char *port) {
    printf("port %s\n", port);
    fflush(stdout);
}

void benchmark_report_port_number(int port) {
    char text[16];
    snprintf(text, sizeof text, "%d", port);
    benchmark_report_port(text);
}

void benchmark_wait_for_other_side(void) {
    char ignored[64];
    ssize_t got;
    do got = read(STDIN_FILENO, ignored, sizeof ignored);
    while (got > 0 || (got < 0 && errno == EINTR));
}

static uint64_t clock_value(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t benchmark_now(void) { return clock_value(CLOCK_MONOTONIC); }
uint64_t benchmark_processor(void) { return clock_value(CLOCK_PROCESS_CPUTIME_ID); }

uint64_t benchmark_resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long long total = 0, resident = 0;
    if (file == NULL || fscanf(file, "%llu %llu", &total, &resident) != 2) benchmark_fail("statm", strerror(errno));
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void benchmark_report_resident(uint64_t before, int peers) {
    struct timespec silence = {.tv_nsec = 500000000};
    nanosleep(&silence, NULL);
    benchmark_report("resident", (benchmark_resident() - before) / (uint64_t)peers);
}

int benchmark_free_port(void) {
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    if (bind(probe, (struct sockaddr *)&address, length) != 0 ||
        getsockname(probe, (struct sockaddr *)&address, &length) != 0)
        benchmark_fail("bind", strerror(errno));
    close(probe);
    return ntohs(address.sin_port);
}

// MARK: Payloads

uint8_t *benchmark_payload(size_t size, uint64_t number) {
    enum { headroom = 64 };
    uint8_t *block = aligned_alloc(headroom, headroom + (size + headroom - 1) / headroom * headroom);
    if (block == NULL) benchmark_fail("memory", strerror(errno));
    uint8_t *payload = block + headroom;
    uint32_t length = (uint32_t)size;
    memcpy(payload - BENCHMARK_LENGTH_PREFIX, &length, BENCHMARK_LENGTH_PREFIX);
    memset(payload, 0x6e, size);
    memcpy(payload, &number, sizeof number);
    payload[size - 1] = (uint8_t)number;
    return payload;
}

void benchmark_supply_begin(struct benchmark_supply *supply, const struct benchmark_options *options) {
    memset(supply, 0, sizeof *supply);
    supply->size = options->size;
    supply->look_after = options->size < 65536 ? 65536 / options->size : 1;
    supply->until_look = supply->look_after;
    supply->begins_at = benchmark_now() + (uint64_t)(options->warm_up * 1e9);
    supply->ends_at = supply->begins_at + (uint64_t)(options->seconds * 1e9);
    for (uint64_t number = 0; number < BENCHMARK_PAYLOADS; number++)
        supply->payloads[number] = benchmark_payload(options->size, number);
    supply->begin = benchmark_payload(options->size, benchmark_mark_begin);
    supply->end = benchmark_payload(options->size, benchmark_mark_end);
}

const uint8_t *benchmark_supply_look(struct benchmark_supply *supply) {
    supply->until_look = supply->look_after;
    if (supply->has_ended) {
        supply->until_look = 0;
        return NULL;
    }
    uint64_t now = benchmark_now();
    if (supply->has_begun) {
        if (now < supply->ends_at) return NULL;
        supply->has_ended = true;
        supply->until_look = 0;
        memcpy(supply->end + 8, &supply->sent, 7);
        return supply->end;
    }
    if (now < supply->begins_at) return NULL;
    supply->has_begun = true;
    supply->ends_at += now - supply->begins_at;
    supply->processor_at_begin = benchmark_processor();
    memcpy(supply->begin + 8, &supply->sent, 7);
    return supply->begin;
}

void benchmark_supply_report(const struct benchmark_supply *supply) {
    benchmark_report("sent", supply->sent);
    benchmark_report("processor", benchmark_processor() - supply->processor_at_begin);
}

static uint64_t count_in_mark(const uint8_t *bytes) {
    uint64_t count = 0;
    memcpy(&count, bytes + 8, 7);
    return count;
}

static void begin(struct benchmark_tally *tally) {
    if (tally->begun++ == 0) {
        tally->begun_at = benchmark_now();
        tally->processor_at_begin = benchmark_processor();
    }
}

bool benchmark_receive_mark(
    struct benchmark_receipt *receipt, struct benchmark_tally *tally, const uint8_t *bytes, size_t length) {
    if (length != receipt->size) benchmark_fail("a message", "has another size than was sent");
    uint64_t mark = benchmark_number(bytes);
    if (mark != benchmark_mark_begin && mark != benchmark_mark_end)
        benchmark_fail("a message", "was lost, doubled, swapped or changed");
    if (count_in_mark(bytes) != receipt->received) benchmark_fail("messages", "were lost");
    if (mark == benchmark_mark_begin) {
        receipt->has_begun = true;
        receipt->received_at_begin = receipt->received;
        begin(tally);
        return false;
    }
    receipt->has_ended = true;
    tally->messages += receipt->received - receipt->received_at_begin;
    tally->ended += 1;
    return tally->ended == tally->peers;
}

bool benchmark_receive_mixed(
    struct benchmark_receipt *receipt, struct benchmark_tally *tally, const uint8_t *bytes, size_t length) {
    if (length != receipt->size) benchmark_fail("a message", "has another size than was sent");
    uint64_t mark = benchmark_number(bytes);
    if (mark < BENCHMARK_PAYLOADS && bytes[length - 1] == mark) {
        receipt->received += 1;
        return false;
    }
    if (mark == benchmark_mark_begin) {
        receipt->received_at_begin += count_in_mark(bytes);
        begin(tally);
        return false;
    }
    if (mark != benchmark_mark_end) benchmark_fail("a message", "was changed");
    tally->messages += count_in_mark(bytes);
    tally->ended += 1;
    if (tally->ended < tally->peers) return false;
    if (tally->messages != receipt->received) benchmark_fail("messages", "were lost");
    tally->messages -= receipt->received_at_begin;
    return true;
}

void benchmark_tally_report(const struct benchmark_tally *tally) {
    uint64_t now = benchmark_now();
    benchmark_report("processor", benchmark_processor() - tally->processor_at_begin);
    benchmark_report("messages", tally->messages);
    benchmark_report("nanoseconds", now - tally->begun_at);
}

// MARK: Round trips

enum { SAMPLES_KEPT = 1 << 22 };

void benchmark_trips_begin(struct benchmark_trips *trips, const struct benchmark_options *options) {
    memset(trips, 0, sizeof *trips);
    trips->size = options->size;
    trips->samples = malloc(SAMPLES_KEPT * sizeof *trips->samples);
    if (trips->samples == NULL) benchmark_fail("memory", strerror(errno));
    for (uint64_t number = 0; number < BENCHMARK_PAYLOADS; number++)
        trips->payloads[number] = benchmark_payload(options->size, number);
    trips->last = benchmark_now();
    trips->begins_at = trips->last + (uint64_t)(options->warm_up * 1e9);
    trips->ends_at = trips->begins_at + (uint64_t)(options->seconds * 1e9);
}

void benchmark_trips_add(struct benchmark_trips *trips, uint64_t nanoseconds) {
    if (trips->sample_count == SAMPLES_KEPT) return;
    trips->samples[trips->sample_count++] = nanoseconds > UINT32_MAX ? UINT32_MAX : (uint32_t)nanoseconds;
}

bool benchmark_trips_returned(struct benchmark_trips *trips, const uint8_t *bytes, size_t length) {
    uint64_t expected = trips->count % BENCHMARK_PAYLOADS;
    if (length != trips->size || benchmark_number(bytes) != expected || bytes[length - 1] != (uint8_t)expected)
        benchmark_fail("an answer", "is not what was sent");
    trips->count += 1;
    uint64_t now = benchmark_now();
    if (now >= trips->begins_at) benchmark_trips_add(trips, now - trips->last);
    trips->last = now;
    return now < trips->ends_at;
}

static int ascending(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

void benchmark_trips_report(struct benchmark_trips *trips) {
    if (trips->sample_count == 0) benchmark_fail("round trips", "none was measured");
    qsort(trips->samples, trips->sample_count, sizeof *trips->samples, ascending);
    benchmark_report("p50", trips->samples[trips->sample_count / 2]);
    benchmark_report("p99", trips->samples[trips->sample_count * 99 / 100]);
    benchmark_report("p99.9", trips->samples[trips->sample_count * 999 / 1000]);
    benchmark_report("trips", trips->sample_count);
}

void benchmark_connect_often(
    const struct benchmark_options *options, intptr_t (*connect)(const uint8_t *payload), void (*leave)(intptr_t)) {
    const uint8_t *payload = benchmark_payload(options->size, 0);
    struct benchmark_trips trips;
    benchmark_trips_begin(&trips, options);
    for (int index = 0; index < options->count; index++) {
        uint64_t begun = benchmark_now();
        intptr_t connection = connect(payload);
        benchmark_trips_add(&trips, benchmark_now() - begun);
        leave(connection);
    }
    benchmark_trips_report(&trips);
}

// MARK: Calls at once

void benchmark_calls_begin(struct benchmark_calls *calls, const struct benchmark_options *options) {
    memset(calls, 0, sizeof *calls);
    calls->size = options->size;
    calls->begins_at = benchmark_now() + (uint64_t)(options->warm_up * 1e9);
    calls->ends_at = calls->begins_at + (uint64_t)(options->seconds * 1e9);
    for (uint64_t number = 0; number < BENCHMARK_PAYLOADS; number++)
        calls->payloads[number] = benchmark_payload(options->size, number);
    calls->begin = benchmark_payload(options->size, benchmark_mark_begin);
    calls->end = benchmark_payload(options->size, benchmark_mark_end);
}

/// Goes to the next phase. Returns false if another thread has done it.
static bool reach(struct benchmark_calls *calls, int phase) {
    int before = phase - 1;
    return __atomic_compare_exchange_n(&calls->phase, &before, phase, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

const uint8_t *benchmark_calls_next(struct benchmark_calls *calls) {
    uint64_t now = benchmark_now();
    int phase = __atomic_load_n(&calls->phase, __ATOMIC_ACQUIRE);
    if (phase == 0 && now >= calls->begins_at && reach(calls, 1)) {
        calls->begun_at = now;
        calls->processor_at_begin = benchmark_processor();
        return calls->begin;
    }
    if (phase == 1 && now >= calls->ends_at && reach(calls, 2)) {
        calls->nanoseconds = now - calls->begun_at;
        calls->processor = benchmark_processor() - calls->processor_at_begin;
        return calls->end;
    }
    if (phase == 2) return NULL;
    return calls->payloads[__atomic_fetch_add(&calls->made, 1, __ATOMIC_RELAXED) % BENCHMARK_PAYLOADS];
}

void benchmark_calls_answered(
    struct benchmark_calls *calls, const uint8_t *content, const uint8_t *bytes, size_t length) {
    if (length != calls->size || benchmark_number(bytes) != benchmark_number(content) ||
        bytes[length - 1] != content[length - 1])
        benchmark_fail("an answer", "is not what was sent");
    if (__atomic_load_n(&calls->phase, __ATOMIC_ACQUIRE) == 1)
        __atomic_fetch_add(&calls->answered, 1, __ATOMIC_RELAXED);
}

void benchmark_calls_report(const struct benchmark_calls *calls) {
    benchmark_report("processor", calls->processor);
    benchmark_report("messages", calls->answered);
    benchmark_report("nanoseconds", calls->nanoseconds);
}

void benchmark_call_received(struct benchmark_called *called, const uint8_t *bytes, size_t length) {
    if (length != called->size) benchmark_fail("a call", "has another size than was sent");
    uint64_t number = benchmark_number(bytes);
    if (bytes[length - 1] != (uint8_t)number) benchmark_fail("a call", "was changed");
    if (number < BENCHMARK_PAYLOADS) return;
    // Other calls come between these two, so they are never handled at the same time.
    if (number == benchmark_mark_begin) called->processor_at_begin = benchmark_processor();
    else if (number == benchmark_mark_end)
        benchmark_report("processor", benchmark_processor() - called->processor_at_begin);
    else benchmark_fail("a call", "was changed");
}
