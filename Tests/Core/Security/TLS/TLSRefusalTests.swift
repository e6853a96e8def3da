import COpenSSL
import NighTestKit
import Testing

@testable import NighCore

/// Tests peers that do not follow the rules. They are made with libssl alone.
@Suite struct TLSRefusalTests {
    private static let own = Identity.ephemeral(seed: 1)

    private func channel(_ side: LinkSide, expected: PeerID? = nil) throws -> TLSChannel {
        TLSChannel(try TLSContext(Self.own), side: side, expected: expected, ticket: nil)
    }

    @Test(arguments: [LinkSide.dialling, .accepting])
    func aPeerThatFollowsTheRulesIsAccepted(side: LinkSide) throws {
        let credentials = RawPeer.Credentials()
        let raw = RawPeer(side == .dialling ? .accepting : .dialling, credentials)
        let channel = try channel(side)
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

    @Test(arguments: [LinkSide.dialling, .accepting])
    func anExpiredCertificateIsRefused(side: LinkSide) throws {
        let raw = RawPeer(
            side == .dialling ? .accepting : .dialling, RawPeer.Credentials(until: "20010101000000Z"))
        let channel = try channel(side)
        let error = raw.meet(channel)
        #expect(error?.cause == .insecure(.certificateExpired))
        #expect(error?.advice == "check the clocks of both devices")
        #expect(raw.failure?.contains("certificate expired") == true)
        #expect(!channel.isEstablished && channel.provenPeer == nil)
    }

    @Test(arguments: [LinkSide.dialling, .accepting])
    func aCertificateThatIsNotYetValidIsRefused(side: LinkSide) throws {
        let raw = RawPeer(
            side == .dialling ? .accepting : .dialling, RawPeer.Credentials(from: "20980101000000Z"))
        #expect(raw.meet(try channel(side))?.cause == .insecure(.certificateNotYetValid))
        #expect(raw.failure?.contains("bad certificate") == true)
    }

    @Test(arguments: [LinkSide.dialling, .accepting])
    func aCertificateSignedByAnotherKeyIsRefused(side: LinkSide) throws {
        let other = RawPeer.key(EVP_PKEY_ED25519)
        defer { EVP_PKEY_free(other) }
        let raw = RawPeer(
            side == .dialling ? .accepting : .dialling, RawPeer.Credentials(signer: other, issuer: "other"))
        #expect(raw.meet(try channel(side))?.cause == .insecure(.notSelfSigned))
        #expect(raw.failure?.contains("alert") == true)
    }

    @Test(arguments: [EVP_PKEY_RSA, EVP_PKEY_EC])
    func aCertificateSignedWithAnotherKindOfKeyIsRefused(kind: Int32) throws {
        let other = RawPeer.key(kind)
        defer { EVP_PKEY_free(other) }
        let raw = RawPeer(.accepting, RawPeer.Credentials(signer: other))
        #expect(raw.meet(try channel(.dialling))?.cause == .insecure(.notSelfSigned))
    }

    /// The handshake's own signature covers the certificate; the signature inside proves nothing more.
    @Test(arguments: [LinkSide.dialling, .accepting])
    func theSignatureOfTheCertificateIsNotValidated(side: LinkSide) throws {
        let other = RawPeer.key(EVP_PKEY_ED25519)
        defer { EVP_PKEY_free(other) }
        let credentials = RawPeer.Credentials(signer: other)
        let raw = RawPeer(side == .dialling ? .accepting : .dialling, credentials)
        let channel = try channel(side)
        #expect(raw.meet(channel) == nil)
        #expect(channel.provenPeer == credentials.peerID && credentials.peerID != nil)
    }

    @Test(arguments: [LinkSide.dialling, .accepting])
    func aPeerWithoutTheKeyOfItsCertificateIsRefused(side: LinkSide) throws {
        let stolen = RawPeer.key(EVP_PKEY_ED25519)
        defer { EVP_PKEY_free(stolen) }
        let credentials = RawPeer.Credentials()
        let raw = RawPeer(side == .dialling ? .accepting : .dialling, credentials) { _ in
            credentials.claim(stolen)
        }
        let channel = try channel(side)
        #expect(raw.meet(channel)?.cause == .insecure(.damaged))
        #expect(raw.failure?.contains("decrypt error") == true)
        #expect(!channel.isEstablished && channel.provenPeer == nil)
    }

    @Test(arguments: [LinkSide.dialling, .accepting])
    func aChainIsRefused(side: LinkSide) throws {
        let second = RawPeer.Credentials()
        let raw = RawPeer(side == .dialling ? .accepting : .dialling) { context in
            SSL_CTX_ctrl(
                context, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(second.certificate))
        }
        #expect(raw.meet(try channel(side))?.cause == .insecure(.severalCertificates(2)))
    }

    @Test func aClientWithoutACertificateIsRefused() throws {
        let raw = RawPeer(.dialling, nil)
        #expect(raw.meet(try channel(.accepting))?.cause == .insecure(.noCertificate))
        #expect(raw.failure?.contains("certificate required") == true)
    }

    @Test(arguments: [EVP_PKEY_RSA, EVP_PKEY_EC])
    func aClientWithAnotherKindOfKeyIsRefused(kind: Int32) throws {
        // It was told that only Ed25519 counts, so it has no certificate to show.
        let raw = RawPeer(.dialling, RawPeer.Credentials(RawPeer.key(kind)))
        #expect(raw.meet(try channel(.accepting))?.cause == .insecure(.noCertificate))
    }

    @Test(arguments: [EVP_PKEY_RSA, EVP_PKEY_EC])
    func aServerWithAnotherKindOfKeyRefusesTheLink(kind: Int32) throws {
        let raw = RawPeer(.accepting, RawPeer.Credentials(RawPeer.key(kind)))
        let error = raw.meet(try channel(.dialling))
        #expect(error?.cause == .insecure(.refused("no common way to secure the link")))
    }

    @Test(arguments: [EVP_PKEY_RSA, EVP_PKEY_EC])
    func anotherKindOfKeyInACertificateIsRefused(kind: Int32) {
        let credentials = RawPeer.Credentials(RawPeer.key(kind))
        let chain = OPENSSL_sk_new_null()
        defer { OPENSSL_sk_free(chain) }
        OPENSSL_sk_push(chain, UnsafeRawPointer(credentials.certificate))
        do throws(TLSCertificate.Refusal) {
            _ = try TLSCertificate.peer(of: chain, expected: nil, now: 1_000_000_000)
            Issue.record("accepted")
        } catch {
            guard case .insecure(.wrongKeyKind(let name)) = error.cause else {
                Issue.record("\(error.cause)")
                return
            }
            #expect(name == (kind == EVP_PKEY_RSA ? "rsaEncryption" : "id-ecPublicKey"))
        }
    }

    @Test func noCertificateAtAllIsRefused() {
        #expect(throws: TLSCertificate.Refusal.self) {
            try TLSCertificate.peer(of: nil, expected: nil, now: 0)
        }
    }

    @Test func ownCertificatesAreAlwaysValidAndRevealNothing() throws {
        let certificate = try #require(TLSCertificate.selfSigned(Self.own.keyPair))
        defer { X509_free(certificate) }
        let chain = OPENSSL_sk_new_null()
        defer { OPENSSL_sk_free(chain) }
        OPENSSL_sk_push(chain, UnsafeRawPointer(certificate))
        for now in [1, 1_000_000_000, 5_000_000_000, 250_000_000_000] {
            #expect(try TLSCertificate.peer(of: chain, expected: nil, now: now) == Self.own.peerID)
        }
        #expect(X509_get_ext_count(certificate) == 0)
        #expect(X509_get_version(certificate) == 2)
        let other = try #require(TLSCertificate.selfSigned(Self.own.keyPair))
        defer { X509_free(other) }
        #expect(X509_cmp(certificate, other) != 0, "serial numbers are random")
        #expect(i2d_X509(certificate, nil) == i2d_X509(other, nil))
    }

    @Test(arguments: [[], ["h2"], ["nigh/2", "http/1.1"], ["nigh/10"], ["nigh/"]])
    func aClientOfAnotherProtocolIsRefused(protocols: [String]) throws {
        let raw = RawPeer(.dialling, RawPeer.Credentials(), protocols: protocols)
        #expect(raw.meet(try channel(.accepting))?.cause == .insecure(.noCommonProtocol))
        #expect(raw.failure?.contains("no application protocol") == true)
    }

    @Test func aClientThatOffersSeveralProtocolsIsAccepted() throws {
        let raw = RawPeer(.dialling, RawPeer.Credentials(), protocols: ["h2", "nigh/1"])
        #expect(raw.meet(try channel(.accepting)) == nil)
    }

    @Test func aServerThatSelectsNoProtocolIsRefused() throws {
        let raw = RawPeer(.accepting, RawPeer.Credentials(), protocols: [])
        #expect(raw.meet(try channel(.dialling))?.cause == .insecure(.noCommonProtocol))
        #expect(!raw.sawCertificate)
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_1_VERSION])
    func anOlderClientIsRefused(version: Int32) throws {
        let raw = RawPeer(.dialling, RawPeer.Credentials(RawPeer.key(EVP_PKEY_EC)), protocols: []) {
            SSL_CTX_set_security_level($0, 0)
            SSL_CTX_ctrl($0, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(version), nil)
            SSL_CTX_ctrl($0, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
        }
        #expect(raw.meet(try channel(.accepting))?.cause == .insecure(.versionTooOld))
        #expect(raw.failure?.contains("protocol version") == true)
    }

    @Test func anOlderServerIsRefused() throws {
        let raw = RawPeer(.accepting, RawPeer.Credentials(RawPeer.key(EVP_PKEY_EC))) {
            SSL_CTX_ctrl($0, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        }
        #expect(raw.meet(try channel(.dialling))?.cause == .insecure(.versionTooOld))
    }

    @Test func aWrongPeerDoesNotSeeTheCertificate() throws {
        let credentials = RawPeer.Credentials()
        let raw = RawPeer(.accepting, credentials)
        let expected = Identity.ephemeral(seed: 9).peerID
        let error = raw.meet(try channel(.dialling, expected: expected))
        let found = try #require(credentials.peerID)
        #expect(error?.cause == .wrongPeer(expected: expected, found: found))
        #expect(!raw.sawCertificate && !raw.isEstablished)
        #expect(raw.failure?.contains("bad certificate") == true)
    }

    @Test func theDialledPeerIsAccepted() throws {
        let credentials = RawPeer.Credentials()
        let raw = RawPeer(.accepting, credentials)
        #expect(raw.meet(try channel(.dialling, expected: credentials.peerID)) == nil)
        #expect(raw.isEstablished)
    }

    @Test func aRefusedCertificateIsReportedAfterTheHandshake() throws {
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
        (40, "the other side ended the link: no common way to secure the link"),
        (70, "the other side does not speak TLS 1.3"),
        (120, "the other side speaks TLS, but not for Nigh"),
        (200, "the other side ended the link: alert 200"),
    ])
    func anAlertInsteadOfAHandshakeIsReportedAsText(alert: UInt8, words: String) throws {
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
