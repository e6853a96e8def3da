import COpenSSL

extension SecurityFault {
    /// Creates the fault that an alert of the other side stands for (RFC 8446, section 6).
    init(alert: Int32) {
        switch alert {
        case 42: self = .certificateRefused("it is bad, or another peer was expected")
        case 43: self = .certificateRefused("it is of an unsupported kind")
        case 44: self = .certificateRefused("it was revoked")
        case 45: self = .certificateRefused("it has expired by the other side's clock")
        case 46: self = .certificateRefused("unknown reason")
        case 48: self = .certificateRefused("its issuer is unknown")
        case 49: self = .certificateRefused("access denied")
        case 116: self = .certificateRefused("it received none")
        case 70: self = .versionTooOld
        case 120: self = .noCommonProtocol
        default: self = .refused(Self.reasons[alert] ?? "alert \(alert)")
        }
    }

    private static let reasons: [Int32: String] = [
        0: "it closed the link", 10: "unexpected message", 20: "bytes were changed on the way",
        22: "a record was too long", 40: "no common way to secure the link", 47: "an invalid value",
        50: "it could not read a message", 51: "a signature or key did not fit", 71: "insufficient security",
        80: "an error inside the other side", 86: "a fallback that it does not allow", 90: "the user gave up",
        109: "an extension was missing", 110: "an unsupported extension", 112: "an unknown server name",
        115: "an unknown shared key",
    ]

    /// Creates the fault that an entry of libssl's error queue stands for.
    init(libssl code: UInt) {
        let reason = ERR_GET_REASON(code)
        if reason > SSL_AD_REASON_OFFSET {
            self.init(alert: reason - SSL_AD_REASON_OFFSET)
            return
        }
        switch reason {
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: self = .noCertificate
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_SSL_VERSION, SSL_R_VERSION_TOO_LOW: self = .versionTooOld
        case SSL_R_NO_APPLICATION_PROTOCOL: self = .noCommonProtocol
        case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC, SSL_R_BAD_SIGNATURE, SSL_R_DIGEST_CHECK_FAILED:
            self = .damaged
        default:
            self = .malformed(ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)")
        }
    }
}
