import COpenSSL

/// Computes the SHA-256 of bytes that arrive piece by piece.
///
/// For one thread at a time, because every call changes its libcrypto context.
package final class RunningHash {
    private let context: OpaquePointer

    /// Creates the hash of no bytes.
    package init() {
        OpenSSLLifetime.extend()
        context = EVP_MD_CTX_new()
        reset()
    }

    deinit { EVP_MD_CTX_free(context) }

    /// Starts again with no bytes.
    package func reset() {
        precondition(EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1, "libcrypto has no SHA-256")
    }

    /// Adds `bytes`.
    package func update(_ bytes: UnsafeRawBufferPointer) {
        precondition(
            EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1, "libcrypto cannot hash")
    }

    /// The hash of all bytes so far. More bytes may follow.
    package var value: [UInt8] {
        let copy = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(copy) }
        precondition(EVP_MD_CTX_copy_ex(copy, context) == 1, "libcrypto cannot copy a hash")
        return [UInt8](unsafeUninitializedCapacity: SHA256.byteCount) { hash, count in
            precondition(EVP_DigestFinal_ex(copy, hash.baseAddress, nil) == 1, "libcrypto cannot hash")
            count = SHA256.byteCount
        }
    }
}
