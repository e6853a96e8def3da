import COpenSSL

/// A signature of Ed25519 over some bytes: it proves that the owner of a key has signed them.
package enum Signature {
    /// The length of a signature.
    package static let byteCount = 64
    /// The length of the public key that verifies one.
    package static let publicKeyByteCount = KeyPair.publicByteCount

    /// Whether `signature` is one of the key's owner over `message`.
    package static func isValid(_ signature: [UInt8], of message: [UInt8], by publicKey: [UInt8]) -> Bool {
        guard signature.count == byteCount, publicKey.count == publicKeyByteCount,
            let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, publicKey, publicKey.count)
        else {
            ERR_clear_error()
            return false
        }
        let context = EVP_MD_CTX_new()
        defer {
            EVP_MD_CTX_free(context)
            EVP_PKEY_free(key)
            ERR_clear_error()
        }
        return EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
}

extension Identity {
    /// Signs a message with the private key. Begin each kind of message with words of its own, so that no signature can
    /// be taken for one of another kind.
    package func signature(of message: [UInt8]) -> [UInt8] {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        var signature = [UInt8](repeating: 0, count: Signature.byteCount)
        var count = signature.count
        let isDone = keyPair.withPointer { key in
            EVP_DigestSignInit(context, nil, nil, nil, key) == 1
                && EVP_DigestSign(context, &signature, &count, message, message.count) == 1
        }
        precondition(isDone && count == Signature.byteCount, "an Ed25519 key that cannot sign")
        return signature
    }
}
