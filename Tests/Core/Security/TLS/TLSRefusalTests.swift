import COpenSSL
import NighTestKit
import Testing

@testable import NighCore

extension LinkSide {
    fileprivate var other: LinkSide { self == .dialling ? .accepting : .dialling }
}

/// Tests peers that do not follow the rules. They are made with libssl alone.
@Suite struct TLSRefusalTests {
    private static let own = Identity.ephemeral(seed: 1)

    private func channel(_ side: LinkSide, expected: PeerID? = nil) throws -> TLSChannel {
        TLSChannel(try TLSContext(Self.own), side: side, expected: expected, ticket: nil)
    }

    /// Returns the peer that a certificate names by its own key.
    private static func peer(
        of certificate: OpaquePointer, now: Int
    ) throws(TLSCertificate.Refusal) -> PeerID {
        let chain = OPENSSL_sk_new_null()
        defer { OPENSSL_sk_free(chain) }
        OPENSSL_sk_push(chain, UnsafeRawPointer(certificate))
        return try TLSCertificate.peer(of: chain, expected: nil, now: now)
    }

    /// A peer of one kind, and how it is refused.
    struct Offender: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// The sides on which we meet it.
        let sides: [LinkSide]
        let fault: SecurityFault
        /// The words of its libssl about our answer.
        let alert: String
        /// Makes the peer, for its own side.
        let make: @Sendable (LinkSide) -> RawPeer

        fileprivate init(
            _ name: String, on sides: [LinkSide] = [.dialling, .accepting], _ fault: SecurityFault,
            _ alert: String = "", _ make: @escaping @Sendable (LinkSide) -> RawPeer
        ) {
            testDescription = name
            self.sides = sides
            self.fault = fault
            self.alert = alert
            self.make = make
        }
    }

    /// A peer whose certificate another key of this kind has signed.
    private static func peer(
        _ side: LinkSide, signedBy kind: Int32, issuer: String = "raw"
    ) -> RawPeer {
        let other = RawPeer.key(kind)
        defer { EVP_PKEY_free(other) }
        return RawPeer(side, RawPeer.Credentials(signer: other, issuer: issuer))
    }

    private static func peer(_ side: LinkSide, _ key: Int32, version: Int32) -> RawPeer {
        RawPeer(side, RawPeer.Credentials(RawPeer.key(key)), protocols: side == .dialling ? [] : ["nigh/1"]) {
            SSL_CTX_set_security_level($0, 0)
            SSL_CTX_ctrl($0, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(version), nil)
            SSL_CTX_ctrl($0, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
        }
    }

    static let offenders: [Offender] =
        [
            Offender("an expired certificate", .certificateExpired, "certificate expired") {
                RawPeer($0, RawPeer.Credentials(until: "20010101000000Z"))
            },
            Offender("a certificate of the future", .certificateNotYetValid, "bad certificate") {
                RawPeer($0, RawPeer.Credentials(from: "20980101000000Z"))
            },
            Offender("another issuer", .notSelfSigned, "alert") {
                peer($0, signedBy: EVP_PKEY_ED25519, issuer: "other")
            },
            Offender("a certificate without its key", .damaged, "decrypt error") { side in
                let stolen = RawPeer.key(EVP_PKEY_ED25519)
                defer { EVP_PKEY_free(stolen) }
                let credentials = RawPeer.Credentials()
                return RawPeer(side, credentials) { _ in credentials.claim(stolen) }
            },
            Offender("a chain", .severalCertificates(2)) { side in
                let second = RawPeer.Credentials()
                return RawPeer(side) { context in
                    SSL_CTX_ctrl(
                        context, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(second.certificate))
                }
            },
            Offender("no certificate", on: [.accepting], .noCertificate, "certificate required") {
                RawPeer($0, nil)
            },
            Offender("no protocol", on: [.dialling], .noCommonProtocol) {
                RawPeer($0, RawPeer.Credentials(), protocols: [])
            },
            Offender("TLS 1.1", on: [.accepting], .versionTooOld, "protocol version") {
                peer($0, EVP_PKEY_EC, version: TLS1_1_VERSION)
            },
            Offender("TLS 1.2", .versionTooOld, "") { peer($0, EVP_PKEY_EC, version: TLS1_2_VERSION) },
        ]
        + [EVP_PKEY_RSA, EVP_PKEY_EC].flatMap { kind in
            [
                Offender("signed with key \(kind)", on: [.dialling], .notSelfSigned) {
                    peer($0, signedBy: kind)
                },
                // It was told that only Ed25519 counts, so it has no certificate to show.
                Offender("a client's key \(kind)", on: [.accepting], .noCertificate) {
                    RawPeer($0, RawPeer.Credentials(RawPeer.key(kind)))
                },
                Offender(
                    "a server's key \(kind)", on: [.dialling], .refused("no common way to secure the link")
                ) {
                    RawPeer($0, RawPeer.Credentials(RawPeer.key(kind)))
                },
            ]
        }
        + [[], ["h2"], ["nigh/2", "http/1.1"], ["nigh/10"], ["nigh/"]].map { protocols in
            Offender("protocols \(protocols)", on: [.accepting], .noCommonProtocol, "no application protocol")
            {
                RawPeer($0, RawPeer.Credentials(), protocols: protocols)
            }
        }

    @Test(arguments: offenders)
    func `A peer that breaks a rule is refused, and proves nothing`(_ offender: Offender) throws {
        for side in offender.sides {
            let raw = offender.make(side.other)
            let channel = try channel(side)
            let error = raw.meet(channel)
            #expect(error?.cause == .insecure(offender.fault), "\(side)")
            #expect(offender.alert.isEmpty || raw.failure?.contains(offender.alert) == true, "\(side)")
            #expect(!channel.isEstablished && channel.provenPeer == nil)
            if offender.fault == .certificateExpired {
                #expect(error?.advice == "check the clocks of both devices")
            }
            if offender.fault == .noCommonProtocol { #expect(!raw.sawCertificate) }
        }
    }

    /// The handshake's own signature covers the certificate; the signature inside proves nothing more, so it is not
    /// validated.
    @Test(arguments: [LinkSide.dialling, .accepting], [false, true])
    func `A peer that follows the rules is accepted`(side: LinkSide, isSignedByAnother: Bool) throws {
        let other = RawPeer.key(EVP_PKEY_ED25519)
        defer { EVP_PKEY_free(other) }
        let credentials = RawPeer.Credentials(signer: isSignedByAnother ? other : nil)
        let protocols = side == .accepting ? ["h2", "nigh/1"] : ["nigh/1"]
        let raw = RawPeer(side.other, credentials, protocols: protocols)
        let channel = try channel(side, expected: side == .dialling ? credentials.peerID : nil)
        #expect(raw.meet(channel) == nil)
        #expect(raw.isEstablished && channel.isEstablished)
        #expect(channel.provenPeer == credentials.peerID && credentials.peerID != nil)
        #expect(raw.sawCertificate)
        var plain = ByteQueue()
        var wire = ByteQueue()
        try channel.receive(ByteSlice(raw.seal([1, 2, 3])), plain: &plain, wire: &wire)
        #expect(plain.bytes == [1, 2, 3])
        try channel.seal(&plain, into: &wire)
        _ = raw.exchange(wire.bytes)
        #expect(raw.received == [1, 2, 3])
    }

    @Test(arguments: [(EVP_PKEY_RSA, "rsaEncryption"), (EVP_PKEY_EC, "id-ecPublicKey")])
    func `Another kind of key in a certificate is refused`(kind: Int32, name: String) {
        let credentials = RawPeer.Credentials(RawPeer.key(kind))
        let refusal = #expect(throws: TLSCertificate.Refusal.self) {
            try Self.peer(of: credentials.certificate, now: 1_000_000_000)
        }
        #expect(refusal?.cause == .insecure(.wrongKeyKind(name)))
        #expect(throws: TLSCertificate.Refusal.self) {
            try TLSCertificate.peer(of: nil, expected: nil, now: 0)
        }
    }

    @Test func `Own certificates are always valid and reveal nothing`() throws {
        let certificate = try #require(TLSCertificate.selfSigned(Self.own.keyPair))
        defer { X509_free(certificate) }
        for now in [1, 1_000_000_000, 5_000_000_000, 250_000_000_000] {
            #expect(try Self.peer(of: certificate, now: now) == Self.own.peerID)
        }
        #expect(X509_get_ext_count(certificate) == 0)
        #expect(X509_get_version(certificate) == 2)
        let other = try #require(TLSCertificate.selfSigned(Self.own.keyPair))
        defer { X509_free(other) }
        #expect(X509_cmp(certificate, other) != 0, "serial numbers are random")
        #expect(i2d_X509(certificate, nil) == i2d_X509(other, nil))
    }

    @Test func `A wrong peer does not see the certificate`() throws {
        let credentials = RawPeer.Credentials()
        let raw = RawPeer(.accepting, credentials)
        let expected = Identity.ephemeral(seed: 9).peerID
        let error = raw.meet(try channel(.dialling, expected: expected))
        let found = try #require(credentials.peerID)
        #expect(error?.cause == .wrongPeer(expected: expected, found: found))
        #expect(!raw.sawCertificate && !raw.isEstablished)
        #expect(raw.failure?.contains("bad certificate") == true)
    }

    @Test func `A refused certificate is reported after the handshake`() throws {
        let raw = RawPeer(.accepting) { context in
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
            SSL_CTX_set_cert_verify_callback(
                context,
                { store, _ in
                    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_HAS_EXPIRED)
                    return 0
                }, nil)
        }
        let channel = try channel(.dialling)
        let error = raw.meet(channel)
        #expect(channel.isEstablished)
        #expect(
            error?.cause.description
                == "the other side refused our certificate: it has expired by the other side's clock")
    }

    @Test(arguments: [
        (42, "the other side refused our certificate: it is bad, or another peer was expected"),
        (70, "the other side does not speak TLS 1.3"),
        (120, "the other side speaks TLS, but not for Nigh"),
        (200, "the other side ended the link: alert 200"),
    ])
    func `An alert instead of a handshake is reported as text`(alert: UInt8, words: String) throws {
        let channel = try channel(.dialling)
        var wire = ByteQueue()
        var plain = ByteQueue()
        try channel.begin(wire: &wire)
        let error = #expect(throws: NighError.self) {
            try channel.receive(ByteSlice([21, 3, 3, 0, 2, 2, alert]), plain: &plain, wire: &wire)
        }
        #expect(error?.cause.description == words)
        #expect(error?.stage == .securing)
        // A channel that has failed stays failed.
        #expect(throws: NighError.self) { try channel.receive(ByteSlice([1]), plain: &plain, wire: &wire) }
    }
}

extension RawPeer {
    /// Performs a handshake with `channel` and exchanges what both send; returns the error that ended the channel, if
    /// any.
    fileprivate func meet(_ channel: TLSChannel) -> NighError? {
        var wire = ByteQueue()
        var plain = ByteQueue()
        do throws(NighError) {
            try channel.begin(wire: &wire)
            var answer = exchange(wire.bytes)
            for _ in 0..<10 {
                wire.removeAll()
                if !answer.isEmpty { try channel.receive(ByteSlice(answer), plain: &plain, wire: &wire) }
                answer = exchange(wire.bytes)
                if answer.isEmpty, wire.isEmpty { break }
            }
            return nil
        } catch let failure {
            _ = exchange(wire.bytes)
            return failure
        }
    }
}
