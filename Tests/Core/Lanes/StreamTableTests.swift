import Testing

@testable import NighCore
@testable import NighTestKit

@Suite("Streams") struct StreamTableTests {
    private func bytes(_ count: Int, _ seed: Int = 0) -> [UInt8] { StreamPair.bytes(count, seed) }

    @Test func `carry bytes in both directions, and each direction ends for itself`() throws {
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
            let pair = StreamPair(for: [.relay])
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

    @Test func `drop what waits for credit once the other side reads no more, also while this side leaves`()
        throws
    {
        let pair = StreamPair()
        let (stream, other) = try pair.open()
        // Two of these use up the credit and are on their way. The other side drops them, and grants no more.
        for _ in 0..<3 {
            try stream.put(bytes(8_000))
            pair.odd.write()
        }
        pair.odd.table.stopWriting(NighError(.sending, .left), keepsRelays: false)
        other.cancelReading(because: "enough")
        try pair.settle()
        #expect(pair.odd.table.isDrained)
    }

    @Test func `tell a loop of a failure once, and again only if it waits for that direction`() throws {
        let pair = StreamPair()
        let loop = VirtualEventLoop()
        let (stream, other) = try pair.open()
        nonisolated(unsafe) var count = 0  // the loop is virtual: one thread
        func wait(bytes: Bool, room: Bool) throws {
            stream.notify(bytes: bytes, room: room, on: loop) { count += 1 }
            try loop.runQueued()
        }
        try wait(bytes: true, room: false)
        #expect(count == 0)
        other.cancelReading(because: "full")
        try pair.settle()
        try loop.runQueued()
        #expect(count == 1)
        try wait(bytes: true, room: false)
        #expect(count == 1)
        try other.put([1])
        try pair.settle()
        pair.odd.table.wakeReaders()
        try loop.runQueued()
        #expect(count == 2)
        try wait(bytes: false, room: true)
        #expect(count == 3)
    }

    @Test func `take one turn each, so that a short one waits neither for a long one nor for a busy program`()
        throws
    {
        let pair = StreamPair(window: 1 << 20)
        let (long, short) = (try pair.open().odd, try pair.open().odd)
        try long.put(bytes(1 << 20))
        for _ in 0..<10 { pair.odd.table.attend(to: long.port) }
        try short.put([7])
        try pair.carry(from: pair.odd, to: pair.even, frames: 2)
        #expect(pair.even.opened[1].take().bytes == [7])
    }

    @Test func `fail at the limit of streams, until one of them is over on both sides`() throws {
        let pair = StreamPair(streams: 2)
        let first = try pair.odd.open("1")
        try pair.odd.open("2")
        let error = #expect(throws: NighError.self) { try pair.odd.open("3") }
        #expect(error?.cause == .limit("streams", 2))
        first.finish()
        try pair.settle()
        #expect(throws: NighError.self) { try pair.odd.open("3") }
        pair.even.opened[0].finish()
        try pair.settle()
        // The other program has not read the end yet, but no bytes wait.
        try pair.odd.open("3")
    }

    @Test func `tell the reader why the writer gave up, after what had come before`() throws {
        let pair = StreamPair()
        let (stream, other) = try pair.open()
        try stream.put([1, 2])
        try pair.settle()
        try stream.put([3])
        stream.cancelWriting(because: "no film")
        try pair.settle()
        #expect(other.take() == .init(bytes: [1, 2], error: .streamCancelled("no film")))
        #expect(throws: NighError.self) { try stream.put([4]) }
        // The other direction goes on.
        try other.put([5])
        try pair.settle()
        #expect(stream.take().bytes == [5])
    }

    @Test func `tell the writer why the reader gave up`() throws {
        let pair = StreamPair()
        let (stream, other) = try pair.open()
        try stream.put(bytes(10_000))
        try pair.settle()
        other.cancelReading(because: "seen enough")
        try pair.settle()
        let error = #expect(throws: NighError.self) { try stream.put([1]) }
        #expect(error?.cause == .streamCancelled("seen enough"))
        #expect(other.take().error == .streamCancelled("seen enough"))
    }

    @Test func `tell a side that prepares an answer that nobody waits for it, though it has read all`()
        async throws
    {
        let pair = StreamPair()
        let (question, answer) = try pair.open()
        try question.put([1])
        question.finish()
        try pair.settle()
        #expect(answer.take() == .init(bytes: [1], hasEnded: true))
        let reason = Task { await answer.stopped() }
        question.cancel(because: "it takes too long")
        try pair.settle()
        #expect(await reason.value?.cause == .streamCancelled("it takes too long"))
    }

    @Test func `stop waiting for the end of writing when this side finishes, or the task is cancelled`()
        async throws
    {
        let pair = StreamPair()
        let stream = try pair.open().odd
        let cancelled = Task { await stream.stopped() }
        cancelled.cancel()
        #expect(await cancelled.value?.cause == .cancelled)
        let finished = Task { await stream.stopped() }
        stream.finish()
        #expect(await finished.value == nil)
    }

    @Test func `show that the link is lost, also those that are opened then, until there is another one`()
        throws
    {
        let pair = StreamPair()
        let earlier = try pair.odd.open("earlier")
        pair.odd.table.isReconnecting = true
        let later = try pair.odd.open("later")
        #expect(earlier.isReconnecting && later.isReconnecting)
        pair.odd.table.isReconnecting = false
        #expect(!earlier.isReconnecting && !later.isReconnecting)
    }

    @Test func `are cancelled when the program lets go of them, but what was finished arrives`() throws {
        let pair = StreamPair()
        for (number, isFinished) in [true, false].enumerated() {
            let stream = ByteStream(try pair.odd.table.open(named: "\(number)", for: .program))
            try stream.put([1, 2, 3])
            if isFinished { stream.finish() }
        }
        try pair.settle()
        #expect(pair.even.opened[0].take() == .init(bytes: [1, 2, 3], hasEnded: true))
        #expect(pair.even.opened[1].take().error != nil)
        #expect(throws: NighError.self) { try pair.even.opened[0].put([1]) }
        for stream in pair.even.opened { stream.finish() }
        pair.even.opened = []
        try pair.settle()
        // Nothing of them is left on either side.
        for number in 0..<4 { try pair.odd.open("\(number)") }
        #expect(!pair.odd.table.isDrained)
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `carry every byte once and in order over links that are cut at any frame`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let pair = StreamPair(streams: 3, window: generator.pick([1, 500, 20_000, 100_000]) ?? 1)
        var streams: [ByteStream] = []
        var sent: [[UInt8]] = []
        var received: [[UInt8]] = []
        func take(_ index: Int) -> Bool {
            while received.count < pair.even.opened.count { received.append([]) }
            let content = pair.even.opened[index].take()
            received[index] += content.bytes
            return content.hasEnded
        }
        for _ in 0..<600 {
            switch generator.number(0...9) {
            case 0 where sent.count < 3:
                streams.append(try pair.odd.open("\(sent.count)"))
                sent.append([])
            case 1..<5:
                guard let index = streams.indices.randomElement(using: &generator) else { continue }
                let more = bytes(generator.number(1...30_000), generator.number(0...99))
                sent[index] += more[..<(try streams[index].put(more))]
            case 5: try pair.carry(from: pair.odd, to: pair.even, frames: generator.number(0...9))
            case 6: try pair.carry(from: pair.even, to: pair.odd, frames: generator.number(0...9))
            case 7: try pair.acknowledge()
            case 8 where generator.chance(30): try pair.cut()
            default:
                guard let index = pair.even.opened.indices.randomElement(using: &generator) else { continue }
                _ = take(index)
            }
            #expect(pair.odd.table.isConsistent && pair.even.table.isConsistent)
        }
        for stream in streams { stream.finish() }
        try pair.cut()
        var ended: Set<Int> = []
        for _ in 0..<400_000 where ended.count < sent.count {
            try pair.settle()
            for index in pair.even.opened.indices where take(index) { ended.insert(index) }
        }
        #expect(received == sent)
        try pair.settle()
        #expect(pair.odd.table.isDrained && pair.even.table.isDrained)
    }

    @Test func `do not fill the memory for a peer that makes them answer and acknowledges nothing`() throws {
        let pair = StreamPair(streams: 256, window: 1 << 20)
        // The other side opens streams and cancels them, for ever; each needs an answer.
        #expect(throws: WireError.malformed("more streams than were allowed")) {
            for number in stride(from: 2, to: 1_000_000 as UInt32, by: 2) {
                try pair.odd.receive(.open(name: "x"), for: number)
                try pair.odd.receive(.cancel(reason: ""), for: number)
                pair.odd.opened = []
                pair.odd.write()
                pair.odd.wire.removeAll()
            }
        }
        #expect(pair.odd.table.unacknowledged <= (4 << 20) + (20 << 10))
    }

    @Test func `wait while 4 MiB of their frames are not acknowledged, and go on when some are`() throws {
        let limit = 4 << 20
        let pair = StreamPair(window: 5 << 20)
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
    }

    /// Controls that a side may not send for a stream of the other side, or for one of its own.
    @Test(
        arguments: [
            [.open(name: "again")], [.finish, .finish], [.cancel(reason: ""), .finish], [.release],
            [.credit(9_999)],
        ] as [[StreamControl]])
    func `end the link if the other side breaks a rule`(_ controls: [StreamControl]) throws {
        let pair = StreamPair()
        _ = try pair.open()
        #expect(throws: WireError.self) {
            for control in controls { try pair.odd.receive(control, for: 1) }
        }
    }

    @Test func `end the link for frames of streams that are not open`() throws {
        let controls: [(StreamControl, UInt32)] = [
            (.credit(1), 2), (.finish, 2), (.cancel(reason: ""), 2), (.stop(reason: ""), 2), (.release, 2),
            (.open(name: "x"), 4), (.open(name: "x"), 1),
        ]
        for (control, number) in controls {
            #expect(throws: WireError.self) { try StreamPair().odd.receive(control, for: number) }
        }
        for data in [[0, 0, 0, 2, 1], [0, 0, 0, 2], [0, 0]] as [[UInt8]] {
            #expect(throws: WireError.self) { try StreamPair().odd.receive(Frames.frame(.streamData, data)) }
        }
    }

    @Test func `accept words about a stream that they have forgotten and the other side has not`() throws {
        let pair = StreamPair()
        let (stream, other) = try pair.open()
        stream.finish()
        try pair.settle()
        other.finish()
        try pair.carry(from: pair.even, to: pair.odd, frames: 1)
        for control: StreamControl in [.credit(20_000), .stop(reason: "")] {
            try pair.even.receive(control, for: 1)
        }
        #expect(throws: WireError.self) { try pair.even.receive(.finish, for: 1) }
    }

    @Test func `for files pass only to a side that accepts them, and say there what they are for`() throws {
        let pair = StreamPair(for: [.files], odd: [])
        let files = try pair.odd.open("same name", for: .files)
        let own = try pair.odd.open("same name")
        #expect(files.purpose == .files && own.purpose == .program)
        try files.put([1, 2])
        pair.odd.write()
        // The announcement of a stream is sent again like everything else.
        try pair.cut()
        try pair.settle()
        #expect(pair.even.opened.map(\.purpose) == [.files, .program])
        #expect(pair.even.opened.map(\.name) == ["same name", "same name"])
        #expect(pair.even.opened[0].take() == .init(bytes: [1, 2]))

        let error = #expect(throws: NighError.self) { try pair.even.open("x", for: .files) }
        #expect(error?.cause == .unsupported("files"))
        try pair.even.open("x")
        #expect(throws: WireError.malformed("a stream for files, which this side does not accept")) {
            try pair.odd.receive(.open(name: "x", for: .files), for: 2)
        }
    }

    @Test func `wake their readers once for all that comes together`() async throws {
        let pair = StreamPair()
        let (outgoing, incoming) = try pair.open()
        async let first = incoming.read()
        while !incoming.port.hasReader { await Task.yield() }
        for _ in 0..<3 {
            try outgoing.put(bytes(1_000))
            try pair.carry(from: pair.odd, to: pair.even)
            #expect(pair.even.table.hasReadersToWake && incoming.port.hasReader)
        }
        pair.even.table.wakeReaders()
        #expect(!pair.even.table.hasReadersToWake)
        #expect(try await first?.count == 3_000)
    }

    @Test func `write control frames into the memory that they have`() throws {
        let pair = StreamPair(streams: 64, window: 40)
        let names = (0..<60).map { String(repeating: "n", count: $0 * 37 % 256) }
        let streams = try names.map { try pair.odd.open($0) }
        try pair.settle()
        #expect(pair.even.opened.map(\.name) == names)
        // The long words of one stream do not show up behind the short ones of the next.
        for (index, stream) in streams.enumerated() { stream.cancelWriting(because: names[59 - index]) }
        try pair.settle()
        #expect(pair.even.opened.map { $0.take().error } == names.reversed().map { .streamCancelled($0) })
    }

    @Test func `refuse impossible counts`() throws {
        let pair = StreamPair()
        try pair.odd.open("x")
        pair.odd.write()
        #expect(throws: WireError.self) { try pair.odd.table.acknowledge(upTo: 2) }
        try pair.odd.table.acknowledge(upTo: 1)
        #expect(throws: WireError.self) { try pair.odd.table.startLink(count: 0) }
        #expect(throws: WireError.self) { try pair.odd.table.startLink(count: 2) }
    }

    @Test func `end with the reason for which the conversation ended, after what had come`() throws {
        let pair = StreamPair()
        let (stream, other) = try pair.open()
        try stream.put([1])
        try pair.settle()
        let reason = NighError(.conversing, .restarted)
        pair.even.table.end(reason)
        #expect(other.take() == .init(bytes: [1], error: .restarted))
        #expect(throws: reason) { try other.put([1]) }
    }
}
