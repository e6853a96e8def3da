import NighTestKit
import Testing

@testable import NighCore

/// Tests what a link believes of a session that claims to act for an identity.
@Suite struct DelegationTests {
    private static let puma = Identity.ephemeral(seed: 1)
    private static let lynx = Identity.ephemeral(seed: 2)
    private static let session = puma.makeDelegate(withKeyOf: .ephemeral(seed: 3))

    private func hello(
        of identity: Identity, service: ServiceName = "test", incarnation: UInt64 = 7
    ) -> Hello {
        var hello = Frames.hello(incarnation: incarnation, service: service)
        hello.peer = identity.peerID
        hello.delegation = identity.delegation(service: service, incarnation: incarnation)
        return hello
    }

    /// Links a session of this key that sends `hello` with Lynx.
    private func link(_ identity: Identity, _ hello: Hello, isPlain: Bool = false) throws -> LinkPair {
        func settings(_ identity: Identity, _ hello: Hello) throws -> LinkMachine.Settings {
            LinkMachine.Settings(
                hello: hello, timings: SessionTimings().link,
                offer: isPlain ? .plaintext : .tls(try TLSContext(identity)))
        }
        let pair = LinkPair(
            dialling: try settings(identity, hello),
            accepting: try settings(Self.lynx, self.hello(of: Self.lynx, service: hello.service)))
        try pair.deliverAll()
        return pair
    }

    @Test func `A session with a key of its own proves that it acts for an identity`() throws {
        let pair = try link(Self.session, hello(of: Self.session))
        #expect(pair.accepting.machine.provenPeer == Self.session.peerID)
        #expect(pair.accepting.machine.provenIdentity == Self.puma.peerID)
        #expect(pair.dialling.machine.provenIdentity == Self.lynx.peerID, "which has the identity's own key")
    }

    @Test
    func `A delegation for another key, service or incarnation, or with a changed signature, ends the link`()
        throws
    {
        let mallory = Identity.ephemeral(seed: 4)
        let own = try #require(hello(of: Self.session).delegation)
        var changed = own.signature
        changed[40] ^= 1
        let attacks: [(String, Identity, Delegation?)] = [
            ("another's delegation", mallory, own),
            ("of another service", Self.session, Self.session.delegation(service: "other", incarnation: 7)),
            (
                "of another incarnation", Self.session,
                Self.session.delegation(service: "test", incarnation: 8)
            ),
            (
                "of another identity", Self.session,
                Delegation(publicKey: Self.lynx.publicKey, signature: own.signature)
            ),
            ("a changed signature", Self.session, Delegation(publicKey: own.publicKey, signature: changed)),
        ]
        for (attack, key, delegation) in attacks {
            var hello = hello(of: key)
            hello.delegation = delegation
            let pair = try link(key, hello)
            #expect(pair.accepting.closed?.cause == .insecure(.claimsAnotherIdentity), "\(attack)")
            #expect(pair.dialling.closed?.code == .claimsAnotherPeer, "\(attack)")
            #expect(!pair.accepting.notes.contains(.opened) && pair.accepting.machine.provenIdentity == nil)
        }
    }

    /// Each kind of thing that an identity signs begins in another way.
    @Test func `A signature that the identity made for something else is no delegation`() throws {
        let incarnation: UInt64 = 7
        // The bytes that an introduction token signs, with the session in the place of the guest.
        var token = FieldWriter()
        token.write(short: "nigh introduction 1")
        token.write(raw: Self.session.peerID.bytes)
        token.write(raw: Self.lynx.peerID.bytes)
        token.write(incarnation)
        token.write(UInt64(0))
        // The bytes that a client signs in a TLS 1.3 handshake (RFC 8446, 4.4.3).
        let handshake =
            [UInt8](repeating: 0x20, count: 64) + Array("TLS 1.3, client CertificateVerify".utf8) + [0]
            + Self.session.peerID.bytes
        for message in [token.bytes, handshake] {
            var hello = hello(of: Self.session)
            hello.delegation = Delegation(
                publicKey: Self.puma.publicKey, signature: Self.puma.signature(of: message))
            let pair = try link(Self.session, hello)
            #expect(pair.accepting.closed?.cause == .insecure(.claimsAnotherIdentity))
        }
    }

    /// Such a signature fits every statement, and nobody needs a private key for it.
    @Test func `A key of small order, or in a second encoding, is nobody's identity`() throws {
        let rest = [UInt8](repeating: 0xff, count: 30)
        let keys: [[UInt8]] = [
            [1] + [UInt8](repeating: 0, count: 31), [UInt8](repeating: 0, count: 32), [0xec] + rest + [0x7f],
            [1] + [UInt8](repeating: 0, count: 30) + [0x80], [0xee] + rest + [0x7f], [0xed] + rest + [0xff],
        ]
        for key in keys {
            #expect(PeerID(publicKey: key) == nil)
            var hello = hello(of: Self.session)
            hello.delegation = Delegation(
                publicKey: key, signature: [1] + [UInt8](repeating: 0, count: 63))
            #expect(hello.provenIdentity == nil)
        }
        #expect(PeerID(publicKey: Self.puma.publicKey) == Self.puma.peerID)
    }

    @Test func `Without encryption a delegation is neither sent nor believed`() throws {
        let pair = try link(Self.session, hello(of: Self.session), isPlain: true)
        #expect(pair.accepting.machine.phase == .open)
        #expect(pair.accepting.machine.peerHello?.delegation == nil)
        #expect(pair.accepting.machine.provenIdentity == nil)
    }

    @Test func `A hello keeps its delegation on the wire, and one that is cut short is malformed`() throws {
        let hello = hello(of: Self.session)
        let delegation = try #require(hello.delegation)
        let bytes = hello.payload
        #expect(try Frames.reading(bytes, Hello.init(reading:)) == hello)
        #expect(bytes.suffix(99) == [3, 0, 96] + delegation.publicKey + delegation.signature)
        #expect(throws: WireError.self) {
            try Frames.reading(bytes.dropLast(99) + [3, 0, 95] + bytes.suffix(95), Hello.init(reading:))
        }
    }
}
