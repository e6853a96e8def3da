import NighCore
import Testing

@Suite("The bytes of an advertisement")
struct AdvertisementBytesTests {
    private static let peer = Identity.ephemeral(seed: 1).peerID

    private static func advertisement(info: [String: String] = [:]) throws -> Advertisement {
        Advertisement(
            service: "chat", peer: peer, name: DisplayName(fitting: "K\u{FC}che 2"),
            info: try DiscoveryInfo(info))
    }

    @Test(arguments: [[:], ["table": "open", "empty": ""]]) func `are read back as the same advertisement`(
        info: [String: String]
    ) throws {
        let advertisement = try Self.advertisement(info: info)
        #expect(Advertisement(bytes: advertisement.bytes) == advertisement)
    }

    @Test func `name a peer with a blank name by its short PeerID`() throws {
        var bytes = try Self.advertisement().bytes
        let name = Array("K\u{FC}che 2".utf8)
        let start = try #require(bytes.indices.first { bytes[$0...].starts(with: name) })
        for index in start..<(start + name.count) { bytes[index] = 0x20 }
        #expect(Advertisement(bytes: bytes)?.name.description == Self.peer.short)
    }

    @Test
    func `say that the peer is full with a key without a value, which readers of earlier versions skip`()
        throws
    {
        var advertisement = try Self.advertisement(info: ["table": "open"])
        let before = advertisement.bytes
        advertisement.isFull = true
        #expect(advertisement.bytes == before + [4] + Array("full".utf8))
        #expect(Advertisement(bytes: advertisement.bytes) == advertisement)
        // A reader of an earlier version takes only pairs for discovery info.
        #expect(Advertisement(bytes: advertisement.bytes)?.info == advertisement.info)
    }

    @Test func `leave a program's own pair with the key full alone, and then say nothing about room`() throws
    {
        for key in ["full", "FULL"] {
            var advertisement = try Self.advertisement(info: [key: "no"])
            let before = advertisement.bytes
            advertisement.isFull = true
            #expect(advertisement.bytes == before)
            let read = try #require(Advertisement(bytes: before))
            #expect(!read.isFull && read.info[key] == "no")
        }
    }

    @Test func `stay within their limit with the largest info`() throws {
        var info = DiscoveryInfo.none
        for number in 0..<1_000 {
            guard let more = try? DiscoveryInfo(info.pairs.merging(["\(number)": ""]) { $1 }) else { break }
            info = more
        }
        let all = Advertisement(
            service: "fifteen-letters", peer: Self.peer,
            name: DisplayName(fitting: String(repeating: "x", count: 63)), info: info, isFull: true)
        #expect(all.bytes.count <= Advertisement.maximumByteCount)
        #expect(Advertisement(bytes: all.bytes) == all)
    }

    @Test func `are refused if any part is missing or wrong`() throws {
        let bytes = try Self.advertisement(info: ["table": "open"]).bytes
        let pieceBorders = Set(bytes.indices.filter { Advertisement(bytes: Array(bytes[..<$0])) != nil })
        // Cut behind the identity, it is complete, but without the program's info.
        #expect(pieceBorders.count == 1)
        #expect(Advertisement(bytes: bytes + [UInt8](repeating: 0, count: 1_024)) == nil)
        var otherService = bytes
        otherService[1] = UInt8(ascii: "!")
        #expect(Advertisement(bytes: otherService) == nil)
    }
}
