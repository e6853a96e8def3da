import NighTestKit
import Synchronization
import Testing

@testable import NighCore

extension Inbox {
    /// Returns the next element, as a reader of the inbox gets it.
    fileprivate nonisolated(nonsending) func next() async -> Element? {
        while true {
            if let element = poll() { return element }
            guard await wait() else { return nil }
        }
    }

    /// A task that reads one element, once it waits for it.
    fileprivate func waitingReader() async -> Task<Element?, Never> {
        let reader = Task { await next() }
        await letOthersRun { hasReader }
        return reader
    }
}

/// Lets other tasks run until `condition` holds. Gives up at some point instead of hanging.
private func letOthersRun(until condition: () -> Bool) async {
    for _ in 0..<100_000 where !condition() { await Task.yield() }
}

/// A task that is cancelled before it makes a call.
private func cancelled<Result: Sendable>(
    _ call: @escaping @Sendable () async -> Result
) async -> Result {
    let task = Task {
        while !Task.isCancelled { await Task.yield() }
        return await call()
    }
    task.cancel()
    return await task.value
}

@Suite struct InboxTests {
    private let inbox = Inbox<Int>()

    @Test func `Elements come out in order`() async {
        #expect(inbox.poll() == nil)
        for number in 0..<100 { inbox.append(number) }
        #expect(inbox.poll() == 0)
        for number in 1..<100 { #expect(await inbox.next() == number) }
        inbox.append(100)
        inbox.finish()
        inbox.append(101)
        #expect(await inbox.next() == 100)
        #expect(await inbox.next() == nil)
        #expect(await inbox.next() == nil)
        #expect(inbox.poll() == nil)
    }

    @Test(arguments: [7, nil])
    func `A waiting reader gets the next element, or nothing at the end`(element: Int?) async {
        let reader = await inbox.waitingReader()
        if let element { inbox.append(element) } else { inbox.finish() }
        #expect(await reader.value == element)
        #expect(inbox.poll() == nil)
    }

    @Test func `A reader does not wait if the condition holds`() async {
        #expect(await inbox.wait(unless: { true }))
        #expect(!inbox.hasReader)
        inbox.finish()
        #expect(await inbox.wait(unless: { true }))
        #expect(await !inbox.wait(unless: { false }))
    }

    @Test func `The oldest elements are dropped beyond the limit`() {
        for number in 0..<10 { inbox.append(number, droppingOldestBeyond: 3) }
        #expect(inbox.takeDropped() == 7)
        #expect(inbox.takeDropped() == 0)
        #expect(inbox.poll() == 7)
        inbox.append(10, droppingOldestBeyond: 0)
        #expect(inbox.takeDropped() == 2)
        #expect(inbox.poll() == 10)
        #expect(inbox.poll() == nil)
    }

    @Test func `A cancelled reader gets nil and loses nothing`() async {
        let reader = await inbox.waitingReader()
        reader.cancel()
        #expect(await reader.value == nil)
        #expect(!inbox.hasReader)
        inbox.append(1)
        #expect(await inbox.next() == 1)
        #expect(await cancelled { await inbox.next() } == nil)
        #expect(!inbox.hasReader)
    }

    @Test func `A cancelled second reader leaves the first alone`() async {
        let first = await inbox.waitingReader()
        #expect(await cancelled { await inbox.next() } == nil)
        #expect(inbox.hasReader, "a reader that never waited ended another's wait")
        inbox.append(5)
        #expect(await first.value == 5)
    }

    @Test func `Nothing is lost between a thread and a task`() async {
        let sending = Task.detached { [inbox] in
            for number in 1...20_000 { inbox.append(number) }
            inbox.finish()
        }
        var count = 0
        while let number = await inbox.next() {
            #expect(number == count + 1)
            count = number
        }
        await sending.value
        #expect(count == 20_000)
    }
}

/// Tests how runs of messages that arrived together are read one by one, and when the reading is reported.
@Suite struct MessageInboxTests {
    private let loop = VirtualEventLoop()
    private let peer = Frames.hello().peer
    private let port: PeerPort
    private let woken = Counter()
    private let portNotifier: PortNotifier

    private final class Counter: Sendable {
        let value = Atomic<Int>(0)
    }

    init() {
        port = PeerPort(peer: peer, limits: SessionLimits(), peerHello: Frames.hello())
        portNotifier = PortNotifier(loop: loop) { [woken] in woken.value.wrappingAdd(1, ordering: .relaxed) }
    }

    /// How often the loop was woken.
    private func wakeups() throws -> Int {
        try loop.runQueued()
        return woken.value.load(ordering: .relaxed)
    }

    private func inbox(window: Int = 1 << 20) -> MessageInbox {
        MessageInbox(receiveWindow: window, owner: peer, portNotifier: portNotifier)
    }

    /// A run of frames, one behind the other, somewhere in a chunk.
    private func frames(_ messages: [(FrameType, [UInt8])]) -> UnreadRun {
        let chunk = Chunk(capacity: 1 << 20)
        _ = chunk.claim(7)
        for (type, payload) in messages {
            FrameHeader(type: type, payloadLength: payload.count).write(
                to: chunk.claim(FrameHeader.byteCount))
            payload.withUnsafeBytes { chunk.append($0) }
        }
        return UnreadRun(port: port, bytes: chunk.slice(from: 7), origin: nil)
    }

    /// A run of one message without a frame.
    private func message(_ bytes: [UInt8], on lane: Lane) -> UnreadRun {
        UnreadRun(
            port: port, bytes: ByteSlice(bytes),
            origin: MessageOrigin(peer: peer, lane: lane, isReliable: true))
    }

    private func numbers(_ range: Range<UInt8>, size: Int = 1) -> UnreadRun {
        frames(range.map { (.message, [UInt8](repeating: $0, count: size)) })
    }

    @Test func `A run is cut into its messages`() async {
        let inbox = inbox()
        inbox.append(frames([(.message, [1, 2]), (.bulkMessage, []), (.unreliable, [3]), (.message, [])]))
        inbox.append(message([9, 9], on: .bulk))
        inbox.append(numbers(5..<6))
        inbox.finish()
        var read: [Message] = []
        while let message = await inbox.next() { read.append(message) }
        #expect(read.map(\.bytes) == [[1, 2], [], [3], [], [9, 9], [5]])
        #expect(read.map(\.origin.lane) == [.main, .bulk, .main, .main, .bulk, .main])
        #expect(read.map(\.origin.isReliable) == [true, true, false, true, true, true])
        #expect(read.allSatisfy { $0.sender == peer })
        #expect(inbox.poll() == nil)
    }

    @Test func `Small messages that wait do not each keep the large chunk in which they came`() {
        let inbox = inbox()
        for number in 0..<200 { inbox.append(numbers(UInt8(number)..<UInt8(number) + 1)) }
        var chunks: [ObjectIdentifier: Int] = [:]
        var messages: [Message] = []
        while let message = inbox.poll() {
            chunks[ObjectIdentifier(message.payload.chunk)] = message.payload.chunk.capacity
            messages.append(message)
        }
        #expect(messages.flatMap(\.bytes) == Array(0..<200))
        #expect(chunks.values.reduce(0, +) <= 18 << 20)
    }

    // MARK: Counting

    /// It takes no room of the next conversation.
    @Test func `What nobody will read any more counts as read`() {
        let runs = [numbers(0..<10), numbers(10..<20), numbers(20..<30), numbers(30..<31)]
        var inbox: MessageInbox? = inbox()
        for run in runs.dropLast() { inbox?.append(run) }
        for _ in 0..<13 { _ = inbox?.poll() }
        inbox?.finish()
        inbox?.append(runs[3])
        inbox = nil
        #expect(port.takeRead() == runs.reduce(0) { $0 + $1.bytes.count })
    }

    @Test func `Read bytes are counted once the run is read`() {
        let inbox = inbox()
        let run = numbers(0..<10)
        inbox.append(run)
        for _ in 0..<9 { #expect(inbox.poll() != nil) }
        #expect(port.takeRead() == 0)
        #expect(inbox.poll() != nil)
        #expect(port.takeRead() == run.bytes.count)
        #expect(inbox.poll() == nil)
        #expect(port.takeRead() == 0)
        inbox.append(message([1, 2, 3], on: .main))
        #expect(inbox.poll() != nil)
        #expect(port.takeRead() == SendLane.cost(of: 3))
    }

    @Test func `A long run is counted while it is read, several messages at a time`() {
        let window = 6_400
        let inbox = inbox(window: window)
        let run = numbers(0..<100, size: 96)
        inbox.append(run)
        var read = 0
        var counted = 0
        var times = 0
        while let message = inbox.poll() {
            read += SendLane.cost(of: message.payload.count)
            let more = port.takeRead()
            counted += more
            times += more > 0 ? 1 : 0
            #expect(read - counted <= window / 16 + 100, "what was read is not counted")
            #expect(counted <= read)
        }
        #expect(counted == run.bytes.count && times == run.bytes.count / (window / 16))
    }

    @Test func `The loop is notified when a quarter of the window is read`() throws {
        let inbox = inbox(window: 6_400)
        inbox.append(numbers(0..<64, size: 96))
        for _ in 0..<15 { _ = inbox.poll() }
        #expect(try wakeups() == 0)
        // A quarter is 16 messages. A message that was read may be counted up to four messages later.
        for _ in 15..<20 { _ = inbox.poll() }
        #expect(try wakeups() == 1)
    }

    @Test func `A window of a few bytes counts each message`() {
        let inbox = inbox(window: 1)
        inbox.append(numbers(0..<3))
        for _ in 0..<3 {
            #expect(inbox.poll() != nil)
            #expect(port.takeRead() == SendLane.cost(of: 1))
        }
    }

    @Test func `The last message keeps the memory`() {
        let inbox = inbox()
        var chunk = Chunk(capacity: 64)
        for _ in 0..<2 {
            FrameHeader(type: .message, payloadLength: 0).write(to: chunk.claim(FrameHeader.byteCount))
        }
        inbox.append(UnreadRun(port: port, bytes: chunk.slice(from: 0), origin: nil))
        #expect(inbox.poll() != nil)
        #expect(!Chunk.rewindIfUnshared(&chunk), "an unread message lost its memory")
        var last = inbox.poll()
        #expect(last != nil)
        #expect(!Chunk.rewindIfUnshared(&chunk), "a message lost its memory")
        last = nil
        #expect(Chunk.rewindIfUnshared(&chunk), "the inbox keeps what was read")
    }

    @Test func `The loop is woken once for several ports`() throws {
        let others = (0..<3).map { _ in
            PeerPort(peer: peer, limits: SessionLimits(), peerHello: Frames.hello())
        }
        for other in others { portNotifier.add(other) }
        #expect(try wakeups() == 1)
        var listed: ContiguousArray<PeerPort> = []
        portNotifier.take(into: &listed)
        #expect(listed.count == 3)
        portNotifier.add(others[0])
        #expect(try wakeups() == 2)
    }

    // MARK: Readers

    @Test func `A reader does not wait while a run has messages`() async {
        let inbox = inbox()
        inbox.append(numbers(0..<3))
        #expect(inbox.poll()?.bytes == [0])
        // The run is no longer in the queue.
        #expect(await inbox.next()?.bytes == [1])
        #expect(await inbox.next()?.bytes == [2])
        let reader = Task { await inbox.next() }
        await letOthersRun { inbox.hasReader }
        #expect(inbox.hasReader)
        inbox.append(numbers(3..<5))
        #expect(await reader.value?.bytes == [3])
        inbox.finish()
        #expect(await inbox.next()?.bytes == [4])
        #expect(await inbox.next() == nil)
    }

    @Test func `A message that is there is read also by a task that is cancelled`() async {
        let inbox = inbox()
        inbox.append(numbers(1..<2))
        #expect(await cancelled { await inbox.next()?.bytes } == [1])
    }

    @Test func `Several readers on threads of their own get each message once`() async {
        let inbox = inbox()
        let rounds = 200
        let isComplete = Counter()
        let counts = await withTaskGroup(of: [Int].self) { group in
            group.addTask { @concurrent in
                for _ in 0..<rounds { inbox.append(numbers(0..<200)) }
                isComplete.value.store(1, ordering: .sequentiallyConsistent)
                return []
            }
            for _ in 0..<4 {
                group.addTask { @concurrent in
                    var counts = [Int](repeating: 0, count: 256)
                    while true {
                        let wasComplete = isComplete.value.load(ordering: .sequentiallyConsistent) == 1
                        while let message = inbox.poll() { counts[Int(message.payload.bytes[0])] += 1 }
                        if wasComplete { return counts }
                    }
                }
            }
            return await group.reduce(into: [Int](repeating: 0, count: 256)) { sum, counts in
                for (index, count) in counts.enumerated() { sum[index] += count }
            }
        }
        #expect(counts.prefix(200).allSatisfy { $0 == rounds })
    }
}

extension MessageInbox {
    /// Reads as the program does.
    nonisolated(nonsending) fileprivate func next() async -> Message? {
        await MessageSequence(inbox: self).next()
    }
}
