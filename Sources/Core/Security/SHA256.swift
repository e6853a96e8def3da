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
}
