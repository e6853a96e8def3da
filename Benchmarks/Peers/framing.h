// Messages behind a length prefix in a stream of bytes, put together in place: what programs on bare sockets or libuv do
// themselves, and libraries of messages do inside.

#pragma once

#include "benchmark.h"

#include <stdlib.h>

enum {
    /// Up to here messages are copied together and read into one buffer that all connections share; larger ones are written
    /// from where they lie, and read into a buffer of the connection's own.
    SMALL_MESSAGE = 8 << 10,
    /// What a gathered write holds. Found by trial: 64 KiB to 256 KiB are alike, less and more are slower.
    GATHERED = 128 << 10,
    /// So many messages that are not copied go into one write, as long as they are not more bytes than that.
    MOST_REFERENCED = 16,
    SHARED_ROOM = 256 << 10,
    OWN_ROOM = 64 << 10,
};

static inline void *allocated(size_t size) {
    void *block = malloc(size);
    if (block == NULL) benchmark_fail("memory", "there is no more");
    return block;
}

/// One connection's incoming bytes. Empty between messages, so that an idle connection keeps nothing.
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

/// Where the next bytes are to be read to.
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

/// Takes `count` bytes that were read, and calls `take` with each message that is whole.
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
