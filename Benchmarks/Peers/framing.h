// Messages after a length prefix in a stream of bytes, put together in place. Programs on bare sockets or libuv do this
// themselves; messaging libraries do it inside.

#pragma once

#include "benchmark.h"

#include <stdlib.h>

enum {
    /// Messages up to this size are copied together, and read into one buffer that all connections share. Larger ones
    /// are written from where they lie, and read into a buffer of their connection.
    SMALL_MESSAGE = 8 << 10,
    /// The size of a gathered write. By measurement, 64 KiB to 256 KiB perform alike; less and more are slower.
    GATHERED = 128 << 10,
    /// The most messages that one write takes without a copy, as long as they are not more than `GATHERED` bytes.
    MOST_REFERENCED = 16,
    SHARED_ROOM = 256 << 10,
    OWN_ROOM = 64 << 10,
};

static inline void *allocated(size_t size) {
    void *block = malloc(size);
    if (block == NULL) benchmark_fail("memory", "there is no more");
    return block;
}

/// The incoming bytes of one connection. Empty between messages, so that an idle connection keeps nothing.
struct incoming {
    size_t largest;
    size_t held;
    uint8_t *own;
};

static inline bool is_small(const struct incoming *incoming) { return incoming->largest <= SMALL_MESSAGE; }

static inline uint8_t *shared_room(void) {
    static uint8_t *room;
    if (room == NULL) room = allocated(SHARED_ROOM);
    return room;
}

/// Returns where the next bytes are to be read to, and how many fit there.
static inline uint8_t *incoming_room(struct incoming *incoming, size_t *room) {
    if (is_small(incoming)) {
        uint8_t *shared = shared_room();
        if (incoming->held > 0) memcpy(shared, incoming->own, incoming->held);
        *room = SHARED_ROOM - incoming->held;
        return shared + incoming->held;
    }
    size_t capacity = incoming->largest + BENCHMARK_LENGTH_PREFIX + OWN_ROOM;
    if (incoming->own == NULL) incoming->own = allocated(capacity);
    *room = capacity - incoming->held;
    return incoming->own + incoming->held;
}

/// Takes `count` bytes that were read, and calls `take` with each complete message.
static inline __attribute__((always_inline)) void incoming_read(
    struct incoming *incoming, size_t count, void (*take)(void *context, const uint8_t *bytes, size_t length),
    void *context) {
    uint8_t *from = is_small(incoming) ? shared_room() : incoming->own;
    size_t rest = incoming->held + count;
    while (rest >= BENCHMARK_LENGTH_PREFIX) {
        uint32_t length;
        memcpy(&length, from, BENCHMARK_LENGTH_PREFIX);
        if (length > incoming->largest || length < BENCHMARK_SMALLEST)
            benchmark_fail("a length prefix", "is out of range");
        if (rest < BENCHMARK_LENGTH_PREFIX + length) break;
        take(context, from + BENCHMARK_LENGTH_PREFIX, length);
        from += BENCHMARK_LENGTH_PREFIX + length;
        rest -= BENCHMARK_LENGTH_PREFIX + length;
    }
    incoming->held = rest;
    if (rest == 0) return;
    if (incoming->own == NULL) incoming->own = allocated(incoming->largest + BENCHMARK_LENGTH_PREFIX);
    memmove(incoming->own, from, rest);
}
