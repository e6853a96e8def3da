import NighCore
import NighMemory
import NighSystem
import NighTestKit
import NighUV
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
    /// A type of loop, with its name for reports.
    struct Kind: Sendable, CustomTestStringConvertible {
        let type: any OwnThreadLoop.Type
        var testDescription: String { "\(type)" }

        static let all = [Kind(type: ThreadEventLoop.self), Kind(type: UVEventLoop.self)]

        /// Runs `body` with a loop and a place for notes. Stops the loop, and returns the notes.
        func run(_ body: (any OwnThreadLoop, Notes) throws -> Void) rethrows -> [String] {
            let (loop, notes) = (type.init(), Notes())
            defer { loop.shutdown() }
            try body(loop, notes)
            return notes.all
        }
    }

    /// Collects notes that work on a loop leaves for the test.
    final class Notes: Sendable {
        private let notes = Guarded<[String]>([])
        func add(_ note: String) { notes.withLock { $0.append(note) } }
        var all: [String] { notes.withLock { $0 } }
    }

    @Test(arguments: Kind.all)
    func `Work runs in order, and never inside the call that submits it`(_ kind: Kind) {
        let notes = kind.run { loop, notes in
            loop.execute {
                #expect(loop.isCurrent)
                loop.execute { notes.add("inner") }
                notes.add("outer")
            }
            for _ in 1...2 { loop.call {} }
            #expect(!loop.isCurrent)
        }
        #expect(notes == ["outer", "inner"])
    }

    @Test(arguments: Kind.all)
    func `Timers run in the order of their moments, never early, and not once they are cancelled`(
        _ kind: Kind
    ) throws {
        let notes = try kind.run { loop, notes in
            try waitForReply { reply in
                loop.execute {
                    let start = loop.now
                    for delay in [3, 1, 2] as [Int64] {
                        let due = start + .milliseconds(delay)
                        loop.schedule(at: due) { notes.add(loop.now >= due ? "\(delay)" : "early") }
                    }
                    loop.cancel(loop.schedule(at: start + .milliseconds(2)) { notes.add("cancelled") })
                    loop.schedule(at: start + .milliseconds(4)) { reply(()) }
                }
            }
        }
        #expect(notes == ["1", "2", "3"])
    }

    /// A turn must not use the time at which the loop went to sleep. Otherwise the deadlines that it sets would pass at
    /// once.
    @Test(arguments: Kind.all)
    func `A turn does not use the time before the loop slept`(_ kind: Kind) {
        _ = kind.run { loop, _ in
            let start = loop.now
            for _ in 0..<20 {
                loop.call {}
                let given = loop.now
                #expect(given > start)
                #expect(loop.call { loop.now } >= given)
            }
        }
    }

    @Test(arguments: Kind.all) func `An actor can use a loop as its executor`(_ kind: Kind) async {
        actor Resident {
            nonisolated let loop: any OwnThreadLoop
            nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
            init(loop: any OwnThreadLoop) { self.loop = loop }
            var isAtHome: Bool { loop.isCurrent }
        }
        let loop = kind.type.init()
        defer { loop.shutdown() }
        #expect(await Resident(loop: loop).isAtHome)
    }

    /// Otherwise each message that a task on the loop reads would cost a turn of its own.
    @Test(arguments: Kind.all)
    func `A task on a loop calls async functions without waiting`(_ kind: Kind) async {
        @concurrent func isOnLoop(_ loop: any OwnThreadLoop) async -> Bool { loop.isCurrent }
        let (loop, notes) = (kind.type.init(), Notes())
        defer { loop.shutdown() }
        let task = Task(executorPreference: loop) {
            loop.execute { notes.add("queued meanwhile") }
            notes.add(await isOnLoop(loop) ? "called" : "called elsewhere")
        }
        await task.value
        loop.call {}
        #expect(notes.all == ["called", "queued meanwhile"])
    }

    @Test(arguments: Kind.all) func `A shutdown drops the work that waits`(_ kind: Kind) throws {
        let notes = try kind.run { loop, notes in
            try waitForReply { reply in
                loop.execute {
                    loop.schedule(at: loop.now) { notes.add("timer") }
                    loop.execute { notes.add("queued") }
                    loop.shutdown()
                    reply(())
                }
            }
            loop.shutdown()
            loop.execute { notes.add("late") }
        }
        #expect(notes == [])
    }

    @Test(arguments: Kind.all) func `Many threads may submit work`(_ kind: Kind) throws {
        let notes = try kind.run { loop, notes in
            let threads = (0..<8).map { _ in LoopThread() }
            for thread in threads {
                try thread.start { for _ in 0..<500 { loop.execute { notes.add("one") } } }
            }
            for thread in threads { thread.join() }
            loop.call {}
        }
        #expect(notes.count == 4_000)
    }

    @Test(arguments: Kind.all) func `A shutdown on another thread waits for the end`(_ kind: Kind) throws {
        let loop = kind.type.init()
        let returned = Guarded(0)
        let monitor = Monitor()
        try waitForReply { isBusy in
            loop.execute {
                isBusy(())
                // No `shutdown` may return while this runs. If one does, this wait ends at once.
                let isEarly = monitor.wait(within: .milliseconds(300)) { returned.withLock { $0 } > 0 }
                #expect(!isEarly)
            }
        }
        let stoppers = (0..<3).map { _ in LoopThread() }
        for stopper in stoppers {
            try stopper.start {
                loop.shutdown()
                monitor.change { returned.withLock { $0 += 1 } }
            }
        }
        for stopper in stoppers { stopper.join() }
        #expect(returned.withLock { $0 } == 3)
    }

    /// Runs in a process of its own, because otherwise no other test could start a thread meanwhile.
    @Test func `A thread that cannot start is an error`() async {
        await #expect(processExitsWith: .success) {
            ResourceLimits.preventThreads()
            let error = #expect(throws: NighError.self) { try LoopThread().start {} }
            #expect(error?.advice?.contains("ulimit -u") == true)
        }
    }

    @Test(arguments: Kind.all) func `A stopped loop is released`(_ kind: Kind) {
        weak var forgotten: (any OwnThreadLoop)?
        do {
            let loop = kind.type.init()
            forgotten = loop
            loop.shutdown()
        }
        #expect(forgotten == nil)
    }
}
