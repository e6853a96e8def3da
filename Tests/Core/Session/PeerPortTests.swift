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

    @Test func aPortAdmitsBytesUntilTheBufferIsFull() throws {
        let port = port()
        try port.admit(0)
        #expect(port.outstanding == 4)
        try port.admit(500)
        try port.admit(491)
        #expect(port.outstanding == 1_003)
        #expect(throws: NighError.self) { try port.admit(0) }
        port.release(4)
        try port.admit(10)
        do {
            try port.admit(1)
            Issue.record("more than the buffer was admitted")
        } catch {
            #expect(error.cause == .bufferFull(limit: 1_000))
            #expect(error.peer == port.label)
        }
        port.release(1_013)
        #expect(port.outstanding == 0)
    }

    @Test func theSmallerMessageLimitApplies() throws {
        for (own, peer) in [(500, 300), (300, 500)] {
            let port = port(message: own, peerMessage: peer)
            try port.admit(300)
            do {
                try port.admit(301)
                Issue.record("a message over the limit was admitted")
            } catch {
                #expect(error.cause == .messageTooLarge(size: 301, limit: 300))
            }
        }
        let none = port(peerMessage: 0)
        try none.admit(0)
        #expect(throws: NighError.self) { try none.admit(1) }
    }

    @Test func stagedMessagesComeOutInOrder() throws {
        let port = port(sendBuffer: 1 << 20, message: 1 << 20)
        #expect(!port.hasStaged)
        try port.stage(ByteSlice([1]), on: .main, isNext: false)
        try port.stage(ByteSlice([2, 3]), on: .main, isNext: false)
        try port.stage(ByteSlice([4]), on: .bulk, isNext: false)
        try port.stage(ByteSlice([UInt8](repeating: 5, count: 9_000)), on: .main, isNext: false)
        try port.stage(ByteSlice([6]), on: .main, isNext: false)
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

    @Test func waitersAreAdmittedInOrder() throws {
        let port = port(sendBuffer: 100)
        let outcomes = Outcomes()
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

    @Test func cancellingKeepsTheOthersInOrder() throws {
        let port = port(sendBuffer: 1)
        try port.admit(0)
        let outcomes = Outcomes()
        for number in 1...5 { outcomes.wait(port, UInt64(number)) }
        port.cancelWait(number: 3)
        port.release(4)
        for _ in 0..<4 { port.admitNextWaiter() }
        #expect(outcomes.numbers == [3, 1, 2, 4, 5])
    }

    @Test func closingNotifiesEveryPeerOnce() throws {
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

    @Test func aPortIsListedOnce() {
        let port = port()
        #expect(port.markListed())
        #expect(!port.markListed())
        port.markUnlisted()
        #expect(port.markListed())
    }

    @Test func theLoopIsNotifiedOnceEnoughIsRead() {
        let port = port()
        #expect(!port.didRead(10, notifyAfter: 100))
        #expect(port.didRead(90, notifyAfter: 100))
        #expect(!port.didRead(500, notifyAfter: 100))
        port.markUnlisted()
        #expect(port.takeRead() == 600)
        #expect(port.takeRead() == 0)
        #expect(!port.didRead(99, notifyAfter: 100))
    }

    @Test func manyThreadsStageEachInItsOwnOrder() async throws {
        let port = port(sendBuffer: 64 << 20, message: 1 << 20)
        let staging = Staging()
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<4 as Range<UInt8> {
                group.addTask {
                    for number in 0..<500 {
                        let bytes = ByteSlice([thread, UInt8(number >> 8), UInt8(number & 0xFF)])
                        #expect(throws: Never.self) { try port.stage(bytes, on: .main, isNext: false) }
                    }
                    staging.threadsDone.wrappingAdd(1, ordering: .sequentiallyConsistent)
                }
            }
            group.addTask {
                while true {
                    let wasDone = staging.threadsDone.load(ordering: .sequentiallyConsistent) == 4
                    while let run = port.takeStaged() {
                        staging.bytes.withLock { $0 += run.bytes.bytes }
                        port.release(run.bytes.count)
                    }
                    if wasDone { return }
                    await Task.yield()
                }
            }
        }
        #expect(port.outstanding == 0)
        let frames = Decoded(reference: staging.bytes.withLock { $0 }, maximumPayload: 3).frames
        #expect(frames.count == 2_000)
        for thread in 0..<4 as Range<UInt8> {
            let numbers = frames.filter { $0.bytes[0] == thread }.map {
                Int($0.bytes[1]) << 8 | Int($0.bytes[2])
            }
            #expect(numbers == Array(0..<500))
        }
    }

    private final class Staging: Sendable {
        let threadsDone = Atomic<Int>(0)
        let bytes = Guarded<[UInt8]>([])
    }

    /// Room may appear at the very moment in which a caller begins to wait for it.
    @Test func aCallerDoesNotWaitForAvailableRoom() {
        let other = ThreadEventLoop()
        let race = Race()
        var missed = 0
        for round in 1...8_000 {
            let port = port(sendBuffer: 1)
            #expect(throws: Never.self) { try port.admit(0) }
            other.execute {
                race.started.store(round, ordering: .sequentiallyConsistent)
                port.release(4)
                race.released.store(round, ordering: .sequentiallyConsistent)
            }
            while race.started.load(ordering: .sequentiallyConsistent) < round {}
            port.waitForRoom(number: 1) { _ in race.answers.wrappingAdd(1, ordering: .sequentiallyConsistent)
            }
            while race.released.load(ordering: .sequentiallyConsistent) < round {}
            if race.answers.load(ordering: .sequentiallyConsistent) + missed < round { missed += 1 }
        }
        #expect(missed == 0)
        other.shutdown()
    }

    private final class Race: Sendable {
        let started = Atomic<Int>(0)
        let released = Atomic<Int>(0)
        let answers = Atomic<Int>(0)
    }
}
