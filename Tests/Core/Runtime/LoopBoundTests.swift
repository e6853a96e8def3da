import NighMemory
import NighSystem
import NighTestKit
import Testing

@testable import NighCore

/// Tests how objects that belong to a loop pass through other threads.
@Suite struct LoopBoundTests {
    /// State that only the loop may touch.
    private final class Counter {
        var count = 0
    }

    @Test func `Later work runs once, behind the present work and before the loop waits again`() throws {
        let loop = VirtualEventLoop()
        let counter = Counter()
        loop.later {
            counter.count += 1
            loop.later { counter.count *= 10 }
            counter.count += 1
        }
        #expect(counter.count == 0)
        try loop.runQueued()
        #expect(counter.count == 20)
        try loop.run(for: .seconds(1))
        #expect(counter.count == 20)
    }

    @Test func `Another thread hands a value back to its loop`() {
        let loop = ThreadEventLoop()
        defer { loop.shutdown() }
        let counter = LoopBound(Counter(), on: loop)
        let countUp = loop.call { loop.bound { counter.value.count += 1 } }
        for _ in 0..<100 {
            counter.execute { $0.count += 1 }
            loop.execute(countUp)
        }
        #expect(loop.call { counter.value.count } == 200)
    }

    @Test func `A weak reference in it keeps nothing`() {
        let loop = ThreadEventLoop()
        defer { loop.shutdown() }
        var counter: Counter? = Counter()
        let reference = counter.map { LoopBound(WeakReference($0), on: loop) }
        #expect(loop.call { reference?.value.object != nil })
        counter = nil
        #expect(loop.call { reference?.value.object == nil })
    }

    #if DEBUG
        @Test func `A debug build stops a program that uses a value of a loop on another thread`() async {
            await #expect(processExitsWith: .failure) {
                let counter = LoopBound(Counter(), on: ThreadEventLoop())
                counter.value.count += 1
            }
        }

        @Test func `A debug build stops a program that runs work of a loop on another thread`() async {
            await #expect(processExitsWith: .failure) {
                let loop = ThreadEventLoop()
                loop.call { loop.bound {} }()
            }
        }
    #endif
}
