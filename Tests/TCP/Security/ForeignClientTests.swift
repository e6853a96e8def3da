import COpenSSL
import NighTestKit
import NighUV
import Testing

@testable import NighCore
@testable import NighTCP

/// Tests that clients of another make reach a session's hello if they follow the rules of PROTOCOL.md, and otherwise
/// learn the reason. `TLSRefusalTests` has all the rules.
struct ForeignClientTests {
    private static let rules = "-tls1_3 -alpn nigh/1"

    private func expectNewPeerConnects(_ room: Room, _ host: SessionProbe) throws {
        let guest = try room.join("Guest", role: .client)
        #expect(try room.call(guest, port: host.port) == .success(host.id))
        try room.wait("the guest", host) { $0.state(of: guest.id) == .connected }
        try room.exchangeMessages(guest, host)
    }

    @Test func `Openssl completes the handshake up to the hello`() throws {
        let room = Room()
        let host = try room.join("Host of all")
        let output = try ForeignClient.with(RawPeer.Credentials()) { files in
            // Before the hello, s_client prints whose certificate it saw, so that output is suppressed.
            try ForeignClient(port: host.port, "\(Self.rules) \(files) -verify_quiet 2>/dev/null") { bytes in
                bytes.count >= 4 && bytes.count >= 4 + Int(bytes[1]) << 8 + Int(bytes[2])
            }.output
        }
        try #require(output.count > 4, "nothing came")
        #expect(output[3] == FrameType.hello.rawValue)
        let hello = try output[4...].withUnsafeBytes { bytes throws(WireError) in try Hello(reading: bytes) }
        #expect(hello.peer == host.id && hello.service == "tests" && hello.name.description == "Host of all")
        #expect(hello.prefaces == PrefaceTeller.preface + PrefaceTeller.preface)
        try expectNewPeerConnects(room, host)
    }

    @Test func `A peer built only on libssl connects and exchanges messages`() throws {
        let room = Room()
        let host = try room.join("Host")
        let credentials = RawPeer.Credentials()
        let peerID = try #require(credentials.peerID)
        let raw = RawPeer(.dialling, credentials)
        let socket = PlainSocket(connectedTo: host.port)
        socket.write(PrefaceTeller.preface)
        let theirs = socket.read(8)
        #expect(theirs == PrefaceTeller.preface)
        socket.write(raw.exchange([]))
        func receive(_ isEnough: () -> Bool) {
            while !isEnough() {
                let bytes = socket.readSome()
                guard !bytes.isEmpty else { return }
                socket.write(raw.exchange(bytes))
            }
        }
        func frame(_ type: UInt8, _ payload: [UInt8]) -> [UInt8] {
            [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type] + payload
        }
        func frames() -> [UInt8] {
            var types: [UInt8] = []
            var rest = raw.received[...]
            while rest.count >= 4 {
                let bytes = Array(rest.prefix(4))
                let length = Int(bytes[0]) << 16 + Int(bytes[1]) << 8 + Int(bytes[2])
                guard rest.count >= 4 + length else { break }
                types.append(bytes[3])
                rest = rest.dropFirst(4 + length)
            }
            return types
        }
        receive { frames().contains(1) }
        var hello: [UInt8] = [1, 1, 0, 0, 0, 0] + peerID.bytes + [0, 0, 0, 0, 0, 0, 0, 7]
        hello += [0, 0, 0x40, 0, 1, 0, 0, 0, 5] + Array("tests".utf8) + [3] + Array("Raw".utf8)
        hello += [1, 0, 16] + PrefaceTeller.preface + theirs
        let standing = [UInt8](repeating: 0, count: 16) + [0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0]
        var invite: [UInt8] = [9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 1] + standing
        invite += [0, 0, 0x75, 0x30, 0, 2] + Array("hi".utf8)
        socket.write(raw.seal(frame(1, hello) + frame(6, invite)))
        receive { frames().contains(7) }
        #expect(frames().contains(7), "\(frames())")
        #expect(host.invitations.map(\.context) == [Array("hi".utf8)])
        #expect(host.invitations.map(\.peer.id) == [peerID] && host.peer(peerID)?.name.description == "Raw")
        socket.write(raw.seal(frame(0x10, Array("hello".utf8))))
        try room.wait("the message", host) { $0.texts == ["hello"] }
        try expectNewPeerConnects(room, host)
    }

    /// Each case with the reason that the session counts, and words that the client prints.
    @Test func `A client that breaks the rules is refused with the reason, and the next client is served`()
        throws
    {
        let signer = RawPeer.key(EVP_PKEY_ED25519)
        defer { EVP_PKEY_free(signer) }
        let wellMade = RawPeer.Credentials()
        let cases: [(String, RawPeer.Credentials?, cause: String, words: String)] = [
            ("-tls1_2 -alpn nigh/1", wellMade, "TLS too old", "protocol version"),
            ("-tls1_3", wellMade, "no common application protocol", "no application protocol"),
            ("\(Self.rules) -groups P-256", wellMade, "TLS malformed", "handshake failure"),
            (Self.rules, nil, "no certificate", "certificate required"),
            (
                Self.rules, RawPeer.Credentials(until: "20010101000000Z"), "certificate expired",
                "certificate expired"
            ),
            (
                Self.rules, RawPeer.Credentials(from: "20900101000000Z"), "certificate not yet valid",
                "bad certificate"
            ),
            (
                Self.rules, RawPeer.Credentials(signer: signer, issuer: "other"),
                "certificate not self-signed", "decrypt error"
            ),
        ]
        let room = Room()
        let host = try room.join("Host")
        for (arguments, credentials, cause, words) in cases {
            let client = try ForeignClient.with(credentials) { files in
                try ForeignClient(port: host.port, "\(arguments) \(files)")
            }
            #expect(client.text.contains(words), "\(client.text)")
            try room.wait("the link to end", inside: host) { $0.inspection.links == 0 }
            #expect(try room.statistics(host).linksEnded[cause] == 1, "\(cause)")
        }
        #expect(try room.statistics(host).linksEnded.count == cases.count)
        try expectNewPeerConnects(room, host)
    }
}
