import Glibc
import NighCore
import NighTestKit
import NighUV
import Synchronization
import Testing

struct UVEventLoopTests {
    /// A pair of connected sockets that closes itself.
    final class SocketPair: Sendable {
        let near: Int32
        let far: Int32

        init() {
            var descriptors: [Int32] = [0, 0]
            let status = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &descriptors)
            precondition(status == 0, "no socket pair could be made: \(errno)")
            (near, far) = (descriptors[0], descriptors[1])
        }

        deinit {
            close(near)
            close(far)
        }
    }

    private func run<Result: Sendable>(
        on loop: UVEventLoop, _ body: @escaping @Sendable () -> Result
    ) async -> Result {
        await withCheckedContinuation { continuation in
            loop.execute { continuation.resume(returning: body()) }
        }
    }

    private static var openDescriptors: Int { entries(in: "/proc/self/fd") }

    private static var threads: Int { entries(in: "/proc/self/task") }

    private static func entries(in path: String) -> Int {
        guard let folder = opendir(path) else { return 0 }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        return count
    }

    /// Held by the loop; counts its living instances.
    final class Trace: Sendable {
        static let alive = Atomic<Int>(0)
        init() { Self.alive.wrappingAdd(1, ordering: .relaxed) }
        deinit { Self.alive.wrappingSubtract(1, ordering: .relaxed) }
    }

    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test func aLoopThatFailsForLackOfDescriptorsLeavesNothingOpen() async {
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
    @Test func aThousandStartsAndStopsLeaveNothingBehind() async {
        await #expect(processExitsWith: .success) {
            let sockets = SocketPair()
            // The first loop creates what all loops share.
            UVEventLoop().shutdown()
            let before = (descriptors: UVEventLoopTests.openDescriptors, threads: UVEventLoopTests.threads)
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
                    let kept = Unchecked(watch)
                    loop.schedule(at: loop.now + .seconds(100)) { kept.value.cancel() }
                }
                for _ in 0..<10 { loop.execute {} }
                loop.shutdown()
            }
            #expect(Trace.alive.load(ordering: .relaxed) == 0)
            #expect(UVEventLoopTests.openDescriptors < before.descriptors + 50)
            #expect(UVEventLoopTests.threads < before.threads + 50)
        }
    }

    /// `@unchecked Sendable`: the test confines it to a loop.
    struct Unchecked<Value>: @unchecked Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    /// Written on the loop, and read by the test after the loop has finished its work.
    final class Log: @unchecked Sendable {
        var events: [DescriptorEvents] = []
        var watch: DescriptorWatch?
    }

    @Test func aWatchReportsTheEventsOfItsDescriptor() async throws {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let sockets = SocketPair()
        let log = Log()
        await withCheckedContinuation { continuation in
            loop.execute {
                log.watch = try? loop.watch(sockets.near, for: [.readable, .writable]) { events in
                    log.events.append(events)
                    if events == .writable {
                        // From here on, only the other event is of interest.
                        log.watch?.events = .readable
                        _ = Glibc.write(sockets.far, "x", 1)
                    } else {
                        var byte: UInt8 = 0
                        read(sockets.near, &byte, 1)
                        log.watch?.cancel()
                        continuation.resume()
                    }
                }
            }
        }
        _ = Glibc.write(sockets.far, "y", 1)
        let events = await run(on: loop) { log.events }
        #expect(events == [.writable, .readable])
    }

    @Test func aWatchReportsThatTheOtherEndClosed() async {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let sockets = SocketPair()
        let log = Log()
        await withCheckedContinuation { continuation in
            loop.execute {
                log.watch = try? loop.watch(sockets.near, for: [.readable, .disconnected]) { events in
                    log.watch?.cancel()
                    log.events.append(events)
                    continuation.resume()
                }
                shutdown(sockets.far, Int32(SHUT_RDWR))
            }
        }
        #expect(log.events.first?.contains(.disconnected) == true)
    }

    @Test func unwatchableDescriptorsAreRefused() async {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let sockets = SocketPair()
        let errors = await run(on: loop) { () -> [NighError?] in
            let file = open("/proc/self/exe", O_RDONLY)
            defer { close(file) }
            let first = try? loop.watch(sockets.near, for: .readable) { _ in }
            defer { first?.cancel() }
            return [file, -1, sockets.near].map { descriptor in
                do throws(NighError) {
                    _ = try loop.watch(descriptor, for: .readable) { _ in }
                    return nil
                } catch { return error }
            }
        }
        #expect(errors.count == 3)
        for error in errors {
            guard case .system? = error?.cause else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }

    @Test func workThatBringsWorkDoesNotStarveDescriptors() async {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let sockets = SocketPair()
        let log = Log()
        let isOver = Atomic<Bool>(false)
        await withCheckedContinuation { continuation in
            @Sendable func again() { if !isOver.load(ordering: .relaxed) { loop.execute { again() } } }
            loop.execute {
                again()
                log.watch = try? loop.watch(sockets.near, for: .readable) { _ in
                    isOver.store(true, ordering: .relaxed)
                    log.watch?.cancel()
                    continuation.resume()
                }
                _ = Glibc.write(sockets.far, "x", 1)
            }
        }
    }
}
