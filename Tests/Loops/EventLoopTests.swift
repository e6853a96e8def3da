import NighCore
import NighMemory
import NighTestKit
import NighUV
import Synchronization
import Testing

/// An event loop with a thread of its own.
protocol OwnThreadLoop: EventLoop {
    init()
    func shutdown()
}

extension ThreadEventLoop: OwnThreadLoop {}
extension UVEventLoop: OwnThreadLoop {}

/// Tests what all event loops with a thread of their own have in common.
struct EventLoopTests {
    static let kinds: [Kind] = [Kind(ThreadEventLoop.self), Kind(UVEventLoop.self)]

    /// A type of loop, with its name for reports.
    struct Kind: Sendable, CustomTestStringConvertible {
        let type: any OwnThreadLoop.Type
        init(_ type: any OwnThreadLoop.Type) { self.type = type }
        func make() -> any OwnThreadLoop { type.init() }
        var testDescription: String { "\(type)" }
    }

    /// Collects notes that work on a loop leaves for the test.
    final class Notes: Sendable {
        private let notes = Mutex<[String]>([])
        func add(_ note: String) { notes.withLock { $0.append(note) } }
        var all: [String] { notes.withLock { $0 } }
    }

    /// Waits until everything that was queued on `loop` before this call has run.
    private func drain(_ loop: any EventLoop) async {
        await withCheckedContinuation { continuation in loop.execute { continuation.resume() } }
    }

    @Test(arguments: kinds) func workRunsInOrderAndNeverInsideTheCall(_ kind: Kind) async {
        let loop = kind.make()
        defer { loop.shutdown() }
        let notes = Notes()
        loop.execute {
            #expect(loop.isCurrent)
            loop.execute { notes.add("inner") }
            notes.add("outer")
        }
        await drain(loop)
        await drain(loop)
        #expect(notes.all == ["outer", "inner"])
        #expect(!loop.isCurrent)
    }

    @Test(arguments: kinds) func timersRunInTheOrderOfTheirMomentsAndNeverEarly(_ kind: Kind) async {
        let loop = kind.make()
        defer { loop.shutdown() }
        let notes = Notes()
        await withCheckedContinuation { continuation in
            loop.execute {
                let start = loop.now
                for delay in [3, 1, 2] as [Int64] {
                    let due = start + .milliseconds(delay)
                    loop.schedule(at: due) { notes.add(loop.now >= due ? "\(delay)" : "early") }
                }
                let taken = loop.schedule(at: start + .milliseconds(2)) { notes.add("cancelled") }
                loop.cancel(taken)
                loop.schedule(at: start + .milliseconds(4)) { continuation.resume() }
            }
        }
        #expect(notes.all == ["1", "2", "3"])
    }

    @Test(arguments: kinds) func timeAdvancesForOtherThreads(_ kind: Kind) async {
        let loop = kind.make()
        defer { loop.shutdown() }
        let before = loop.now
        await drain(loop)
        #expect(loop.now > before)
    }

    /// A turn must not use the time at which the loop went to sleep. Otherwise the deadlines that it sets would pass at
    /// once.
    @Test(arguments: kinds) func aTurnDoesNotUseTheTimeBeforeTheLoopSlept(_ kind: Kind) async {
        let loop = kind.make()
        defer { loop.shutdown() }
        for _ in 0..<20 {
            await drain(loop)
            let given = loop.now
            let seen = await withCheckedContinuation { continuation in
                loop.execute { continuation.resume(returning: loop.now) }
            }
            #expect(seen >= given)
        }
    }

    @Test(arguments: kinds) func anActorCanUseALoopAsItsExecutor(_ kind: Kind) async {
        actor Resident {
            nonisolated let loop: any OwnThreadLoop
            nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
            init(loop: any OwnThreadLoop) { self.loop = loop }
            var isAtHome: Bool { loop.isCurrent }
        }
        let loop = kind.make()
        defer { loop.shutdown() }
        #expect(await Resident(loop: loop).isAtHome)
        let task = Task(executorPreference: loop) { loop.isCurrent }
        #expect(await task.value)
    }

    /// Otherwise each message that a task on the loop reads would cost a turn of its own.
    @Test(arguments: kinds) func aTaskOnALoopCallsAsyncFunctionsWithoutWaiting(_ kind: Kind) async {
        @concurrent func isOnLoop(_ loop: any OwnThreadLoop) async -> Bool { loop.isCurrent }
        let loop = kind.make()
        defer { loop.shutdown() }
        let notes = Notes()
        let task = Task(executorPreference: loop) {
            loop.execute { notes.add("queued meanwhile") }
            notes.add(await isOnLoop(loop) ? "called" : "called elsewhere")
        }
        await task.value
        await drain(loop)
        #expect(notes.all == ["called", "queued meanwhile"])
    }

    @Test(arguments: kinds) func pendingWorkIsDroppedAtShutdown(_ kind: Kind) async {
        let loop = kind.make()
        let notes = Notes()
        await withCheckedContinuation { continuation in
            loop.execute {
                loop.schedule(at: loop.now) { notes.add("timer") }
                loop.execute { notes.add("queued") }
                loop.shutdown()
                continuation.resume()
            }
        }
        loop.shutdown()
        loop.execute { notes.add("late") }
        #expect(notes.all == [])
    }

    @Test(arguments: kinds) func manyThreadsMaySubmitWork(_ kind: Kind) async {
        let loop = kind.make()
        defer { loop.shutdown() }
        let notes = Notes()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<500 { loop.execute { notes.add("one") } }
                }
            }
        }
        await drain(loop)
        #expect(notes.all.count == 4000)
    }

    @Test(arguments: kinds) func stoppingWaitsForTheEnd(_ kind: Kind) throws {
        let loop = kind.make()
        let ending = Ending()
        loop.execute {
            ending.monitor.change { ending.isBusy = true }
            // No `shutdown` may return while this runs. If one does, this wait ends at once.
            _ = ending.monitor.wait(within: .milliseconds(300)) { ending.cameBack > 0 }
            ending.monitor.change { ending.cameBackTooSoon = ending.cameBack }
        }
        try #require(ending.monitor.wait(within: .seconds(20)) { ending.isBusy })
        let stoppers = (0..<3).map { _ in LoopThread() }
        for stopper in stoppers {
            try stopper.start {
                loop.shutdown()
                ending.monitor.change { ending.cameBack += 1 }
            }
        }
        for stopper in stoppers { stopper.join() }
        #expect(ending.cameBackTooSoon == 0)
        #expect(ending.cameBack == 3)
    }

    /// `@unchecked Sendable`: guarded by the monitor.
    private final class Ending: @unchecked Sendable {
        let monitor = Monitor()
        var isBusy = false
        var cameBack = 0
        var cameBackTooSoon: Int?
    }

    /// Runs in a process of its own, because otherwise no other test could start a thread meanwhile.
    @Test func aThreadThatCannotStartIsAnError() async {
        await #expect(processExitsWith: .success) {
            ResourceLimits.preventThreads()
            let error = #expect(throws: NighError.self) { try LoopThread().start {} }
            #expect(error?.advice?.contains("ulimit -u") == true)
        }
    }

    @Test(arguments: kinds) func aStoppedLoopIsReleased(_ kind: Kind) {
        weak var forgotten: (any OwnThreadLoop)?
        do {
            let loop = kind.make()
            forgotten = loop
            loop.shutdown()
        }
        #expect(forgotten == nil)
    }
}
