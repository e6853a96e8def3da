import Testing
import Worlds

@testable import NighCore

@Suite struct PeerIDTests {
    let random = PeerID(bytes: (0..<32).map { UInt8($0 * 37 & 255) })!

    @Test func `Bytes and text denote the same peer`() {
        #expect(PeerID(bytes: random.bytes) == random)
        #expect(PeerID(random.description) == random)
        #expect(random.description.utf8.count == 52)
        #expect(random.short == random.description.prefix(8))
        for (byte, text) in [
            (0, String(repeating: "a", count: 52)), (255, String(repeating: "7", count: 51) + "q"),
        ] as [(UInt8, String)] {
            let peer = PeerID(bytes: [UInt8](repeating: byte, count: 32))
            #expect(peer?.description == text && PeerID(text) == peer)
        }
    }

    /// A peer must have only one spelling. Otherwise lists of trusted peers could be deceived.
    @Test func `A PeerID has 32 bytes, and a text of one spelling without padding`() {
        for count in [0, 1, 31, 33, 64] {
            #expect(PeerID(bytes: [UInt8](repeating: 1, count: count)) == nil)
        }
        let text = random.description
        for other in [
            "", String(text.dropLast()), text + "a", text + "====", text.uppercased(), " " + text.dropFirst(),
            "0" + text.dropFirst(), "1" + text.dropFirst(), "ä" + text.dropFirst(2),
        ] {
            #expect(PeerID(other) == nil, "\(other)")
        }
        // The last character carries one bit of the PeerID and four that must be zero.
        let alphabet = "abcdefghijklmnopqrstuvwxyz234567"
        let accepted = alphabet.filter { PeerID(String(text.dropLast()) + String($0)) != nil }
        #expect(accepted == "aq")
    }

    @Test func `Peer i ds are ordered by their bytes`() {
        var generator = SeededGenerator(seed: 4)
        let peers = (0..<200).map { _ -> PeerID in
            // With equal beginnings, so that the order is often decided further back.
            let shared = Int.random(in: 0..<32, using: &generator)
            return PeerID(
                bytes: (0..<32).map { $0 < shared ? 200 : .random(in: 0...255, using: &generator) })!
        }
        for (left, right) in zip(peers, peers.dropFirst()) {
            #expect((left < right) == left.bytes.lexicographicallyPrecedes(right.bytes))
            #expect((left == right) == (left.bytes == right.bytes))
        }
        #expect(Set(peers).count == Set(peers.map(\.bytes)).count)
    }

    @Test func `Peers that differ in one byte are distinct`() {
        for index in 0..<32 {
            var bytes = random.bytes
            bytes[index] ^= 1
            #expect(PeerID(bytes: bytes) != random)
        }
    }

    /// RFC 4648, section 10, in lower case and without padding.
    @Test(arguments: [
        ("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq"), ("fooba", "mzxw6ytb"),
        ("foobar", "mzxw6ytboi"),
    ])
    func `Base 32 matches the standard`(plain: String, encoded: String) {
        #expect(Base32.encode(Array(plain.utf8)) == encoded)
        #expect(Base32.decode(encoded) == Array(plain.utf8))
    }

    @Test func `Base 32 decodes everything it encodes`() {
        var generator = SeededGenerator(seed: 5)
        for count in 0..<70 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            #expect(Base32.decode(Base32.encode(bytes)) == bytes)
        }
        for impossible in ["a", "aaa", "aaaaaa", "mz", "mzxr", "my="] {
            #expect(Base32.decode(impossible) == nil, "\(impossible)")
        }
    }
}
