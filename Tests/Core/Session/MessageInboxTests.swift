import NighTestKit
import Synchronization
import Testing

@testable import NighCore

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
        port = PeerPort(
            peer: peer, limits: SessionLimits(),
            peerHello: Frames.hello())
        portNotifier = PortNotifier(loop: loop) { [woken] in
            woken.value.wrappingAdd(1, ordering: .relaxed)
        }
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

    private func numbers(_ range: Range<UInt8>, size: Int = 1) -> UnreadRun {
        frames(range.map { (.message, [UInt8](repeating: $0, count: size)) })
    }

    /// Lets other tasks run until `condition` holds. Gives up at some point instead of hanging.
    private func wait(until condition: () -> Bool) async {
        for _ in 0..<100_000 where !condition() { await Task.yield() }
    }

    @Test func aRunIsCutIntoItsMessages() async {
        let inbox = inbox()
        inbox.append(frames([(.message, [1, 2]), (.bulkMessage, []), (.unreliable, [3]), (.message, [])]))
        inbox.append(
            UnreadRun(
                port: port, bytes: ByteSlice([9, 9]),
                origin: MessageOrigin(peer: peer, lane: .bulk, isReliable: true)))
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

    @Test("Small messages that wait do not each keep the large chunk in which they came")
    func memoryOfABacklog() {
        let inbox = inbox()
        for number in 0..<200 { inbox.append(numbers(UInt8(number)..<UInt8(number) + 1)) }
        var chunks: [ObjectIdentifier: Int] = [:]
        var read: [UInt8] = []
        var messages: [Message] = []
        while let message = inbox.poll() {
            let chunk = message.payload.chunk
            chunks[ObjectIdentifier(chunk)] = chunk.capacity
            read += message.bytes
            messages.append(message)
        }
        #expect(read == Array(0..<200))
        #expect(chunks.values.reduce(0, +) <= 18 << 20)
    }

    @Test("What nobody will read any more counts as read: it takes no room of the next conversation")
    func unreadAtTheEnd() {
        let runs = [numbers(0..<10), numbers(10..<20), numbers(20..<30)]
        let total = runs.reduce(0) { $0 + $1.bytes.count }
        var inbox: MessageInbox? = inbox()
        for run in runs { inbox?.append(run) }
        for _ in 0..<13 { _ = inbox?.poll() }
        inbox?.finish()
        inbox?.append(numbers(30..<31))
        inbox = nil
        #expect(port.takeRead() == total + numbers(30..<31).bytes.count)
    }

    @Test func readBytesAreCountedOnceTheRunIsRead() {
        let inbox = inbox()
        let run = numbers(0..<10)
        inbox.append(run)
        for _ in 0..<9 { #expect(inbox.poll() != nil) }
        #expect(port.takeRead() == 0)
        #expect(inbox.poll() != nil)
        #expect(port.takeRead() == run.bytes.count)
        #expect(inbox.poll() == nil)
        #expect(port.takeRead() == 0)
        inbox.append(
            UnreadRun(
                port: port, bytes: ByteSlice([1, 2, 3]),
                origin: MessageOrigin(peer: peer, lane: .main, isReliable: true)))
        #expect(inbox.poll() != nil)
        #expect(port.takeRead() == SendLane.cost(of: 3))
    }

    @Test func aLongRunIsCountedWhileItIsRead() {
        let window = 6_400
        let inbox = inbox(window: window)
        let run = numbers(0..<100, size: 96)
        inbox.append(run)
        var read = 0
        var counted = 0
        while let message = inbox.poll() {
            read += SendLane.cost(of: message.payload.count)
            counted += port.takeRead()
            #expect(read - counted <= window / 16 + 100, "what was read is not counted")
            #expect(counted <= read)
        }
        #expect(counted == run.bytes.count)
    }

    @Test func theLoopIsNotifiedWhenAQuarterOfTheWindowIsRead() throws {
        let inbox = inbox(window: 6_400)
        inbox.append(numbers(0..<64, size: 96))
        for _ in 0..<15 { _ = inbox.poll() }
        try loop.runQueued()
        #expect(woken.value.load(ordering: .relaxed) == 0)
        // A quarter is 16 messages. A message that was read may be counted up to four messages later.
        for _ in 15..<20 { _ = inbox.poll() }
        try loop.runQueued()
        #expect(woken.value.load(ordering: .relaxed) == 1)
    }

    @Test func aWindowOfAFewBytesCountsEachMessage() {
        let inbox = inbox(window: 1)
        inbox.append(numbers(0..<3))
        for _ in 0..<3 {
            #expect(inbox.poll() != nil)
            #expect(port.takeRead() == SendLane.cost(of: 1))
        }
    }

    @Test func theLastMessageKeepsTheMemory() {
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

    @Test func aReaderDoesNotWaitWhileARunHasMessages() async {
        let inbox = inbox()
        inbox.append(numbers(0..<3))
        #expect(inbox.poll()?.bytes == [0])
        // The run is no longer in the queue.
        #expect(await inbox.next()?.bytes == [1])
        #expect(await inbox.next()?.bytes == [2])
        let reader = Task { await inbox.next() }
        await wait { inbox.hasReader }
        #expect(inbox.hasReader)
        inbox.append(numbers(3..<5))
        #expect(await reader.value?.bytes == [3])
        inbox.finish()
        #expect(await inbox.next()?.bytes == [4])
        #expect(await inbox.next() == nil)
    }

    @Test func aCancelledReaderLosesNothing() async {
        let inbox = inbox()
        let reader = Task { await inbox.next() }
        await wait { inbox.hasReader }
        reader.cancel()
        #expect(await reader.value == nil)
        inbox.append(numbers(0..<2))
        #expect(await inbox.next()?.bytes == [0])
        let late = Task { () -> [UInt8]? in
            while !Task.isCancelled { await Task.yield() }
            return await inbox.next()?.bytes
        }
        late.cancel()
        #expect(await late.value == [1], "a message that is there is read also by a task that is cancelled")
    }

    @Test func twoConcurrentReadersGetEachMessageOnce() async {
        let inbox = inbox()
        let count = 300
        let seen = await withTaskGroup(of: [UInt8].self) { group in
            group.addTask {
                for _ in 0..<count { inbox.append(numbers(0..<100)) }
                inbox.finish()
                return []
            }
            for _ in 0..<2 {
                group.addTask {
                    var seen: [UInt8] = []
                    for _ in 0..<1_000_000 where seen.count < count * 50 {
                        if let message = inbox.poll() {
                            seen.append(message.bytes[0])
                        } else {
                            await Task.yield()
                        }
                    }
                    return seen
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(seen.count == count * 100)
        for number in UInt8(0)..<100 { #expect(seen.count { $0 == number } == count) }
    }

    @Test func theLoopIsWokenOnceForSeveralPorts() throws {
        let others = (0..<3).map { _ in
            PeerPort(peer: peer, limits: SessionLimits(), peerHello: Frames.hello())
        }
        for other in others { portNotifier.add(other) }
        try loop.runQueued()
        #expect(woken.value.load(ordering: .relaxed) == 1)
        var listed: ContiguousArray<PeerPort> = []
        portNotifier.take(into: &listed)
        #expect(listed.count == 3)
        portNotifier.add(others[0])
        try loop.runQueued()
        #expect(woken.value.load(ordering: .relaxed) == 2)
    }

    @Test func severalPollingThreadsGetEachMessageOnce() async {
        let inbox = inbox()
        let rounds = 200
        for _ in 0..<rounds { inbox.append(numbers(0..<200)) }
        let counts = await withTaskGroup(of: [Int].self) { group in
            for _ in 0..<4 {
                group.addTask { @concurrent in
                    var counts = [Int](repeating: 0, count: 256)
                    while let message = inbox.poll() { counts[Int(message.payload.bytes[0])] += 1 }
                    return counts
                }
            }
            var sum = [Int](repeating: 0, count: 256)
            for await counts in group { for index in sum.indices { sum[index] += counts[index] } }
            return sum
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
