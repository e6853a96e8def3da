#pragma once
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

// OpenSSL has these as macros only, which Swift cannot call.

static inline int openssl_allow_only_tls13(SSL_CTX *context) {
    return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION)
        && SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
}

static inline int openssl_set_groups(SSL_CTX *context, const char *groups) {
    return (int)SSL_CTX_set1_groups_list(context, groups);
}

static inline int openssl_set_signature_algorithms(SSL_CTX *context, const char *algorithms) {
    return (int)SSL_CTX_set1_sigalgs_list(context, algorithms);
}

static inline void openssl_set_session_cache_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}

static inline void openssl_set_longest_certificate_list(SSL_CTX *context, long byteCount) {
    SSL_CTX_set_max_cert_list(context, byteCount);
}


static inline int openssl_set_ticket_keys(SSL_CTX *context, void *keys, size_t byteCount) {
    return (int)SSL_CTX_set_tlsext_ticket_keys(context, keys, byteCount);
}

/// Turns off features that only serve middleboxes: invented session ids and change_cipher_spec records.
static inline void openssl_omit_middlebox_compatibility(SSL_CTX *context) {
    SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
}

static inline void openssl_say_read_would_block(BIO *bio) {
    BIO_set_retry_read(bio);
}

static inline void openssl_clear_retry(BIO *bio) {
    BIO_clear_retry_flags(bio);
}
