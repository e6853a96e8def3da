import COpenSSL

import NighCore

/// A TLS peer made of libssl alone. It can break Nigh's rules where a test needs that.
package final class RawPeer {
    /// A key and its certificate, with the issuer, signer and dates that a test needs.
    package final class Credentials {
        let key: OpaquePointer
        package let certificate: OpaquePointer

        /// Makes a certificate for `key` with the subject "raw" and the issuer `issuer`. It is signed with `signer`, or
        /// with `key` if `signer` is nil.
        package init(
            _ key: OpaquePointer = RawPeer.key(EVP_PKEY_ED25519), signer: OpaquePointer? = nil,
            issuer: String = "raw", from: String = "20000101000000Z", until: String = "20990101000000Z"
        ) {
            self.key = key
            certificate = X509_new()!
            X509_set_version(certificate, 2)
            ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), 7)
            ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), from)
            ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), until)
            X509_NAME_add_entry_by_txt(
                X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, "raw", -1, -1, 0)
            X509_NAME_add_entry_by_txt(
                X509_get_issuer_name(certificate), "CN", MBSTRING_UTF8, issuer, -1, -1, 0)
            X509_set_pubkey(certificate, key)
            let signs = signer ?? key
            let digest = EVP_PKEY_get_base_id(signs) == EVP_PKEY_ED25519 ? nil : EVP_sha256()
            precondition(X509_sign(certificate, signs, digest) > 0)
        }

        deinit {
            X509_free(certificate)
            EVP_PKEY_free(key)
        }

        /// Replaces the certificate's key by `other`, although this peer does not have the private half.
        package func claim(_ other: OpaquePointer) { X509_set_pubkey(certificate, other) }

        /// The PeerID of the key; nil if it is not an Ed25519 key.
        package var peerID: PeerID? {
            var bytes = [UInt8](repeating: 0, count: 32)
            var count = bytes.count
            guard EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1 else { return nil }
            return PeerID(publicKey: bytes.prefix(count))
        }

        /// The certificate and its key, in the format that programs read from a file.
        package var pem: String {
            let sink = BIO_new(BIO_s_mem())
            defer { BIO_free(sink) }
            PEM_write_bio_X509(sink, certificate)
            PEM_write_bio_PKCS8PrivateKey(sink, key, nil, nil, 0, nil, nil)
            var text = [UInt8](repeating: 0, count: BIO_ctrl_pending(sink))
            BIO_read(sink, &text, Int32(text.count))
            return String(decoding: text, as: UTF8.self)
        }
    }

    /// Makes a new key of a kind such as `EVP_PKEY_RSA`. The caller owns it.
    package static func key(_ kind: Int32) -> OpaquePointer {
        let context = EVP_PKEY_CTX_new_id(kind, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        EVP_PKEY_keygen_init(context)
        if kind == EVP_PKEY_EC { EVP_PKEY_CTX_set_group_name(context, "P-256") }
        EVP_PKEY_keygen(context, &key)
        return key!
    }

    private let context: OpaquePointer
    package let ssl: OpaquePointer
    private let incoming = BIO_new(BIO_s_mem())!
    private let outgoing = BIO_new(BIO_s_mem())!
    /// The first error, in libssl's words; nil while there is none.
    package private(set) var failure: String?
    package private(set) var received: [UInt8] = []

    /// Makes a peer that shows `credentials`, offers `protocols` and accepts any certificate.
    package init(
        _ side: LinkSide, _ credentials: Credentials? = Credentials(),
        protocols: [String] = ["nigh/1"], configure: (OpaquePointer) -> Void = { _ in }
    ) {
        context = SSL_CTX_new(TLS_method())
        if let credentials {
            SSL_CTX_use_certificate(context, credentials.certificate)
            SSL_CTX_use_PrivateKey(context, credentials.key)
        }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_cert_verify_callback(context, { _, _ in 1 }, nil)
        let offers = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        if side == .dialling, !offers.isEmpty {
            SSL_CTX_set_alpn_protos(context, offers, UInt32(offers.count))
        } else if protocols == ["nigh/1"] {
            SSL_CTX_set_alpn_select_cb(
                context,
                { _, selected, count, offered, _, _ in
                    selected?.pointee = offered.map { $0 + 1 }
                    count?.pointee = 6
                    return SSL_TLSEXT_ERR_OK
                }, nil)
        }
        configure(context)
        ssl = SSL_new(context)
        SSL_set_bio(ssl, incoming, outgoing)
        if side == .dialling { SSL_set_connect_state(ssl) } else { SSL_set_accept_state(ssl) }
    }

    deinit {
        SSL_free(ssl)
        SSL_CTX_free(context)
    }

    /// Whether the handshake is done for this side.
    package var isEstablished: Bool { SSL_is_init_finished(ssl) == 1 }

    /// Whether the other side has sent a certificate.
    package var sawCertificate: Bool { SSL_get0_peer_certificate(ssl) != nil }

    /// Processes `bytes` as far as possible, and returns what this peer sends in response.
    package func exchange(_ bytes: [UInt8]) -> [UInt8] {
        if !bytes.isEmpty { BIO_write(incoming, bytes, Int32(bytes.count)) }
        ERR_clear_error()
        if SSL_is_init_finished(ssl) == 0, SSL_do_handshake(ssl) != 1 { noteFailure() }
        var buffer = [UInt8](repeating: 0, count: 20_000)
        while SSL_is_init_finished(ssl) == 1 {
            let count = SSL_read(ssl, &buffer, Int32(buffer.count))
            guard count > 0 else {
                noteFailure()
                break
            }
            received += buffer[..<Int(count)]
        }
        ERR_clear_error()
        return takeOutput()
    }

    /// Encrypts `bytes`, and returns what goes onto the pipe.
    package func seal(_ bytes: [UInt8]) -> [UInt8] {
        SSL_write(ssl, bytes, Int32(bytes.count))
        return takeOutput()
    }

    private func takeOutput() -> [UInt8] {
        var output = [UInt8](repeating: 0, count: BIO_ctrl_pending(outgoing))
        if !output.isEmpty { BIO_read(outgoing, &output, Int32(output.count)) }
        return output
    }

    private func noteFailure() {
        let code = ERR_peek_last_error()
        guard failure == nil, code != 0 else { return }
        failure = ERR_reason_error_string(code).map { String(cString: $0) } ?? "?"
    }
}
