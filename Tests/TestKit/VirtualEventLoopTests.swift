import NighCore
import NighTestKit
import Testing

struct VirtualEventLoopTests {
    /// Notes of the work that ran, in order. `@unchecked Sendable`: the loop runs only on the test's thread.
    final class Notes: @unchecked Sendable {
        var all: [String] = []
    }

    @Test func `Work runs only when the loop is run`() throws {
        let loop = VirtualEventLoop()
        let notes = Notes()
        loop.execute { notes.all.append("ran") }
        #expect(notes.all == [])
        #expect(try loop.runTurn())
        #expect(notes.all == ["ran"])
        #expect(try !loop.runTurn())
    }

    @Test func `Work queued in a turn runs in the next`() throws {
        let loop = VirtualEventLoop()
        let notes = Notes()
        loop.execute {
            notes.all.append("first")
            loop.execute { notes.all.append("second") }
        }
        try loop.runTurn()
        #expect(notes.all == ["first"])
        try loop.runQueued()
        #expect(notes.all == ["first", "second"])
    }

    @Test func `Time jumps from timer to timer`() throws {
        let loop = VirtualEventLoop()
        let notes = Notes()
        for seconds in [30, 10, 20] as [Int64] {
            loop.schedule(at: Moment(nanoseconds: 0) + .seconds(seconds)) {
                notes.all.append("\(loop.now)")
                loop.execute { notes.all.append("then") }
            }
        }
        try loop.run(for: .seconds(20))
        #expect(notes.all == ["10 s", "then", "20 s", "then"])
        #expect(loop.now == Moment(nanoseconds: 20_000_000_000))
        try loop.runUntilIdle()
        #expect(notes.all.last == "then")
        #expect(loop.now == Moment(nanoseconds: 30_000_000_000))
        #expect(loop.pending == (0, 0))
    }

    @Test func `The loop runs until a condition holds`() throws {
        let loop = VirtualEventLoop()
        let notes = Notes()
        loop.schedule(at: loop.now + .seconds(5)) { notes.all.append("five") }
        #expect(try !loop.run(until: { !notes.all.isEmpty }, within: .seconds(4)))
        #expect(loop.now == Moment(nanoseconds: 4_000_000_000))
        #expect(try loop.run(until: { !notes.all.isEmpty }, within: .seconds(4)))
        #expect(loop.now == Moment(nanoseconds: 5_000_000_000))
    }

    @Test func `An endless loop of work is a failure`() {
        let loop = VirtualEventLoop(workLimit: 100)
        @Sendable func again() { loop.execute(again) }
        again()
        let error = #expect(throws: VirtualEventLoop.Livelock.self) { try loop.runQueued() }
        #expect(error?.description.contains("still busy after 100 pieces of work") == true)
    }

    @Test func `A timer that repeats itself is never idle`() {
        let loop = VirtualEventLoop(workLimit: 100)
        @Sendable func again() { loop.schedule(at: loop.now + .seconds(1), again) }
        again()
        #expect(throws: VirtualEventLoop.Livelock.self) { try loop.runUntilIdle() }
    }

    @Test func `Tasks run on it`() async throws {
        let loop = VirtualEventLoop()
        let notes = Notes()
        let task = Task(executorPreference: loop) {
            notes.all.append("before")
            await Task.yield()
            notes.all.append("after")
        }
        _ = try loop.run(until: { notes.all.count == 2 }, within: .zero)
        #expect(notes.all == ["before", "after"])
        await task.value
    }
}
