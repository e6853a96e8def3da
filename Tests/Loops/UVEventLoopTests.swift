import Glibc
import NighCore
import NighTestKit
import NighUV
import Synchronization
import Testing

/// Tests what `UVEventLoop` does with descriptors, and that it leaves nothing behind.
struct UVEventLoopTests {
    private static func entries(in path: String) -> Int {
        guard let folder = opendir(path) else { return 0 }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        return count
    }

    /// Held by the loop; counts its living instances.
    private final class Trace: Sendable {
        static let alive = Atomic<Int>(0)
        init() { Self.alive.wrappingAdd(1, ordering: .relaxed) }
        deinit { Self.alive.wrappingSubtract(1, ordering: .relaxed) }
    }

    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test func `A loop that fails for lack of descriptors leaves nothing open`() async {
        await #expect(processExitsWith: .success) {
            func openCount() -> Int { (0..<Int32(1_024)).count { fcntl($0, F_GETFD) >= 0 } }
            // The first loop creates what all loops share.
            UVEventLoop().shutdown()
            var failures = 0
            for count in 0..<16 {
                let before = openCount()
                for _ in 0..<8 {
                    ResourceLimits.limitDescriptors(leaving: Int32(count))
                    do throws(NighError) {
                        try UVEventLoop.make().shutdown()
                    } catch {
                        failures += 1
                        #expect(error.stage == .starting)
                        #expect(error.advice?.contains("ulimit -n") == true)
                    }
                }
                // Other libraries may open some of their own meanwhile, but not one for each loop.
                #expect(openCount() < before + 8, "with \(count) descriptors to be had")
            }
            #expect((8..<16 * 8).contains(failures))
            ResourceLimits.preventThreads()
            let before = openCount()
            for _ in 0..<8 { #expect(throws: NighError.self) { try UVEventLoop.make() } }
            #expect(openCount() < before + 8)
        }
    }

    /// Runs in a process of its own, because other tests open and close descriptors and threads at the same time. A
    /// thread may need a moment to end after its loop, so the counts have some tolerance. A leak in each round would
    /// add 1,000.
    @Test func `A thousand starts and stops leave nothing behind`() async {
        await #expect(processExitsWith: .success) {
            let sockets = SocketPair()
            // The first loop creates what all loops share.
            UVEventLoop().shutdown()
            let folders = ["/proc/self/fd", "/proc/self/task"]
            let before = folders.map(UVEventLoopTests.entries)
            for round in 0..<1_000 {
                let loop = UVEventLoop()
                loop.execute {
                    let trace = Trace()
                    loop.schedule(at: loop.now + .seconds(100)) { withExtendedLifetime(trace) {} }
                    let watch = try? loop.watch(sockets.near, for: .readable) { _ in
                        withExtendedLifetime(trace) {}
                    }
                    // Some end with a watch that nobody cancelled: the work that holds it is still queued.
                    guard round.isMultiple(of: 2), let watch else { return }
                    nonisolated(unsafe) let kept = watch
                    loop.schedule(at: loop.now + .seconds(100)) { kept.cancel() }
                }
                for _ in 0..<10 { loop.execute {} }
                loop.shutdown()
            }
            #expect(Trace.alive.load(ordering: .relaxed) == 0)
            for (count, folder) in zip(before, folders) {
                #expect(UVEventLoopTests.entries(in: folder) < count + 50, "\(folder)")
            }
        }
    }

    // MARK: Watches

    /// A loop, and a watch of one end of a pair of sockets.
    ///
    /// `@unchecked Sendable`: written on the loop, and read by the test after that.
    private final class Ground: @unchecked Sendable {
        let loop = UVEventLoop()
        let near: BareEnd
        let far: BareEnd
        private(set) var watch: DescriptorWatch?
        private(set) var events: [DescriptorEvents] = []

        init() {
            let sockets = SocketPair()
            (near, far) = (BareEnd(sockets.near), sockets.far)
        }

        deinit { loop.shutdown() }

        /// Watches for `events` until `body` returns true for some. Begins with `start`, on the loop.
        func watch(
            for events: DescriptorEvents, start: @escaping @Sendable () -> Void = {},
            until body: @escaping @Sendable (Ground, DescriptorEvents) -> Bool
        ) throws {
            try waitForReply { reply in
                loop.execute { [self] in
                    watch = try? loop.watch(near.descriptor, for: events) { [unowned self] events in
                        self.events.append(events)
                        guard body(self, events) else { return }
                        watch?.cancel()
                        reply(())
                    }
                    start()
                }
            }
        }
    }

    @Test func `A watch reports the events of its descriptor, until it is cancelled`() throws {
        let ground = Ground()
        try ground.watch(for: [.readable, .writable]) { ground, events in
            guard events == .writable else { return ground.near.read(1) == [1] }
            // From here on, only the other event is of interest.
            ground.watch?.events = .readable
            ground.far.write([1])
            return false
        }
        ground.far.write([2])
        #expect(ground.loop.call { ground.events } == [.writable, .readable])
    }

    @Test func `A watch reports that the other end closed`() throws {
        let ground = Ground()
        try ground.watch(for: [.readable, .disconnected], start: { ground.far.close() }) { _, _ in true }
        #expect(ground.events.first?.contains(.disconnected) == true)
    }

    @Test func `Descriptors that cannot be watched are refused`() {
        let ground = Ground()
        let errors = ground.loop.call {
            let file = open("/proc/self/exe", O_RDONLY)
            defer { close(file) }
            let first = try? ground.loop.watch(ground.near.descriptor, for: .readable) { _ in }
            defer { first?.cancel() }
            return [file, -1, ground.near.descriptor].map { descriptor -> NighError? in
                do throws(NighError) {
                    _ = try ground.loop.watch(descriptor, for: .readable) { _ in }
                    return nil
                } catch { return error }
            }
        }
        for error in errors {
            guard case .system? = error?.cause else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }

    @Test func `Work that submits work does not keep descriptors waiting`() throws {
        let ground = Ground()
        let isOver = Atomic<Bool>(false)
        @Sendable func again() { if !isOver.load(ordering: .relaxed) { ground.loop.execute { again() } } }
        ground.loop.execute { again() }
        try ground.watch(for: .readable, start: { ground.far.write([1]) }) { _, _ in true }
        isOver.store(true, ordering: .relaxed)
    }
}
