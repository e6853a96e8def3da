import NighCore
import NighFiles
import NighTestKit
import Testing

/// Tests how a side of a transfer and its stream end together. Two sessions in virtual time; the disk is in memory.
@Suite("A transfer and its stream", .timeLimit(.minutes(15))) struct TransferStepsTests {
    /// The two ends of a stream for files, each with its side of the transfer.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    private final class Transfer: @unchecked Sendable {
        let disk = MemoryDisk()
        let outgoing: OutgoingFiles
        let incoming = IncomingFiles()
        private let pair: VirtualPair<TestLayer>
        private let arrivals = Arrivals()
        private let opened: ByteStream
        private var sending: TransferSteps?
        private var receiving: TransferSteps?
        private(set) var sent: TransferEnding?
        private(set) var received: TransferEnding?

        /// `@unchecked Sendable`: everything happens on the one virtual loop.
        private final class Arrivals: @unchecked Sendable {
            var stream: ByteStream?
        }

        init(_ files: MemoryFiles) throws {
            outgoing = OutgoingFiles(files)
            pair = try VirtualPair { [arrivals] in
                TestLayer(streams: .files) { arrivals.stream = $0 }
            }
            opened = try pair.puma.session.reference.openStream(
                named: "files", to: pair.lynx.session.id, for: .files)
            try pair.run()
            sending = TransferSteps(outgoing, on: opened)
        }

        var loop: VirtualEventLoop { pair.loop }

        /// Moves the sender with `isSending`, the network, and the receiver with `isReading`.
        func run(turns: Int = 50, isSending: Bool = true, isReading: Bool = true) throws {
            for _ in 0..<turns {
                if isSending, sent == nil { sent = try step(sending) }
                if receiving == nil, let stream = arrivals.stream {
                    receiving = TransferSteps(incoming, on: stream)
                }
                if isReading, received == nil { received = try step(receiving) }
                if incoming.isDeciding { incoming.accept(into: disk.store(for: incoming.items)) }
            }
        }

        /// Moves both until the receiver has asked for the files, and no byte of them has come.
        func begin() throws {
            for _ in 0..<50 where !incoming.isUnderway { try run(turns: 1) }
            try run(turns: 1)
            try #require(incoming.isUnderway && incoming.progress.transferred == 0)
        }

        /// Stops the sender, which then makes one step.
        func stop() {
            outgoing.stop(FileFault(.changed, "the tapes are mixed up"))
            if case .over(let ending)? = sending?.step(at: loop.now) { sent = ending }
        }

        /// Says something in the place of the receiver, or of the sender.
        func say(_ records: FileRecord..., asSender isSender: Bool = false) throws {
            let stream = try #require(isSender ? opened : arrivals.stream)
            for record in records { try record.bytes.withUnsafeBytes { _ = try stream.tryWrite($0) } }
        }

        /// Whether the receiver knows why the sender has stopped.
        var hasReason: Bool {
            guard case .lost(let error)? = received else { return false }
            return error.cause == .streamCancelled("the tapes are mixed up")
        }

        /// Moves a side until it waits. Returns how it has ended.
        private func step(_ steps: TransferSteps?) throws -> TransferEnding? {
            defer { try? loop.run(for: .milliseconds(10)) }
            guard let steps else { return nil }
            while true {
                switch steps.step(at: loop.now) {
                case .none: continue
                case .over(let ending): return ending
                case .activity, .input, .time: return nil
                }
            }
        }
    }

    @Test func `The receiver gets the reason of a sender that stops while the window is full`() throws {
        let transfer = try Transfer(MemoryFiles([("a", content(4 << 20))]))
        try transfer.begin()
        try transfer.run(isReading: false)
        transfer.stop()
        // Now there is room.
        try transfer.run(turns: 5, isSending: false)
        try transfer.run()
        #expect(transfer.sent?.fault?.explanation == "the tapes are mixed up" && transfer.hasReason)
    }

    @Test func `A sender waits only a while for the end of a receiver that has kept all`() throws {
        let transfer = try Transfer(MemoryFiles([("a", [1, 2, 3])]))
        try transfer.run(isReading: false)
        try transfer.say(.accept, .ready(index: 0))
        try transfer.run(isReading: false)
        try transfer.say(.kept(index: 0))
        try transfer.run(isReading: false)
        #expect(transfer.outgoing.progress.itemsDone == 1 && transfer.sent == nil)
        try transfer.loop.run(for: TransferSteps.leavingTime.duration)
        try transfer.run(turns: 1, isReading: false)
        #expect(transfer.sent?.isComplete == true)
    }

    @Test func `A receiver that has received all waits only a while for the end of its sender`() throws {
        let transfer = try Transfer(MemoryFiles([("a", [1, 2, 3])]))
        try transfer.say(
            .offer(count: 1, metadata: []), .item(FileItem(.folder, path: "f", size: 0)), asSender: true)
        try transfer.run(isSending: false)
        #expect(transfer.incoming.progress.itemsDone == 1 && transfer.received == nil)
        try transfer.loop.run(for: TransferSteps.leavingTime.duration)
        try transfer.run(turns: 1, isSending: false)
        #expect(transfer.received?.isComplete == true)
    }

    @Test(arguments: [true, false])
    func `A receiver that has paused or has no room learns that the sender stopped`(isPaused: Bool) throws {
        let transfer = try Transfer(MemoryFiles([("a", content(100_000))]))
        try transfer.begin()
        try transfer.run(isReading: false)
        if isPaused { transfer.incoming.setPaused(true, because: "") } else { transfer.disk.capacity = 0 }
        try transfer.run()
        #expect(transfer.outgoing.progress.transferred == 100_000 && transfer.incoming.progress.done == 0)
        #expect(transfer.received == nil)
        transfer.stop()
        try transfer.run()
        #expect(transfer.hasReason)
    }
}
