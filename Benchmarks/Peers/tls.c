// The baseline for sessions under TLS: OpenSSL's TLS 1.3 directly over blocking sockets. Both sides prove an Ed25519
// key; the cipher is AES-128-GCM.

#include "framing.h"
#include "tls.h"

/// Larger messages go to OpenSSL from where they lie. Up to this size, the separate record for a length prefix costs
/// more than the copy.
enum { LARGEST_COPIED = 64 << 10 };

#include "loopback.h"

static SSL_CTX *context;

static void connection_begin(struct connection *connection, bool is_server) {
    if (context == NULL) {
        context = tls_context();
        // Idle connections release what they do not need between two messages.
        if (options.work == BENCHMARK_IDLE) SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    }
    connection->channel = tls_over(connection->descriptor, context, is_server);
}

static void connection_end(struct connection *connection) {
    SSL_shutdown(connection->channel);
    SSL_free(connection->channel);
    close(connection->descriptor);
}

static void write_all(struct connection *connection, const uint8_t *bytes, size_t count) {
    size_t written;
    demand_tls(SSL_write_ex(connection->channel, bytes, count, &written) == 1 && written == count, "SSL_write");
}

static void write_frames(struct connection *connection, const struct iovec *frames, int count) {
    for (int index = 0; index < count; index++) write_all(connection, frames[index].iov_base, frames[index].iov_len);
}

static size_t read_some(struct connection *connection, uint8_t *room, size_t size) {
    size_t got = 0;
    int result = SSL_read_ex(connection->channel, room, size, &got);
    if (result != 1) demand_tls(SSL_get_error(connection->channel, result) == SSL_ERROR_ZERO_RETURN, "SSL_read");
    return got;
}

static bool has_more(const struct connection *connection) { return SSL_has_pending(connection->channel); }

int main(int argument_count, char **arguments) { return work(argument_count, arguments); }
