// The limit: nothing between the messages and the sockets.

#include "framing.h"

enum { LARGEST_COPIED = SMALL_MESSAGE };

#include "loopback.h"

static void connection_begin(struct connection *connection, bool is_server) {
    (void)connection;
    (void)is_server;
}

static void connection_end(struct connection *connection) { close(connection->descriptor); }

static void write_all(struct connection *connection, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = write(connection->descriptor, bytes, count);
        demand(written > 0, "write");
        bytes += written;
        count -= (size_t)written;
    }
}

static void write_frames(struct connection *connection, const struct iovec *frames, int count) {
    struct iovec pieces[MOST_REFERENCED];
    memcpy(pieces, frames, (size_t)count * sizeof *pieces);
    struct iovec *first = pieces;
    while (count > 0) {
        ssize_t written = writev(connection->descriptor, first, count);
        demand(written > 0, "writev");
        for (; count > 0 && (size_t)written >= first->iov_len; first++, count--) written -= (ssize_t)first->iov_len;
        if (count == 0) return;
        first->iov_base = (uint8_t *)first->iov_base + written;
        first->iov_len -= (size_t)written;
    }
}

static size_t read_some(struct connection *connection, uint8_t *room, size_t size) {
    ssize_t got = read(connection->descriptor, room, size);
    demand(got >= 0, "read");
    return (size_t)got;
}

static bool has_more(const struct connection *connection) {
    (void)connection;
    return false;
}

int main(int argument_count, char **arguments) { return work(argument_count, arguments); }
