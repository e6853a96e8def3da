import Foundation
import NighTestKit
import Testing

@testable import NighCore
@testable import NighWeb

@Suite("The first message of a guest") struct GuestEntryTests {
    static let key = Array(0..<32) as [UInt8]
    private static let token = [UInt8](repeating: 7, count: 16)

    @Test func `The first message has a key, and a token or none, and any other is refused`() {
        let whole = [1] + Self.key + Self.token
        for count in 0...whole.count + 1 {
            let entry = GuestEntry(Array((whole + [0]).prefix(count)))
            #expect((entry != nil) == (count == 33 || count == 49), "\(count)")
            if let entry { #expect(entry.key == Self.key && entry.token == (count == 49 ? Self.token : nil)) }
        }
        for mark in [0, 2, 255] as [UInt8] { #expect(GuestEntry([mark] + whole.dropFirst()) == nil) }
    }

    @Test func `The PeerID is the hash of a label and the key, and each key has its own`() throws {
        let hash = ([12] + Array("nigh guest 1".utf8) + Self.key).withUnsafeBytes { SHA256.hash($0) }
        let entry = try #require(GuestEntry([1] + Self.key))
        #expect(entry.peer.bytes == hash)
        let other = try #require(GuestEntry([1] + [1] + Self.key.dropFirst()))
        #expect(other.peer != entry.peer)
        // A token changes nothing about who it is.
        #expect(GuestEntry([1] + Self.key + Self.token)?.peer == entry.peer)
    }

    @Test func `An answer is written as the protocol says`() throws {
        let guest = try #require(GuestEntry([1] + Self.key)).peer
        let host = Identity.ephemeral(seed: 1).peerID
        let advertisement = Advertisement(
            service: "chat", peer: host, name: DisplayName(fitting: "Puma"),
            info: try DiscoveryInfo(["a": "b"]))
        let bytes = GuestAnswer.entered(guest, advertisement).bytes
        #expect(Array(bytes[..<33]) == [1] + Array(guest.bytes))
        let length = Int(bytes[33]) << 8 | Int(bytes[34])
        #expect(bytes.count == 35 + length)
        #expect(Advertisement(bytes: Array(bytes[35...])) == advertisement)
        let refused = GuestAnswer.refused(.tooMany(seconds: 260)).bytes
        let words = Array(GuestRefusal.tooMany(seconds: 260).words.utf8)
        #expect(refused == [2, 3, 0, 0, 1, 4, UInt8(words.count)] + words)
    }

    @Test func `Each reason has its code, words of at most 255 bytes, and seconds only if there are any`() {
        let codes: [(GuestRefusal, UInt8)] = [
            (.unknown, 1), (.used, 1), (.old, 1), (.forgotten, 1), (.full, 2), (.tooMany(seconds: 9), 3),
            (.revoked, 4),
        ]
        for (reason, code) in codes {
            #expect(reason.code == code && (1...255).contains(reason.words.utf8.count))
            #expect(reason.pause == (code == 3 ? 9 : 0))
        }
    }
}

@Suite("What docs/reference/PROTOCOL.md says of guests") struct GuestPageTests {
    @Test func `The example of the protocol's page is what is sent`() throws {
        let page = RepositoryFile.text(of: "docs/reference/PROTOCOL.md")
        let section = try #require(page.components(separatedBy: "### 2.10").last)
        let lines = section.components(separatedBy: "```")[1].split(separator: "\n")
            .map { $0.prefix { $0 != "#" } }
        let entry = try #require(
            GuestEntry([1] + [UInt8](repeating: 0xA1, count: 32) + [UInt8](repeating: 0xB2, count: 16)))
        #expect(lines[0].contains("01  A1 ×32  B2 ×16"))

        let puma = try #require(PeerID("ct6ox7n3gtk7sav6qwuepg6keydyxie3wympqtdmtaruxjodza7a"))
        let answer = GuestAnswer.entered(
            entry.peer, Advertisement(service: "fourinarow", peer: puma, name: DisplayName(fitting: "Puma")))
        var shown: [UInt8] = []
        for word in lines[1...4].joined(separator: " ").split(separator: " ") where word != "←" {
            if word.hasPrefix("\"") {
                shown += word.utf8.dropFirst().dropLast()
            } else {
                shown.append(try #require(UInt8(word, radix: 16)))
            }
        }
        #expect(shown == answer.bytes)
    }
}
