import NighMemory
import Synchronization
import Testing

@testable import NighCore

@Suite struct PeerPortTests {
    private func port(sendBuffer: Int = 1_000, message: Int = 500, peerMessage: Int = 16 << 20) -> PeerPort {
        var limits = SessionLimits()
        limits.sendBuffer = sendBuffer
        limits.message = message
        return PeerPort(
            peer: Frames.hello().peer, limits: limits,
            peerHello: Frames.hello(maximumFrame: 8_192, maximumMessage: peerMessage))
    }

    /// The answers that waiters got, in order.
    private final class Outcomes: Sendable {
        let answers = Guarded<[(number: UInt64, error: NighError?)]>([])

        func wait(_ port: PeerPort, _ number: UInt64) {
            port.waitForRoom(number: number) { error in self.answers.withLock { $0.append((number, error)) } }
        }

        var numbers: [UInt64] { answers.withLock { $0.map(\.number) } }
        var causes: [NighError.Cause?] { answers.withLock { $0.map { $0.error?.cause } } }
    }

    @Test func `A port admits bytes until the buffer is full`() throws {
        let port = port()
        try port.admit(0)
        #expect(port.outstanding == 4)
        try port.admit(500)
        try port.admit(491)
        #expect(port.outstanding == 1_003)
        #expect(throws: NighError.self) { try port.admit(0) }
        port.release(4)
        try port.admit(10)
        let error = #expect(throws: NighError.self) { try port.admit(1) }
        #expect(error?.cause == .bufferFull(limit: 1_000) && error?.peer == port.label)
        port.release(1_013)
        #expect(port.outstanding == 0)
    }

    @Test func `The smaller message limit applies`() throws {
        for (own, peer) in [(500, 300), (300, 500)] {
            let port = port(message: own, peerMessage: peer)
            try port.admit(300)
            let error = #expect(throws: NighError.self) { try port.admit(301) }
            #expect(error?.cause == .messageTooLarge(size: 301, limit: 300))
        }
        let none = port(peerMessage: 0)
        try none.admit(0)
        #expect(throws: NighError.self) { try none.admit(1) }
    }

    @Test func `Staged messages come out in order`() throws {
        let port = port(sendBuffer: 1 << 20, message: 1 << 20)
        #expect(!port.hasStaged)
        let large = [UInt8](repeating: 5, count: 9_000)
        for (bytes, lane) in [([1], .main), ([2, 3], .main), ([4], .bulk), (large, .main), ([6], .main)]
            as [([UInt8], Lane)]
        {
            try port.stage(ByteSlice(bytes), on: lane, isNext: false)
        }
        #expect(port.hasStaged)
        var runs: [StagedRun] = []
        while let run = port.takeStaged() { runs.append(run) }
        #expect(!port.hasStaged)
        #expect(runs.map(\.lane) == [.main, .bulk, .main, .main])
        #expect(runs.map(\.messageCount) == [2, 1, 1, 1])
        #expect(runs.map(\.isLarge) == [false, false, true, false])
        #expect(runs[0].bytes.bytes == Frames.frame(.message, [1]) + Frames.frame(.message, [2, 3]))
        #expect(runs[1].bytes.bytes == Frames.frame(.bulkMessage, [4]))
        #expect(runs[2].bytes.count == 9_000)
        #expect(port.outstanding == runs.reduce(0) { $0 + $1.bytes.count + ($1.isLarge ? 4 : 0) })
    }

    @Test func `Waiters are admitted in order`() throws {
        let (port, outcomes) = (port(sendBuffer: 100), Outcomes())
        outcomes.wait(port, 1)
        #expect(outcomes.causes == [nil])
        try port.admit(100)
        for number in 2...4 { outcomes.wait(port, UInt64(number)) }
        #expect(outcomes.numbers == [1])
        // Nobody overtakes a waiter, except the one whose turn it is.
        port.release(50)
        #expect(outcomes.numbers == [1, 2])
        #expect(throws: NighError.self) { try port.admit(1) }
        try port.admit(10, isNext: true)
        port.admitNextWaiter()
        #expect(outcomes.numbers == [1, 2, 3])
        port.cancelWait(number: 4)
        #expect(outcomes.causes == [nil, nil, nil, .cancelled])
        port.cancelWait(number: 4)
        port.cancelWait(number: 99)
        #expect(outcomes.numbers == [1, 2, 3, 4])
        try port.admit(1)
    }

    @Test func `Cancelling keeps the others in order`() throws {
        let port = port(sendBuffer: 1)
        try port.admit(0)
        let outcomes = Outcomes()
        for number in 1...5 { outcomes.wait(port, UInt64(number)) }
        port.cancelWait(number: 3)
        port.release(4)
        for _ in 0..<4 { port.admitNextWaiter() }
        #expect(outcomes.numbers == [3, 1, 2, 4, 5])
    }

    @Test func `Closing notifies every peer once`() throws {
        let port = port(sendBuffer: 1)
        try port.admit(0)
        let outcomes = Outcomes()
        outcomes.wait(port, 1)
        outcomes.wait(port, 2)
        port.close(NighError(.sending, .peerLeft))
        port.close(NighError(.sending, .closed))
        port.release(4)
        #expect(outcomes.causes == [.peerLeft, .peerLeft])
        outcomes.wait(port, 3)
        #expect(outcomes.causes == [.peerLeft, .peerLeft, .peerLeft])
        #expect(throws: NighError(.sending, .peerLeft)) {
            try port.stage(ByteSlice([1]), on: .main, isNext: false)
        }
        #expect(port.takeStaged() == nil)
    }

    @Test func `A port is listed once`() {
        let port = port()
        #expect(port.markListed())
        #expect(!port.markListed())
        port.markUnlisted()
        #expect(port.markListed())
    }

    @Test func `The loop is notified once enough is read`() {
        let port = port()
        #expect(!port.didRead(10, notifyAfter: 100))
        #expect(port.didRead(90, notifyAfter: 100))
        #expect(!port.didRead(500, notifyAfter: 100))
        port.markUnlisted()
        #expect(port.takeRead() == 600)
        #expect(port.takeRead() == 0)
        #expect(!port.didRead(99, notifyAfter: 100))
    }

    @Test func `Many threads stage each in its own order`() async throws {
        let port = port(sendBuffer: 64 << 20, message: 1 << 20)
        let (threadsDone, staged) = (Counter(), Guarded<[UInt8]>([]))
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<4 as Range<UInt8> {
                group.addTask {
                    for number in 0..<500 {
                        let bytes = ByteSlice([thread, UInt8(number >> 8), UInt8(number & 0xFF)])
                        #expect(throws: Never.self) { try port.stage(bytes, on: .main, isNext: false) }
                    }
                    threadsDone.value.wrappingAdd(1, ordering: .sequentiallyConsistent)
                }
            }
            group.addTask {
                while true {
                    let wasDone = threadsDone.value.load(ordering: .sequentiallyConsistent) == 4
                    while let run = port.takeStaged() {
                        staged.withLock { $0 += run.bytes.bytes }
                        port.release(run.bytes.count)
                    }
                    if wasDone { return }
                    await Task.yield()
                }
            }
        }
        #expect(port.outstanding == 0)
        let frames = Decoded(reference: staged.withLock { $0 }, maximumPayload: 3).frames
        #expect(frames.count == 2_000)
        for thread in 0..<4 as Range<UInt8> {
            let numbers = frames.filter { $0.bytes[0] == thread }.map {
                Int($0.bytes[1]) << 8 | Int($0.bytes[2])
            }
            #expect(numbers == Array(0..<500))
        }
    }

    private final class Counter: Sendable {
        let value = Atomic<Int>(0)
    }

    /// Room may appear at the very moment in which a caller begins to wait for it.
    @Test func `A caller does not wait for available room`() {
        let other = ThreadEventLoop()
        let (started, released, answers) = (Counter(), Counter(), Counter())
        var missed = 0
        for round in 1...8_000 {
            let port = port(sendBuffer: 1)
            #expect(throws: Never.self) { try port.admit(0) }
            other.execute {
                started.value.store(round, ordering: .sequentiallyConsistent)
                port.release(4)
                released.value.store(round, ordering: .sequentiallyConsistent)
            }
            while started.value.load(ordering: .sequentiallyConsistent) < round {}
            port.waitForRoom(number: 1) { _ in
                answers.value.wrappingAdd(1, ordering: .sequentiallyConsistent)
            }
            while released.value.load(ordering: .sequentiallyConsistent) < round {}
            if answers.value.load(ordering: .sequentiallyConsistent) + missed < round { missed += 1 }
        }
        #expect(missed == 0)
        other.shutdown()
    }
}
