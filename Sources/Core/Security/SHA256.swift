import COpenSSL

/// SHA-256, the hash function for PeerIDs and for pairing.
package enum SHA256 {
    package static let byteCount = 32

    package static func hash(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        OpenSSLLifetime.extend()
        return [UInt8](unsafeUninitializedCapacity: byteCount) { hash, count in
            let done = EVP_Digest(bytes.baseAddress, bytes.count, hash.baseAddress, nil, EVP_sha256(), nil)
            precondition(done == 1, "libcrypto has no SHA-256")
            count = byteCount
        }
    }

    /// Returns HMAC-SHA256 of a message.
    package static func authenticate(_ message: UnsafeRawBufferPointer, with key: SecretBytes) -> SecretBytes
    {
        OpenSSLLifetime.extend()
        let result = SecretBytes(count: byteCount)
        let done = result.withBytes { result in
            key.withBytes { key in
                HMAC(
                    EVP_sha256(), key.baseAddress, Int32(key.count), message.baseAddress, message.count,
                    result.baseAddress, nil)
            }
        }
        precondition(done != nil, "libcrypto cannot compute an HMAC")
        return result
    }
}
