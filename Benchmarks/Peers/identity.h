// The one key and certificate that all programs under TLS show and trust. Each process makes them from a number, so
// that two processes agree on them without a file. The key is not secret.

#pragma once

#include "benchmark.h"

#include <openssl/evp.h>
#include <openssl/x509v3.h>

struct identity {
    EVP_PKEY *key;
    X509 *certificate;
};

static const char identity_name[] = "localhost";

/// Makes the key of the programs that use OpenSSL, which is on Ed25519.
static inline EVP_PKEY *edwards_key(void) {
    static const uint8_t seed[32] = {1};
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof seed);
}

/// Makes a self-signed certificate for `key`, signed with `digest`, which is NULL for Ed25519.
static inline struct identity identity_of(EVP_PKEY *key, const EVP_MD *digest) {
    X509 *certificate = X509_new();
    if (key == NULL || certificate == NULL) benchmark_fail("an identity", "cannot be made");
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_EXTENSION *is_authority = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");
    bool is_made = X509_set_version(certificate, X509_VERSION_3) == 1 &&
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
        ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), "20000101000000Z") == 1 &&
        ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), "20991231235959Z") == 1 &&
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)identity_name, -1, -1, 0) == 1 &&
        X509_set_issuer_name(certificate, name) == 1 && X509_add_ext(certificate, is_authority, -1) == 1 &&
        X509_set_pubkey(certificate, key) == 1 && X509_sign(certificate, key, digest) > 0;
    X509_EXTENSION_free(is_authority);
    if (!is_made) benchmark_fail("a certificate", "cannot be made");
    return (struct identity){.key = key, .certificate = certificate};
}
