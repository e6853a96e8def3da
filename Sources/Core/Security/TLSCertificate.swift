import COpenSSL
import Glibc

/// Creates and checks Nigh's certificates. Only the self-signed Ed25519 key in them has a meaning.
enum TLSCertificate {
    /// Creates an `X509` for `keyPair`, which the caller owns. Nil if libcrypto cannot create one.
    ///
    /// It reveals nothing about the user. It is valid at any time, so that a device without a clock can use
    /// it, and always has the same length.
    static func selfSigned(_ keyPair: KeyPair) -> OpaquePointer? {
        guard let certificate = X509_new() else { return nil }
        let name = X509_get_subject_name(certificate)
        // The two highest bits are 01, so the number is positive and always has eight bytes.
        let serial = UInt64.random(in: .min ... .max) >> 2 | 1 << 62
        let isDone =
            X509_set_version(certificate, Int(X509_VERSION_3)) == 1
            && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1
            && ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), "19700101000000Z") == 1
            && ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), "99991231235959Z") == 1
            && X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, "nigh", -1, -1, 0) == 1
            && X509_set_issuer_name(certificate, name) == 1
            && keyPair.withPointer { key in
                X509_set_pubkey(certificate, key) == 1 && X509_sign(certificate, key, nil) > 0
            }
        guard isDone else {
            X509_free(certificate)
            return nil
        }
        return certificate
    }

    /// Why a certificate is refused: the cause for this side's program, and the code
    /// that makes libssl send the right alert.
    struct Refusal: Error {
        let cause: NighError.Cause
        let code: Int32

        init(_ fault: SecurityFault, _ code: Int32) {
            cause = .insecure(fault)
            self.code = code
        }

        init(_ cause: NighError.Cause, _ code: Int32) {
            self.cause = cause
            self.code = code
        }
    }

    /// Returns the peer to which the certificate in `chain`, a stack of `X509`, belongs. Throws the reason if it is
    /// refused. `now` is in seconds since 1970.
    ///
    /// The handshake proves that the other side has the private key. It also proves everything that the
    /// certificate's own signature could prove, because CertificateVerify is made with the same key and covers
    /// every byte of the certificate. So that signature is not checked; checking it would cost each side a fifth of
    /// its handshake. By RFC 8446, 4.2.3, signatures of self-signed certificates are not validated either, because
    /// a certificate path begins with them.
    static func peer(
        of chain: OpaquePointer?, expected: PeerID?, now: time_t
    ) throws(Refusal) -> PeerID {
        let count = max(0, OPENSSL_sk_num(chain))
        guard count > 0, let first = OPENSSL_sk_value(chain, 0) else {
            throw Refusal(.noCertificate, X509_V_ERR_UNSPECIFIED)
        }
        guard count == 1 else {
            throw Refusal(.severalCertificates(Int(count)), X509_V_ERR_CERT_CHAIN_TOO_LONG)
        }
        let certificate = OpaquePointer(first)
        guard let key = X509_get0_pubkey(certificate), let peer = PeerID(key: key) else {
            throw Refusal(.wrongKeyKind(keyKind(of: certificate)), X509_V_ERR_INVALID_PURPOSE)
        }
        var now = now
        guard X509_cmp_time(X509_get0_notBefore(certificate), &now) < 0 else {
            throw Refusal(.certificateNotYetValid, X509_V_ERR_CERT_NOT_YET_VALID)
        }
        guard X509_cmp_time(X509_get0_notAfter(certificate), &now) > 0 else {
            throw Refusal(.certificateExpired, X509_V_ERR_CERT_HAS_EXPIRED)
        }
        guard isDeclaredSelfSigned(certificate) else {
            throw Refusal(.notSelfSigned, X509_V_ERR_CERT_SIGNATURE_FAILURE)
        }
        guard expected == nil || expected == peer else {
            throw Refusal(.wrongPeer(expected: expected ?? peer, found: peer), X509_V_ERR_HOSTNAME_MISMATCH)
        }
        return peer
    }

    /// Returns whether the certificate names itself as the issuer, and the signature is an Ed25519 signature.
    private static func isDeclaredSelfSigned(_ certificate: OpaquePointer) -> Bool {
        X509_NAME_cmp(X509_get_subject_name(certificate), X509_get_issuer_name(certificate)) == 0
            && X509_get_signature_nid(certificate) == NID_ED25519
    }

    private static func keyKind(of certificate: OpaquePointer) -> String {
        var algorithm: OpaquePointer?
        X509_PUBKEY_get0_param(&algorithm, nil, nil, nil, X509_get_X509_PUBKEY(certificate))
        guard let algorithm, let name = OBJ_nid2ln(OBJ_obj2nid(algorithm)) else { return "unknown" }
        return String(cString: name)
    }
}
