// TLS 1.3 of OpenSSL for the programs that use it directly. Both sides prove an Ed25519 key; the cipher is AES-128-GCM.

#pragma once

#include "identity.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

enum { READ_AHEAD = 33 << 10 };

static void demand_tls(bool is_good, const char *what) {
    if (is_good) return;
    char words[256] = "no reason";
    if (ERR_peek_error() != 0) ERR_error_string_n(ERR_peek_error(), words, sizeof words);
    benchmark_fail(what, words);
}

/// Makes the context. Both sides show the same certificate, and trust no other.
static SSL_CTX *tls_context(void) {
    struct identity own = identity_of(edwards_key(), NULL);
    SSL_CTX *context = SSL_CTX_new(TLS_method());
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
    return context;
}

/// Does the handshake over a connected socket.
static SSL *tls_over(int descriptor, SSL_CTX *context, bool is_server) {
    SSL *ssl = SSL_new(context);
    demand_tls(ssl != NULL && SSL_set_fd(ssl, descriptor) == 1, "a connection");
    demand_tls((is_server ? SSL_accept(ssl) : SSL_connect(ssl)) == 1, "a handshake");
    return ssl;
}
