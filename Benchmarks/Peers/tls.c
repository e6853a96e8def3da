// The baseline for sessions under TLS: OpenSSL's TLS 1.3 directly over blocking sockets. Both sides prove an Ed25519
// key; the cipher is AES-128-GCM.

#include "framing.h"
#include "identity.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

/// Larger messages go to OpenSSL from where they lie. Up to this size, the separate record for a length prefix costs
/// more than the copy.
enum { LARGEST_COPIED = 64 << 10, READ_AHEAD = 33 << 10 };

#include "loopback.h"

static SSL_CTX *context;

static void demand_tls(bool is_good, const char *what) {
    if (is_good) return;
    char words[256] = "no reason";
    if (ERR_peek_error() != 0) ERR_error_string_n(ERR_peek_error(), words, sizeof words);
    benchmark_fail(what, words);
}

/// Makes the context. Both sides show the same certificate, and trust no other.
static void make_context(void) {
    static const uint8_t seed[32] = {1};
    struct identity own = identity_of(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof seed), NULL);
    context = SSL_CTX_new(TLS_method());
    demand_tls(
        context != NULL && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
            SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
            SSL_CTX_set1_groups_list(context, "X25519") == 1 && SSL_CTX_set1_sigalgs_list(context, "ed25519") == 1 &&
            SSL_CTX_use_certificate(context, own.certificate) == 1 && SSL_CTX_use_PrivateKey(context, own.key) == 1 &&
            X509_STORE_add_cert(SSL_CTX_get_cert_store(context), own.certificate) == 1,
        "a context");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
    // Programs end without a TLS close once they have their measurements.
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    // No connection here resumes with a ticket.
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY);
    // One system call reads two records. By measurement that is better than one, and than more.
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, READ_AHEAD);
    // Idle connections release what they do not need between two messages.
    if (options.work == BENCHMARK_IDLE) SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

static void connection_begin(struct connection *connection, bool is_server) {
    if (context == NULL) make_context();
    SSL *ssl = SSL_new(context);
    demand_tls(ssl != NULL && SSL_set_fd(ssl, connection->descriptor) == 1, "a connection");
    demand_tls((is_server ? SSL_accept(ssl) : SSL_connect(ssl)) == 1, "a handshake");
    connection->channel = ssl;
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
