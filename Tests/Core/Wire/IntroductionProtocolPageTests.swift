import NighTestKit
import Testing

@testable import NighCore
@testable import NighIntroductions

@Suite("The page of the protocol, about introductions")
struct IntroductionProtocolPageTests {
    private static let section = "4.9 Introductions"
    private static let (puma, lynx, hare) = (
        Identity.ephemeral(seed: 1), Identity.ephemeral(seed: 2), Identity.ephemeral(seed: 3)
    )

    /// A session of the example, which is only a table here.
    private struct Member {
        var table: IntroductionTable
        let id: PeerID

        init(_ identity: Identity, _ name: String, at address: String, wantsPaths: Bool = false) throws {
            id = identity.peerID
            let advertisement = Advertisement(service: "chat", peer: id, name: DisplayName(fitting: name))
            table = IntroductionTable(
                identity, advertisement, .init(isMesh: true, wantsPaths: wantsPaths), seed: 1)
            table.setOwn(
                advertisement, at: [try #require(TransportAddress(address))], now: Moment(nanoseconds: 0))
        }

        /// Returns the messages that it sends to a peer at this moment.
        mutating func messages(to peer: PeerID, now: Moment) -> [[UInt8]] {
            table.timeArrived(now: now)
            guard table.peersToFlush(now: now).contains(peer) else { return [] }
            var messages: [[UInt8]] = []
            table.flush(peer, now: now) {
                messages.append($0)
                return .sent
            }
            return messages
        }

        mutating func receive(_ message: [UInt8], from peer: PeerID, now: Moment) throws {
            let records = try message.withUnsafeBytes { bytes throws(WireError) in
                try IntroductionRecord.records(in: bytes)
            }
            for record in records { try table.receive(record, from: peer, now: now) }
        }
    }

    @Test("has an example that both sides play, byte for byte, and whose token the third side accepts")
    func example() throws {
        var puma = try Member(Self.puma, "Puma", at: "tcp://192.168.1.7:4000")
        var lynx = try Member(Self.lynx, "Lynx", at: "tcp://192.168.1.8:4000", wantsPaths: true)
        var hare = try Member(Self.hare, "Hare", at: "tcp://192.168.1.9:4000")
        var now = Moment(nanoseconds: 0)
        puma.table.connected(hare.id, nonce: 4, now: now)
        hare.table.connected(puma.id, nonce: 7, now: now)
        now = now + .seconds(1)
        for message in puma.messages(to: hare.id, now: now) {
            try hare.receive(message, from: puma.id, now: now)
        }
        for message in hare.messages(to: puma.id, now: now) {
            try puma.receive(message, from: hare.id, now: now)
        }
        lynx.table.connected(puma.id, nonce: 5, now: now)
        puma.table.connected(lynx.id, nonce: 6, now: now)
        puma.table.notePath(of: hare.id, .over(scheme: "tcp", carrier: nil), now: now)
        var said: [(isLynx: Bool, bytes: [UInt8])] = []
        for turn in 0..<20 {
            now = now + .milliseconds(50)
            if turn == 10 { puma.table.disconnected(hare.id, by: .otherSide, now: now) }
            let (right, left) = (
                lynx.messages(to: puma.id, now: now), puma.messages(to: lynx.id, now: now)
            )
            for message in right { try puma.receive(message, from: lynx.id, now: now) }
            for message in left { try lynx.receive(message, from: puma.id, now: now) }
            said += right.map { (true, $0) } + left.map { (false, $0) }
        }
        let steps = try ProtocolPage().example(in: Self.section)
        #expect(said.map(\.isLynx) == steps.map(\.isDialling))
        #expect(try said.map(\.bytes) == steps.map { try #require($0.bytes.exact) })

        let token = try #require(
            lynx.table.takeActions().compactMap { action -> [UInt8]? in
                if case .invite(hare.id, let token) = action { token } else { nil }
            }.first)
        #expect(Frames.frame(.introduction, token).prefix(4) == [0, 0, 0x70, 0x81])
        #expect(hare.table.verdict(on: puma.id, introduction: token) != .accept)
        #expect(hare.table.verdict(on: lynx.id, introduction: token) == .accept)
        #expect(hare.table.verdict(on: lynx.id, introduction: token) != .accept, "it is of use once")
    }

    @Test("says with which private keys its example can be played")
    func keys() throws {
        let rows = try ProtocolPage().table("| peer | private key (RFC 8032, 5.1.5) |", in: Self.section)
        #expect(rows.map { $0[0] } == ["Puma", "Lynx", "Hare"])
        for (row, identity) in zip(rows, [Self.puma, Self.lynx, Self.hare]) {
            let digits = row[1].filter(\.isHexDigit)
            let bytes = stride(from: 0, to: digits.count, by: 2).compactMap {
                UInt8(digits.dropFirst($0).prefix(2), radix: 16)
            }
            let secret = SecretBytes(count: KeyPair.seedByteCount)
            try #require(bytes.count == KeyPair.seedByteCount)
            secret.withBytes { $0.copyBytes(from: bytes) }
            #expect(Identity(try KeyPair(seed: secret)) == identity)
        }
    }

    @Test("says which bytes a token has, and which it signs")
    func token() throws {
        let rows = try ProtocolPage().table("| offset | bytes | content |", in: Self.section)
        #expect(rows.map { $0[1] } == ["32", "8", "8", "64"])
        let token = IntroductionToken(
            by: Self.puma, guest: Self.lynx.peerID, host: Self.hare.peerID, nonce: 7, number: 1)
        let bytes = token.bytes
        func field(_ row: Int) throws -> [UInt8] {
            let (start, count) = (try #require(Int(rows[row][0])), try #require(Int(rows[row][1])))
            return Array(bytes[start..<start + count])
        }
        var signed = [0x13] + Array("nigh introduction 1".utf8)
        signed += Self.lynx.peerID.bytes + Self.hare.peerID.bytes + (try field(1)) + (try field(2))
        #expect(signed.count == 100 && bytes.count == 112)
        #expect(Signature.isValid(try field(3), of: signed, by: try field(0)))
        #expect(try field(0) == Self.puma.publicKey)
    }

    @Test("names every kind of record under its number")
    func kinds() throws {
        let id = Self.puma.peerID
        let advertisement = Advertisement(service: "chat", peer: id, name: DisplayName(fitting: "Puma"))
        let records: [(String, IntroductionRecord)] = [
            (
                "here",
                .here(
                    Presence(
                        isMesh: true, acceptsRelays: true, nonce: 1, advertisement: advertisement,
                        addresses: []))
            ),
            ("member", .member(Listing(isMesh: true, isCarried: false, advertisement: advertisement))),
            ("gone", .gone(id)), ("ask", .ask(id)),
            ("introduction", .introduction(id, addresses: [], token: [])), ("path", .path(id, .interrupted)),
        ]
        let rows = try ProtocolPage().table("| kind | name | then | what it says |", in: Self.section)
        #expect(rows.map { $0[0] } == records.map { "\($0.1.bytes[0])" })
        #expect(rows.map { $0[1] } == records.map(\.0))
    }
}
