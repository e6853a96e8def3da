import NighCore
@testable import NighIntroductions
import Testing

@Suite("A record of introductions") struct IntroductionRecordTests {
    private static let peer = Identity.ephemeral(seed: 1).peerID
    private static let advertisement = Advertisement(
        service: "mesh", peer: peer, name: DisplayName(fitting: "Puma"),
        info: try! DiscoveryInfo(["side": "red"]))
    private static let addresses = ["tcp://192.168.1.5:4000", "bluetooth://00:11:22:33:44:55"]
        .map { TransportAddress($0)! }

    static let samples: [IntroductionRecord] = [
        .here(
            Presence(
                isMesh: true, acceptsRelays: false, nonce: 7, advertisement: advertisement,
                addresses: addresses)),
        .here(
            Presence(
                isMesh: false, acceptsRelays: true, nonce: .max, advertisement: advertisement, addresses: [])),
        .member(MemberReport(isMesh: true, isCarried: true, advertisement: advertisement)),
        .gone(peer),
        .ask(peer),
        .introduction(peer, addresses: addresses, token: [1, 2, 3]),
        .here(
            Presence(
                isMesh: true, acceptsRelays: false, wantsPaths: true, nonce: 7, advertisement: advertisement,
                addresses: [])),
        .path(peer, .over(scheme: "bluetooth", carrier: nil)),
        .path(peer, .over(scheme: "via", carrier: Identity.ephemeral(seed: 2).peerID)),
        .path(peer, .interrupted),
    ]

    private func read(_ bytes: [UInt8]) throws -> [IntroductionRecord] {
        try bytes.withUnsafeBytes { bytes throws(WireError) in try IntroductionRecord.records(in: bytes) }
    }

    @Test func `is read as it was written, alone and behind others`() throws {
        for sample in Self.samples { #expect(try read(sample.bytes) == [sample]) }
        #expect(try read(Self.samples.flatMap(\.bytes)) == Self.samples)
    }

    @Test func `of a kind that a later version has is left out`() throws {
        let later: [UInt8] = [99, 0, 3, 1, 2, 3]
        #expect(try read(later + Self.samples[3].bytes + later) == [Self.samples[3]])
    }

    @Test func `is refused if it is cut, too long, or names nobody`() {
        for sample in Self.samples {
            for count in 1..<sample.bytes.count {
                #expect(throws: WireError.self) { try read(Array(sample.bytes.prefix(count))) }
            }
            var longer = sample.bytes
            longer.append(0)
            longer[2] &+= 1
            #expect(throws: WireError.self, "\(sample)") { try read(longer) }
        }
        let tooMany = [5, 0, 33] + Self.peer.bytes + [9]
        #expect(throws: WireError.self) { try read(tooMany) }
        #expect(throws: WireError.self) { try read([2, 0, 3, 0, 0, 0]) }
        // A path over what is no transport, without a link but with a carrier, and with two carriers.
        let paths: [[UInt8]] = [
            [1, UInt8(ascii: "T"), 0], [16] + [UInt8](repeating: UInt8(ascii: "t"), count: 16) + [0],
            [0, 1] + Self.peer.bytes, [3] + Array("via".utf8) + [2] + Self.peer.bytes,
        ]
        for path in paths {
            let record = [6, 0, UInt8(32 + path.count)] + Self.peer.bytes + path
            #expect(throws: WireError.self, "\(path)") { try read(record) }
        }
    }
}

@Suite("A token of an introduction") struct IntroductionTokenTests {
    private let introducer = Identity.ephemeral(seed: 1)
    private let guest = Identity.ephemeral(seed: 2).peerID
    private let host = Identity.ephemeral(seed: 3).peerID

    @Test func `introduces the two that it names to each other, in the one direction`() throws {
        let token = IntroductionToken(by: introducer, guest: guest, host: host, nonce: 5, number: 1)
        let read = try IntroductionToken(reading: token.bytes)
        #expect(read == token)
        #expect(read.introducer == introducer.peerID)
        #expect(read.introduces(guest, to: host))
        #expect(!read.introduces(host, to: guest))
        #expect(!read.introduces(introducer.peerID, to: host))
    }

    @Test func `is not genuine once any of its bits has changed`() throws {
        let bytes = IntroductionToken(by: introducer, guest: guest, host: host, nonce: 5, number: 1).bytes
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            let token = try IntroductionToken(reading: changed)
            #expect(
                token.introducer != introducer.peerID || !token.introduces(guest, to: host), "byte \(index)")
        }
        #expect(throws: WireError.self) { try IntroductionToken(reading: Array(bytes.dropLast())) }
        #expect(throws: WireError.self) { try IntroductionToken(reading: bytes + [0]) }
    }
}
