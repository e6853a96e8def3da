import NighCalls
import NighForwarding
import Testing

@testable import NighCore
@testable import NighTestKit

@Suite("Streams") struct StreamTableTests {
    private func bytes(_ count: Int, _ seed: Int = 0) -> [UInt8] { StreamPair.bytes(count, seed) }

    @Test("carry bytes in both directions, and each direction ends for itself")
    func bothDirections() throws {
        let pair = StreamPair()
        let stream = try pair.odd.open("camera")
        #expect(try stream.put(bytes(5_000)) == 5_000)
        stream.finish()
        try pair.settle()
        let other = try #require(pair.even.opened.first)
        #expect(other.name == "camera" && other.isIncoming && !stream.isIncoming)
        #expect(other.take() == .init(bytes: bytes(5_000), hasEnded: true))
        #expect(try other.put([1, 2, 3]) == 3)
        try pair.settle()
        #expect(stream.take() == .init(bytes: [1, 2, 3]))
        other.finish()
        try pair.settle()
        #expect(stream.take() == .init(hasEnded: true))
        #expect(throws: NighError.self) { try stream.put([4]) }
    }

    @Test(
        "end with this side's leaving, but those for relays go on if it keeps them, and it waits for their end"
    )
    func leaving() throws {
        for keepsRelays in [false, true] {
            let pair = StreamPair(StreamTerms(streams: 4, window: 10_000, for: [.relay]))
            let (plain, relay) = (try pair.odd.open("plain"), try pair.odd.open("relay", for: .relay))
            for stream in [plain, relay] { try stream.put([1, 2, 3]) }
            try pair.settle()
            #expect(pair.odd.table.isDrained)
            pair.odd.table.stopWriting(NighError(.sending, .left), keepsRelays: keepsRelays)
            #expect(throws: NighError.self) { try plain.put([4]) }
            #expect(pair.odd.table.isDrained == !keepsRelays)
            guard keepsRelays else {
                #expect(throws: NighError.self) { try relay.put([4]) }
                continue
            }
            #expect(try relay.put([4]) == 1)
            try pair.settle()
            #expect(!pair.odd.table.isDrained)
            relay.finish()
            pair.odd.write()
            #expect(!pair.odd.table.isDrained)
            try pair.settle()
            #expect(pair.odd.table.isDrained)
            #expect(pair.even.opened.last?.take() == .init(bytes: [1, 2, 3, 4], hasEnded: true))
        }
    }

    @Test("drop what waits for credit once the other side reads no more, also while this side leaves")
    func stoppedWhileLeaving() throws {
        let pair = StreamPair(StreamTerms(streams: 4, window: 10_000))
        let stream = try pair.odd.open("camera")
        try stream.put([1])
        try pair.settle()
        // Two of these use up the credit and are on their way. The other side drops them, and grants no more.
        for _ in 0..<3 {
            try stream.put(StreamPair.bytes(8_000))
            pair.odd.write()
        }
        pair.odd.table.stopWriting(NighError(.sending, .left), keepsRelays: false)
        try #require(pair.even.opened.first).cancelReading(because: "enough")
        try pair.settle()
        #expect(pair.odd.table.isDrained)
    }

    @Test("tell a loop of a failure once, and again only if it waits for that direction")
    func notifying() throws {
        let pair = StreamPair()
        let loop = VirtualEventLoop()
        let stream = try pair.odd.open("camera")
        nonisolated(unsafe) var count = 0  // the loop is virtual: one thread
        func wait(bytes: Bool, room: Bool) throws {
            stream.notify(bytes: bytes, room: room, on: loop) { count += 1 }
            try loop.runQueued()
        }
        try pair.settle()
        try wait(bytes: true, room: false)
        #expect(count == 0)
        try #require(pair.even.opened.first).cancelReading(because: "full")
        try pair.settle()
        try loop.runQueued()
        #expect(count == 1)
        try wait(bytes: true, room: false)
        #expect(count == 1)
        try pair.even.opened.first?.put([1])
        try pair.settle()
        pair.odd.table.wakeReaders()
        try loop.runQueued()
        #expect(count == 2)
        try wait(bytes: false, room: true)
        #expect(count == 3)
    }

    @Test("take turns, so that a short one does not wait for the end of a long one")
    func turns() throws {
        let pair = StreamPair(StreamTerms(streams: 4, window: 1 << 20))
        let (long, short) = (try pair.odd.open("long"), try pair.odd.open("short"))
        try long.put(bytes(1 << 20))
        try short.put([7])
        pair.odd.write(budget: 100_000)
        try pair.carry(from: pair.odd, to: pair.even, frames: 6)
        #expect(pair.even.opened[1].take().bytes == [7])
    }

    @Test("fail at the limit of streams, until one of them is over on both sides")
    func limit() throws {
        let pair = StreamPair(
            StreamTerms(streams: 2, window: 10_000), StreamTerms(streams: 2, window: 10_000))
        let first = try pair.odd.open("1")
        let second = try pair.odd.open("2")
        let error = #expect(throws: NighError.self) { try pair.odd.open("3") }
        #expect(error?.cause == .limit("streams", 2))
        first.finish()
        try pair.settle()
        #expect(throws: NighError.self) { try pair.odd.open("3") }
        pair.even.opened[0].finish()
        try pair.settle()
        // The other program has not read the end yet, but no bytes wait.
        _ = try pair.odd.open("3")
        withExtendedLifetime(second) {}
    }

    @Test("tell the reader why the writer gave up, after what had come before")
    func cancelledWriting() throws {
        let pair = StreamPair()
        let stream = try pair.odd.open("camera")
        try stream.put([1, 2])
        try pair.settle()
        try stream.put([3])
        stream.cancelWriting(because: "no film")
        try pair.settle()
        #expect(pair.even.opened[0].take() == .init(bytes: [1, 2], error: .streamCancelled("no film")))
        #expect(throws: NighError.self) { try stream.put([4]) }
        // The other direction goes on.
        try pair.even.opened[0].put([5])
        try pair.settle()
        #expect(stream.take().bytes == [5])
    }

    @Test("tell the writer why the reader gave up")
    func cancelledReading() throws {
        let pair = StreamPair()
        let stream = try pair.odd.open("camera")
        try stream.put(bytes(10_000))
        try pair.settle()
        pair.even.opened[0].cancelReading(because: "seen enough")
        try pair.settle()
        let error = #expect(throws: NighError.self) { try stream.put([1]) }
        #expect(error?.cause == .streamCancelled("seen enough"))
        #expect(pair.even.opened[0].take().error == .streamCancelled("seen enough"))
    }

    @Test("tell a side that prepares an answer that nobody waits for it, though it has read all")
    func stoppedAfterTheEnd() async throws {
        let pair = StreamPair()
        let question = try pair.odd.open("question")
        try question.put([1])
        question.finish()
        try pair.settle()
        let answer = pair.even.opened[0]
        #expect(answer.take() == .init(bytes: [1], hasEnded: true))
        let reason = Task { await answer.stopped() }
        question.cancel(because: "it takes too long")
        try pair.settle()
        #expect(await reason.value?.cause == .streamCancelled("it takes too long"))
    }

    @Test("stop waiting for the end of writing when this side finishes, or the task is cancelled")
    func stoppedByThisSide() async throws {
        let pair = StreamPair()
        let stream = try pair.odd.open("camera")
        let cancelled = Task { await stream.stopped() }
        cancelled.cancel()
        #expect(await cancelled.value?.cause == .cancelled)
        let finished = Task { await stream.stopped() }
        stream.finish()
        #expect(await finished.value == nil)
    }

    @Test("show that the link is lost, also those that are opened then, until there is another one")
    func reconnecting() throws {
        let pair = StreamPair()
        let earlier = try pair.odd.open("earlier")
        pair.odd.table.isReconnecting = true
        let later = try pair.odd.open("later")
        #expect(earlier.isReconnecting && later.isReconnecting)
        pair.odd.table.isReconnecting = false
        #expect(!earlier.isReconnecting && !later.isReconnecting)
    }

    @Test("are cancelled when the program lets go of them, but what was finished arrives")
    func letGo() throws {
        let pair = StreamPair()
        var finished: ByteStream? = try pair.odd.open("finished")
        var forgotten: ByteStream? = try pair.odd.open("forgotten")
        try finished?.put([1, 2, 3])
        finished?.finish()
        finished = nil
        try forgotten?.put([4])
        forgotten = nil
        try pair.settle()
        #expect(pair.even.opened[0].take() == .init(bytes: [1, 2, 3], hasEnded: true))
        #expect(pair.even.opened[1].take().error != nil)
        #expect(throws: NighError.self) { try pair.even.opened[0].put([1]) }
        for stream in pair.even.opened { stream.finish() }
        pair.even.opened = []
        try pair.settle()
        // Nothing of them is left on either side.
        for number in 0..<4 { pair.odd.opened.append(try pair.odd.open("\(number)")) }
        #expect(pair.odd.table.isDrained == false)
    }

    @Test(
        "carry every byte once and in order over links that are cut at any frame",
        arguments: 1...40 as ClosedRange<UInt64>)
    func cuts(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let window = generator.pick([1, 500, 20_000, 100_000]) ?? 1
        let pair = StreamPair(StreamTerms(streams: 3, window: window))
        struct Sent {
            var content: [UInt8] = []
            var hasFinished = false
            var handle: ByteStream?
        }
        var sent: [Sent] = []
        var received: [[UInt8]] = []
        for _ in 0..<600 {
            switch generator.number(0...9) {
            case 0 where sent.count < 3: sent.append(Sent(handle: try pair.odd.open("\(sent.count)")))
            case 1..<5:
                guard let index = sent.indices.randomElement(using: &generator), !sent[index].hasFinished
                else {
                    continue
                }
                let more = bytes(generator.number(1...30_000), generator.number(0...99))
                let count = try sent[index].handle?.put(more) ?? 0
                sent[index].content += more[..<count]
            case 5: try pair.carry(from: pair.odd, to: pair.even, frames: generator.number(0...9))
            case 6: try pair.carry(from: pair.even, to: pair.odd, frames: generator.number(0...9))
            case 7: try pair.acknowledge()
            case 8 where generator.chance(30): try pair.cut()
            default:
                while received.count < pair.even.opened.count { received.append([]) }
                guard let index = pair.even.opened.indices.randomElement(using: &generator) else { continue }
                received[index] += pair.even.opened[index].take().bytes
            }
            #expect(pair.odd.table.isConsistent && pair.even.table.isConsistent)
        }
        for index in sent.indices { sent[index].handle?.finish() }
        try pair.cut()
        var ended: Set<Int> = []
        for _ in 0..<400_000 where ended.count < sent.count {
            try pair.settle()
            while received.count < pair.even.opened.count { received.append([]) }
            for (index, stream) in pair.even.opened.enumerated() {
                let content = stream.take()
                received[index] += content.bytes
                if content.hasEnded { ended.insert(index) }
            }
        }
        #expect(received == sent.map(\.content))
        try pair.settle()
        #expect(pair.odd.table.isDrained && pair.even.table.isDrained)
    }

    @Test("do not fill the memory for a peer that makes them answer and acknowledges nothing")
    func unacknowledged() throws {
        let pair = StreamPair(StreamTerms(streams: 256, window: 1 << 20))
        // The other side opens streams and cancels them, for ever; each needs an answer.
        var number: UInt32 = 2
        var refused: WireError?
        while refused == nil, number < 1_000_000 {
            do throws(WireError) {
                try pair.odd.receive(
                    Frames.frame(.streamControl, StreamControl.open(name: "x").payload(for: number)))
                try pair.odd.receive(
                    Frames.frame(.streamControl, StreamControl.cancel(reason: "").payload(for: number)))
                pair.odd.opened = []
                pair.odd.write()
                pair.odd.wire.removeAll()
                number += 2
            } catch {
                refused = error
            }
        }
        #expect(refused == .malformed("more streams than were allowed"))
        #expect(pair.odd.table.unacknowledged <= (4 << 20) + (20 << 10))
    }

    @Test("wait while 4 MiB of their frames are not acknowledged, and go on when some are")
    func tooManyUnacknowledged() throws {
        let limit = 4 << 20
        let pair = StreamPair(StreamTerms(streams: 4, window: 5 << 20))
        let stream = try pair.odd.open("x")
        #expect(try stream.put([UInt8](repeating: 7, count: 5 << 20)) == 5 << 20)
        pair.odd.write(budget: .max)
        let sent = pair.odd.wire.byteCount
        #expect(sent >= limit && sent < limit + 16_384, "\(sent)")
        #expect(pair.odd.table.unacknowledged == sent && !pair.odd.table.hasUnsent)
        try pair.carry(from: pair.odd, to: pair.even, frames: 2)
        #expect(!pair.odd.table.hasUnsent)
        try pair.acknowledge()
        #expect(pair.odd.table.hasUnsent)
        pair.odd.write(budget: .max)
        let waiting = pair.odd.wire.byteCount
        #expect(waiting >= limit && waiting < limit + 16_384, "\(waiting)")
        try pair.settle()
        #expect(pair.even.opened[0].take().bytes.count > limit)
        withExtendedLifetime(stream) {}
    }

    /// What a side may not do with a stream that the other side has opened, and to one that it has opened itself.
    @Test(
        "end the link if the other side breaks a rule",
        arguments: [
            [.open(name: "again")], [.finish, .finish], [.cancel(reason: ""), .finish], [.release],
            [.credit(9_999)],
        ] as [[StreamControl]])
    func violations(_ controls: [StreamControl]) throws {
        let pair = StreamPair()
        let stream = try pair.odd.open("mine")
        try pair.settle()
        #expect(throws: WireError.self) {
            for control in controls {
                try pair.odd.receive(Frames.frame(.streamControl, control.payload(for: 1)))
            }
        }
        withExtendedLifetime(stream) {}
    }

    @Test("end the link for frames of streams that are not open")
    func unknown() throws {
        let data: [UInt8] = Frames.frame(.streamData, [0, 0, 0, 2, 1])
        let all: [[UInt8]] =
            [.credit(1), .finish, .cancel(reason: ""), .stop(reason: ""), .release].map {
                (control: StreamControl) in
                Frames.frame(.streamControl, control.payload(for: 2))
            } + [
                data, Frames.frame(.streamData, [0, 0, 0, 2]), Frames.frame(.streamData, [0, 0]),
                Frames.frame(.streamControl, StreamControl.open(name: "x").payload(for: 4)),
                Frames.frame(.streamControl, StreamControl.open(name: "x").payload(for: 1)),
            ]
        for frame in all {
            let pair = StreamPair()
            #expect(throws: WireError.self) { try pair.odd.receive(frame) }
        }
    }

    @Test("accept words about a stream that they have forgotten and the other side has not")
    func forgotten() throws {
        let pair = StreamPair()
        let stream = try pair.odd.open("short")
        stream.finish()
        try pair.settle()
        pair.even.opened[0].finish()
        try pair.carry(from: pair.even, to: pair.odd, frames: 1)
        for control: StreamControl in [.credit(20_000), .stop(reason: "")] {
            try pair.even.receive(Frames.frame(.streamControl, control.payload(for: 1)))
        }
        #expect(throws: WireError.self) {
            try pair.even.receive(Frames.frame(.streamControl, StreamControl.finish.payload(for: 1)))
        }
    }

    @Test("for files pass only to a side that accepts them, and say there what they are for")
    func purposes() throws {
        let pair = StreamPair(
            StreamTerms(streams: 4, window: 10_000),
            StreamTerms(streams: 4, window: 10_000, for: [.files]))
        let files = try pair.odd.open("same name", for: .files)
        let own = try pair.odd.open("same name")
        #expect(files.purpose == .files && own.purpose == .program)
        try files.put([1, 2])
        pair.odd.write()
        // What announces a stream is sent again like everything else.
        try pair.cut()
        try pair.settle()
        #expect(pair.even.opened.map(\.purpose) == [.files, .program])
        #expect(pair.even.opened.map(\.name) == ["same name", "same name"])
        #expect(pair.even.opened[0].take() == .init(bytes: [1, 2]))

        let error = #expect(throws: NighError.self) { try pair.even.open("x", for: .files) }
        #expect(error?.cause == .unsupported("files"))
        _ = try pair.even.open("x")
        let frame = Frames.frame(.streamControl, StreamControl.open(name: "x", for: .files).payload(for: 2))
        #expect(throws: WireError.malformed("a stream for files, which this side does not accept")) {
            try pair.odd.receive(frame)
        }
    }

    @Test("wake their readers once for all that comes together")
    func waking() async throws {
        let pair = StreamPair()
        let outgoing = try pair.odd.open("waking")
        try pair.carry(from: pair.odd, to: pair.even)
        let incoming = try #require(pair.even.opened.first)
        async let first = incoming.read()
        while !pair.even.hasReader(of: incoming) { await Task.yield() }
        for _ in 0..<3 {
            _ = try bytes(1_000).withUnsafeBytes { try outgoing.tryWrite($0) }
            try pair.carry(from: pair.odd, to: pair.even)
            #expect(pair.even.table.hasReadersToWake && pair.even.hasReader(of: incoming))
        }
        pair.even.table.wakeReaders()
        #expect(!pair.even.table.hasReadersToWake)
        #expect(try await first?.count == 3_000)
    }

    @Test("write control frames into the memory that they have")
    func controlFrames() throws {
        let pair = StreamPair(StreamTerms(streams: 64, window: 40))
        let names = (0..<60).map { String(repeating: "n", count: $0 * 37 % 256) }
        let streams = try names.map { try pair.odd.open($0) }
        try pair.settle()
        #expect(pair.even.opened.map(\.name) == names)
        // The long words of one stream do not show up behind the short ones of the next.
        for (index, stream) in streams.enumerated() { stream.cancelWriting(because: names[59 - index]) }
        try pair.settle()
        #expect(pair.even.opened.map { $0.take().error } == names.reversed().map { .streamCancelled($0) })
    }

    @Test("refuse impossible counts")
    func counts() throws {
        let pair = StreamPair()
        let stream = try pair.odd.open("x")
        pair.odd.write()
        #expect(throws: WireError.self) { try pair.odd.table.acknowledge(upTo: 2) }
        try pair.odd.table.acknowledge(upTo: 1)
        #expect(throws: WireError.self) { try pair.odd.table.startLink(count: 0) }
        #expect(throws: WireError.self) { try pair.odd.table.startLink(count: 2) }
        withExtendedLifetime(stream) {}
    }

    @Test("have the bytes of the example in the page of the protocol")
    func page() throws {
        let steps = try ProtocolPage().example(in: "4.5 Streams")
        #expect(steps.count == 7)
        let exact = try steps.map { ($0.isDialling, try #require($0.bytes.exact)) }
        let pair = StreamPair()
        let stream = try pair.odd.open("hello")
        try stream.put(Array("Hi".utf8))
        stream.finish()
        pair.odd.write()
        #expect(pair.odd.wire.bytes == exact.prefix(3).flatMap(\.1))
        try pair.settle()
        let other = pair.even.opened[0]
        #expect(other.take() == .init(bytes: Array("Hi".utf8), hasEnded: true))
        try other.put(Array("Bye".utf8))
        other.finish()
        pair.even.write()
        #expect(pair.even.wire.bytes == exact[3..<6].flatMap(\.1))
        try pair.settle()
        var standing = Standing()
        standing.streamFrames = pair.odd.table.received
        var acknowledgement = [UInt8](repeating: 0xFF, count: Standing.byteCount + standing.tailLength)
        acknowledgement.withUnsafeMutableBytes {
            standing.writeAcknowledgement(to: $0.baseAddress.unsafelyUnwrapped)
        }
        #expect(exact[6].1 == Frames.frame(.acknowledge, acknowledgement))
        let read = try ByteSlice(acknowledgement).withUnsafeBytes { bytes throws(WireError) in
            try Standing(acknowledging: bytes)
        }
        #expect(read == standing)
    }

    @Test("have the bytes of the example in the page of the protocol, about channels")
    func channelPage() throws {
        let steps = try ProtocolPage().example(in: "4.11 Channels")
        let exact = try steps.map { try #require($0.bytes.exact) }
        let pair = StreamPair(StreamTerms(streams: 4, window: 10_000, for: [.channel]))
        let stream = try pair.odd.open("red", for: .channel)
        try stream.put(StreamMessageParser.header(of: 5) + Array("hello".utf8))
        pair.odd.write()
        #expect(pair.odd.wire.bytes == exact.prefix(2).flatMap(\.self))
        try pair.settle()
        var parser = StreamMessageParser()
        parser.append(ByteSlice(pair.even.opened[0].take().bytes))
        #expect(try parser.next(limit: 5)?.bytes == Array("hello".utf8))
        pair.even.opened[0].finish()
        pair.even.write()
        #expect(pair.even.wire.bytes == exact[2])
    }

    @Test("have the bytes of the example in the page of the protocol, about calls")
    func callsPage() throws {
        let exact = try ProtocolPage().example(in: "4.12 Calls").map { try #require($0.bytes.exact) }
        let pair = StreamPair(StreamTerms(streams: 4, window: 10_000, for: [.calls]))
        let stream = try pair.odd.open("", for: .calls)
        var caller = OutgoingCalls<Void>()
        let now = Moment(nanoseconds: 0)
        _ = caller.begin("square", ByteSlice(Array("12".utf8)), until: now + .seconds(30), ())
        let request = caller.nextFrame(now: now)
        try stream.put(try #require(request).bytes)
        pair.odd.write()
        #expect(pair.odd.wire.bytes == exact.prefix(2).flatMap(\.self))
        try pair.settle()
        let answer = CallRecord.answer(number: 1, .answer(ByteSlice(Array("144".utf8))))
        try pair.even.opened[0].put(answer.frame.bytes)
        pair.even.write()
        #expect(pair.even.wire.bytes == exact[2])
    }

    @Test("have the bytes of the example in the page of the protocol, about actors")
    func actorsPage() throws {
        let exact = try ProtocolPage().example(in: "4.13 Actors").map { try #require($0.bytes.exact) }
        let pair = StreamPair(StreamTerms(streams: 4, window: 10_000, for: [.actors]))
        let listing = try pair.even.open(ActorStream.listing, for: .actors)
        let board = ListingRecord.published(name: "board", contract: "Board", version: 3)
        try listing.put(board.frame.bytes)
        pair.even.write()
        #expect(pair.even.wire.bytes == exact.prefix(2).flatMap(\.self))
        try pair.settle()
        let calling = try pair.odd.open("\(ActorStream.published)board", for: .actors)
        var caller = OutgoingCalls<Void>(numbersNames: true)
        let now = Moment(nanoseconds: 0)
        _ = caller.begin("Board.reset() 5resetyyYaKFTE", ByteSlice([]), until: now + .seconds(30), ())
        while let frame = caller.nextFrame(now: now) { try calling.put(frame.bytes) }
        pair.odd.write()
        #expect(pair.odd.wire.bytes == exact[2...3].flatMap(\.self))
        try pair.settle()
        try pair.even.opened[0].put(CallRecord.answer(number: 1, .answer(ByteSlice([]))).frame.bytes)
        pair.even.write()
        #expect(pair.even.wire.bytes == exact[4])
    }

    @Test("have the bytes of the example in the page of the protocol, about forwarded connections")
    func forwardingPage() throws {
        let exact = try ProtocolPage().example(in: "4.14 Forwarded connections").map {
            try #require($0.bytes.exact)
        }
        let pair = StreamPair(StreamTerms(streams: 4, window: 10_000, for: [.forward]))
        let stream = try pair.odd.open("22", for: .forward)
        pair.odd.write()
        #expect(pair.odd.wire.bytes == exact[0])
        try pair.settle()
        let other = try #require(pair.even.opened.first)
        for bytes in [
            ForwardingAnswer.connected(grace: .seconds(600)).bytes, Array("SSH-2.0-puma\r\n".utf8),
        ] {
            try other.put(bytes)
            pair.even.write()
        }
        #expect(pair.even.wire.bytes == exact[1...2].flatMap(\.self))
        try pair.settle()
        stream.finish()
        pair.odd.write()
        #expect(pair.odd.wire.bytes == exact[3])
    }

    @Test("end with the reason for which the conversation ended, after what had come")
    func ended() throws {
        let pair = StreamPair()
        let stream = try pair.odd.open("x")
        try stream.put([1])
        try pair.settle()
        let reason = NighError(.conversing, .restarted)
        pair.even.table.end(reason)
        #expect(pair.even.opened[0].take() == .init(bytes: [1], error: .restarted))
        #expect(throws: reason) { try pair.even.opened[0].put([1]) }
    }

    @Test("take one turn each, however often their programs write")
    func oneTurnEach() throws {
        let pair = StreamPair(StreamTerms(streams: 4, window: 1 << 20))
        let (busy, quiet) = (try pair.odd.open("busy"), try pair.odd.open("quiet"))
        try pair.settle()
        try busy.put(bytes(200_000))
        for _ in 0..<10 { pair.odd.table.attend(to: busy.port) }
        try quiet.put([7])
        try pair.carry(from: pair.odd, to: pair.even, frames: 2)
        #expect(pair.even.opened[1].take().bytes == [7])
    }
}
