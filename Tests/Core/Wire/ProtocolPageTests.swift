import NighCalls
import NighFiles
import NighForwarding
import NighGroups
import NighRelays
import NighTestKit
import Testing

@testable import NighCore
@testable import NighIntroductions

/// Plays the examples of docs/reference/PROTOCOL.md with both sides, byte for byte, and compares its tables with the
/// code.
///
/// The file is long because the page is one, and a reader looks for its examples in one place.
@Suite struct ProtocolPageTests {
    /// The bytes that two sides have sent each other, in order.
    private typealias Said = [(isDialling: Bool, bytes: [UInt8])]

    private let page = ProtocolPage()
    private static let (puma, lynx, hare) = (
        Identity.ephemeral(seed: 1), Identity.ephemeral(seed: 2), Identity.ephemeral(seed: 3)
    )

    /// Compares what was said with the example of a section. What one side says in one go is compared as a whole.
    private func expect(_ said: Said, in section: String) throws {
        func joined(_ said: Said) -> Said {
            said.reduce(into: []) { all, next in
                if all.last?.isDialling == next.isDialling {
                    all[all.count - 1].bytes += next.bytes
                } else {
                    all.append(next)
                }
            }
        }
        let (said, shown) = (
            joined(said),
            joined(try page.example(in: section).map { ($0.isDialling, try #require($0.bytes.exact)) })
        )
        #expect(said.map(\.isDialling) == shown.map(\.isDialling))
        #expect(said.map(\.bytes) == shown.map(\.bytes))
    }

    // MARK: A whole link

    /// Returns `bytes` with the random values of the page replaced by those of a session.
    private func fitted(_ bytes: [UInt8], _ replacements: [(from: [UInt8], to: [UInt8])]) -> [UInt8] {
        var result: [UInt8] = []
        var rest = bytes[...]
        while let first = rest.first {
            let (from, to) = replacements.first { rest.starts(with: $0.from) } ?? ([first], [first])
            result += to
            rest = rest.dropFirst(from.count)
        }
        return result
    }

    /// Plays the example with a session on one side. Each of the session's bytes must be the page's.
    private func play(isDialling: Bool) throws -> ScriptedPeer {
        let peer = try ScriptedPeer {
            $0.service = "chat"
            $0.name = DisplayName(fitting: isDialling ? "Puma's den" : "Lynx")
        }
        let own: UInt8 = isDialling ? 0xA1 : 0xA2
        let incarnation = peer.session.driver.machine.hello.incarnation
        var replacements: [(from: [UInt8], to: [UInt8])] = [
            ([UInt8](repeating: own, count: 32), peer.session.id.bytes),
            (
                [UInt8](repeating: own + 0x10, count: 8),
                withUnsafeBytes(of: incarnation.bigEndian, Array.init)
            ),
        ]
        if isDialling {
            peer.session.invite(at: ScriptedPeer.address, context: Array("hi there".utf8)) { _ in }
            try peer.run(.zero)
            try peer.openDialled()
        } else {
            try peer.open()
        }
        var heard: [UInt8] = []
        let steps = try page.example(in: "9. An example")
        #expect(steps.count == 13)
        for step in steps {
            let written = try #require(step.bytes.exact)
            guard step.isDialling == isDialling else {
                try peer.send(fitted(written, replacements))
                continue
            }
            let other = peer.session.driver.machine.peers.keys.first
            switch written.count > 3 ? FrameType(rawValue: written[3]) : nil {
            case .message: try peer.session.trySend(Array(written.dropFirst(4)), to: try #require(other))
            case .close: peer.session.disconnect(try #require(other))
            case .acknowledge: try peer.run(.milliseconds(99))
            default: break
            }
            try peer.run(.zero)
            heard += peer.takeOutput()
            if isDialling, written.count == 4 + 62 {
                replacements.append(([UInt8](repeating: 0xC1, count: 8), Array(heard.dropFirst(4).prefix(8))))
            }
            let expected = fitted(written, replacements)
            #expect(Array(heard.prefix(expected.count)) == expected, "\(heard)")
            heard.removeFirst(min(expected.count, heard.count))
        }
        #expect(heard.isEmpty, "more than the page has: \(heard)")
        return peer
    }

    @Test func `A session that dials sends the bytes of the example`() throws {
        let peer = try play(isDialling: true)
        let states = peer.events.compactMap { $0.stateChange?.peer.state }
        #expect(states.contains(.connected) && states.last == .unavailable)
    }

    @Test func `A session that is dialled sends the bytes of the example`() throws {
        let peer = try play(isDialling: false)
        #expect(peer.texts == ["hello"])
        let contexts = peer.events.compactMap {
            if case .invited(let invitation) = $0 { invitation.context } else { nil }
        }
        #expect(contexts == [Array("hi there".utf8)])
    }

    @Test func `A delegate's hello ends with the delegation that the page shows`() throws {
        let session = Self.puma.makeDelegate(withKeyOf: Self.hare)
        var hello = Frames.hello(incarnation: 0xB2B2_B2B2_B2B2_B2B2, service: "chat")
        hello.peer = session.peerID
        hello.delegation = session.delegation(service: "chat", incarnation: hello.incarnation)
        let block = try page.block(in: "2.7 Several sessions").joined(separator: " ")
        #expect(try Array(hello.payload.suffix(99)) == PatternOfBytes(block).exact)
        #expect(hello.provenIdentity == Self.puma.peerID)
    }

    // MARK: Streams

    /// The streams of two sides, and the frames that these have said.
    private final class Talk {
        let pair: StreamPair
        private(set) var said: Said = []

        init(for purposes: [StreamPurpose] = []) {
            pair = StreamPair(for: purposes)
        }

        /// Lets everything pass in both directions, and acknowledges it.
        func settle() throws {
            var isMoving = true
            while isMoving {
                isMoving = false
                for (isOdd, from, to) in [(true, pair.odd, pair.even), (false, pair.even, pair.odd)] {
                    from.write()
                    said += StreamPair.frames(in: from.wire.bytes).map { (isOdd, $0) }
                    if try pair.carry(from: from, to: to) > 0 { isMoving = true }
                }
            }
            try pair.acknowledge()
        }

        /// Writes to a stream, and lets that pass.
        func say(_ bytes: [UInt8], on stream: ByteStream?) throws {
            try #require(stream).put(bytes)
            try settle()
        }

        func add(_ bytes: [UInt8], isDialling: Bool) { said.append((isDialling, bytes)) }
    }

    @Test func `The example of a stream is played`() throws {
        let talk = Talk()
        let stream = try talk.pair.odd.open("hello")
        try stream.put(Array("Hi".utf8))
        stream.finish()
        try talk.settle()
        let other = talk.pair.even.opened[0]
        #expect(other.take() == .init(bytes: Array("Hi".utf8), hasEnded: true))
        try other.put(Array("Bye".utf8))
        other.finish()
        try talk.settle()
        var standing = Standing()
        standing.streamFrames = talk.pair.odd.table.received
        var acknowledgement = [UInt8](repeating: 0xFF, count: Standing.byteCount + standing.tailLength)
        acknowledgement.withUnsafeMutableBytes {
            standing.writeAcknowledgement(to: $0.baseAddress.unsafelyUnwrapped)
        }
        talk.add(Frames.frame(.acknowledge, acknowledgement), isDialling: true)
        try expect(talk.said, in: "4.5 Streams")
        let read = try acknowledgement.withUnsafeBytes { bytes throws(WireError) in
            try Standing(acknowledging: bytes)
        }
        #expect(read == standing)
    }

    @Test func `The example of a channel is played`() throws {
        let talk = Talk(for: [.channel])
        let stream = try talk.pair.odd.open("red", for: .channel)
        try talk.say(StreamMessageParser.header(of: 5) + Array("hello".utf8), on: stream)
        var parser = StreamMessageParser()
        parser.append(ByteSlice(talk.pair.even.opened[0].take().bytes))
        #expect(try parser.next(limit: 5)?.bytes == Array("hello".utf8))
        talk.pair.even.opened[0].finish()
        try talk.settle()
        try expect(talk.said, in: "4.11 Channels")
    }

    @Test func `The example of a call is played`() throws {
        let talk = Talk(for: [.calls])
        let stream = try talk.pair.odd.open("", for: .calls)
        var caller = OutgoingCalls<Void>()
        let now = Moment.at(0)
        _ = caller.begin("square", ByteSlice(Array("12".utf8)), until: now + .seconds(30), ())
        let request = caller.nextFrame(now: now)
        try talk.say(try #require(request).bytes, on: stream)
        let answer = CallRecord.answer(number: 1, .answer(ByteSlice(Array("144".utf8))))
        try talk.say(answer.frame.bytes, on: talk.pair.even.opened.first)
        try expect(talk.said, in: "4.12 Calls")
    }

    @Test func `The example of an actor is played`() throws {
        let talk = Talk(for: [.actors])
        let listing = try talk.pair.even.open(ActorStream.listing, for: .actors)
        try talk.say(
            ListingRecord.published(name: "board", contract: "Board", version: 3).frame.bytes, on: listing)
        let calling = try talk.pair.odd.open("\(ActorStream.published)board", for: .actors)
        var caller = OutgoingCalls<Void>(numbersNames: true)
        let now = Moment.at(0)
        _ = caller.begin("Board.reset() 5resetyyYaKFTE", ByteSlice([]), until: now + .seconds(30), ())
        while let frame = caller.nextFrame(now: now) { try calling.put(frame.bytes) }
        try talk.settle()
        let answer = CallRecord.answer(number: 1, .answer(ByteSlice([])))
        try talk.say(answer.frame.bytes, on: talk.pair.even.opened.first)
        try expect(talk.said, in: "4.13 Actors")
    }

    @Test func `The example of a forwarded connection is played`() throws {
        let talk = Talk(for: [.forward])
        let stream = try talk.pair.odd.open("22", for: .forward)
        try talk.settle()
        let other = talk.pair.even.opened.first
        try talk.say(ForwardingAnswer.connected(grace: .seconds(600)).bytes, on: other)
        try talk.say(Array("SSH-2.0-puma\r\n".utf8), on: other)
        stream.finish()
        try talk.settle()
        try expect(talk.said, in: "4.14 Forwarded connections")
    }

    @Test func `The example of a pipe through a peer has the frames that it describes`() throws {
        func open(_ name: RelayStreamName) -> [UInt8] {
            let control = StreamControl.open(name: "\(name)", for: .relay)
            return Frames.frame(.streamControl, control.payload(for: 1))
        }
        func data(_ bytes: [UInt8]) -> [UInt8] { Frames.frame(.streamData, [0, 0, 0, 1] + bytes) }
        let preface = data(Preface(security: .tls13).bytes)
        let said: Said = [
            (true, open(.to(Self.hare.peerID))), (true, open(.from(Self.lynx.peerID))),
            (false, data([1])), (false, preface), (false, data([1])), (false, preface), (true, preface),
        ]
        try expect(said, in: "4.10 Pipes through a peer")
    }

    @Test func `The example of files is played`() throws {
        let disk = MemoryDisk()
        let receiver = IncomingFiles()
        let sender = OutgoingFiles(MemoryFiles([("a.txt", Array("hello".utf8))]))
        let sides: [any TransferSide] = [sender, receiver]
        var said: Said = []
        var isMoving = true
        while isMoving {
            isMoving = false
            for (index, side) in sides.enumerated() {
                if receiver.isDeciding { receiver.accept(into: disk.store(for: receiver.items)) }
                switch side.work() {
                case .send(let bytes):
                    said.append((index == 0, Array(bytes)))
                    sides[1 - index].receive(bytes)
                    isMoving = true
                case .again: isMoving = true
                case .wait, .waitForInput, .waitForRoom, .finish, .over: break
                }
            }
        }
        #expect(disk.files == ["a.txt": Array("hello".utf8)])
        try expect(said, in: "4.6 Files")
    }

    // MARK: Messages of a kind

    @Test func `The example of a group is played`() throws {
        let red = try #require(GroupName("red"))
        let ids = [Self.puma.peerID, Self.lynx.peerID]
        var tables = [GroupTable(), GroupTable()]
        var said: Said = []
        /// Lets each say to the other what it has to.
        func talk() throws {
            for own in [0, 1, 0] {
                var records: [GroupRecord] = []
                _ = tables[own].flush(ids[1 - own]) {
                    records.append($0)
                    return .sent
                }
                for record in records {
                    said.append((own == 0, record.bytes))
                    _ = try tables[1 - own].receive(record, from: ids[own])
                }
            }
        }
        for number in 1...4 {
            let other = try #require(GroupName("\(number)"))
            try tables[1].join(other, context: []) { _, _ in nil }
            tables[1].leave(other)
        }
        try tables[0].join(red, context: []) { _, _ in nil }
        nonisolated(unsafe) var isFull = false  // one thread
        try tables[1].join(red, context: [0xAB, 0xCD]) { _, _ in isFull ? "full" : nil }
        for own in 0..<2 { tables[own].connected(ids[1 - own]) }
        try talk()
        let number = try #require(tables[0].number(of: red))
        said.append((true, GroupRecord.message(number: number).bytes + Array("hi".utf8)))
        #expect(try tables[1].receive(.message(number: number), from: ids[0]) == red)
        tables[0].leave(red)
        isFull = true
        try talk()
        try tables[0].join(red, context: []) { _, _ in nil }
        try talk()
        try expect(said, in: "4.8 Groups")
    }

    /// A session of the example of introductions, which is only a table here.
    private struct Member {
        var table: IntroductionTable
        let id: PeerID

        init(_ identity: Identity, _ name: String, at number: Int, wantsPaths: Bool = false) throws {
            id = identity.peerID
            let advertisement = Advertisement(service: "chat", peer: id, name: DisplayName(fitting: name))
            let address = try #require(TransportAddress("tcp://192.168.1.\(number):4000"))
            table = IntroductionTable(
                identity, advertisement, .init(isMesh: true, wantsPaths: wantsPaths), seed: 1)
            table.setOwn(advertisement, at: [address], now: .at(0))
        }

        /// Sends a peer what there is for it; returns the messages.
        mutating func say(to other: inout Member, now: Moment) throws -> [[UInt8]] {
            table.timeArrived(now: now)
            guard table.peersToFlush(now: now).contains(other.id) else { return [] }
            var messages: [[UInt8]] = []
            table.flush(other.id, now: now) {
                messages.append($0)
                return .sent
            }
            for message in messages {
                let records = try message.withUnsafeBytes { bytes throws(WireError) in
                    try IntroductionRecord.records(in: bytes)
                }
                for record in records { try other.table.receive(record, from: id, now: now) }
            }
            return messages
        }
    }

    @Test func `The example of an introduction is played, and the third side accepts its token once`() throws
    {
        var puma = try Member(Self.puma, "Puma", at: 7)
        var lynx = try Member(Self.lynx, "Lynx", at: 8, wantsPaths: true)
        var hare = try Member(Self.hare, "Hare", at: 9)
        puma.table.connected(hare.id, nonce: 4, now: .at(0))
        hare.table.connected(puma.id, nonce: 7, now: .at(0))
        _ = try puma.say(to: &hare, now: .at(1_000))
        _ = try hare.say(to: &puma, now: .at(1_000))
        lynx.table.connected(puma.id, nonce: 5, now: .at(1_000))
        puma.table.connected(lynx.id, nonce: 6, now: .at(1_000))
        puma.table.notePath(of: hare.id, .over(scheme: "tcp", carrier: nil), now: .at(1_000))
        var said: Said = []
        for turn in 0..<20 as Range<Int64> {
            let now = Moment.at(1_050 + 50 * turn)
            if turn == 10 { puma.table.disconnected(hare.id, by: .otherSide, now: now) }
            said += try lynx.say(to: &puma, now: now).map { (true, $0) }
            said += try puma.say(to: &lynx, now: now).map { (false, $0) }
        }
        try expect(said, in: "4.9 Introductions")
        let token = try #require(
            lynx.table.takeActions().compactMap { action -> [UInt8]? in
                if case .invite(hare.id, let token) = action { token } else { nil }
            }.first)
        #expect(Frames.frame(.introduction, token).prefix(4) == [0, 0, 0x70, 0x81])
        #expect(hare.table.verdict(on: puma.id, introduction: token) != .accept)
        #expect(hare.table.verdict(on: lynx.id, introduction: token) == .accept)
        #expect(hare.table.verdict(on: lynx.id, introduction: token) != .accept)
    }

    @Test func `The page names the private keys with which its introduction can be played`() throws {
        let rows = try page.table("| peer | private key (RFC 8032, 5.1.5) |", in: "4.9 Introductions")
        let identities = try rows.map {
            Identity(try KeyPair(seed: SecretBytes(copying: .init(hexadecimal: $0[1]))))
        }
        #expect(identities == [Self.puma, Self.lynx, Self.hare])
    }

    @Test func `A token has the fields of the page, and signs what the page says`() throws {
        let rows = try page.table("| offset | bytes | content |", in: "4.9 Introductions")
        #expect(rows.map { $0[1] } == ["32", "8", "8", "64"])
        let token = IntroductionToken(
            by: Self.puma, guest: Self.lynx.peerID, host: Self.hare.peerID, nonce: 7, number: 1)
        let fields = try rows.map { row in
            let (start, count) = (try #require(Int(row[0])), try #require(Int(row[1])))
            return Array(token.bytes[start..<start + count])
        }
        let names = Self.lynx.peerID.bytes + Self.hare.peerID.bytes
        let signed = [0x13] + Array("nigh introduction 1".utf8) + names + fields[1] + fields[2]
        #expect(token.bytes.count == 112 && fields[0] == Self.puma.publicKey)
        #expect(Signature.isValid(fields[3], of: signed, by: fields[0]))
    }

    // MARK: Tables

    @Test func `The page lists every frame type under its number and name, and no other`() throws {
        var listed: [UInt8: String] = [:]
        for row in try page.table("| type | name | payload |", in: "2.3") {
            let name = String(row[1].prefix { $0 != " " })
            for (index, number) in row[0].split(separator: ",").enumerated() {
                let type = try #require(
                    [UInt8](hexadecimal: number.split(separator: "x")[1].description).first)
                listed[type] = index == 0 ? name : "\(name)-bulk"
            }
        }
        let types = FrameType.allCases.map { ($0.rawValue, FrameType.name(of: $0.rawValue)) }
        #expect(listed == Dictionary(uniqueKeysWithValues: types))
    }

    /// The rows of a table, as far as the code decides them.
    private func rows(_ head: String, in section: String, _ columns: Int = 2) throws -> [[String]] {
        try page.table(head, in: section).map { Array($0.prefix(columns)) }
    }

    @Test func `The page's tables of numbers list what the code has, and no others`() throws {
        #expect(
            try rows("| code | name | ends | what it says |", in: "6. Close", 3)
                == LinkClose.Code.allCases.map {
                    ["\($0.rawValue)", "\($0)", "\(LinkClose.Scope(of: $0.rawValue))"]
                })
        let value = try #require(PairingValue([UInt8](repeating: 1, count: 32)))
        let messages: [PairingMessage] = [
            .commitment(value), .nonce(value), .reveal(value), .confirmed, .refused(.declined),
        ]
        #expect(
            try rows("| kind (1 byte) | name | then |", in: "7. Pairing")
                == messages.map { ["\($0.payload[0])", $0.name] })
        #expect(
            try rows("| reason | name | what it says |", in: "4.6 Files")
                == FileFault.Reason.allCases.map { ["\($0.rawValue)", "\($0)"] })
        let controls: [StreamControl] = [
            .open(name: ""), .credit(1), .finish, .cancel(reason: ""), .stop(reason: ""), .release,
            .open(name: "", for: .files),
        ]
        #expect(
            try rows("| kind | name | then | what it says |", in: "4.5 Streams", 1)
                == controls.map { ["\($0.payload(for: 1)[4])"] })
        let purposes = StreamPurpose.allCases.filter { $0 != .program }
        #expect(
            try rows("| purpose | name | who gets the stream |", in: "4.5 Streams")
                == purposes.map { ["\($0.rawValue)", "\($0)"] })
        let id = Self.puma.peerID
        let advertisement = Advertisement(service: "chat", peer: id, name: DisplayName(fitting: "Puma"))
        let presence = Presence(
            isMesh: true, acceptsRelays: true, nonce: 1, advertisement: advertisement, addresses: [])
        let records: [(String, IntroductionRecord)] = [
            ("here", .here(presence)),
            ("member", .member(MemberReport(isMesh: true, isCarried: false, advertisement: advertisement))),
            ("gone", .gone(id)), ("ask", .ask(id)),
            ("introduction", .introduction(id, addresses: [], token: [])), ("path", .path(id, .interrupted)),
        ]
        #expect(
            try rows("| kind | name | then | what it says |", in: "4.9 Introductions")
                == records.map { ["\($0.1.bytes[0])", $0.0] })
    }
}
