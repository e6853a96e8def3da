import CHeap
import Glibc
import NighLoop
import NighTestKit
import NighUV
import Synchronization

/// Opens a thousand conversations of one session and cuts all at once, three times, in one process. Afterwards, the
/// numbers of descriptors and bytes must be as before. Prints the numbers, and ends with status 1 if something stays.
enum CrowdProgram {
    static let name = "hold-crowd"
    static let peers = 1_000
    private static let rounds = 3
    /// The number of calls at the same time. A session admits only a limited number of unknown peers at once.
    private static let wave = 40
    /// The bytes that the first round may keep for each conversation: the record of a known peer.
    private static let keptBytes = 12_288
    /// The bytes that each later round may add for each conversation: pools and tables grow a little, depending on
    /// timing.
    private static let addedBytes = 1_024

    static func main() -> Int32 {
        let status = Atomic<Int32>(1)
        let done = CompletionSignal()
        Task {
            do {
                try await run()
                status.store(0, ordering: .relaxed)
            } catch {
                CommandLineOfLab.complain("lab crowd: \(error)")
            }
            done.signal()
        }
        done.wait()
        return status.load(ordering: .relaxed)
    }

    private struct Surprise: Error, CustomStringConvertible {
        let description: String
    }

    private struct Count {
        let descriptors: Int
        let bytes: Int

        /// Descriptors of other kinds belong to the language's runtime, which opens them when it needs them.
        private static func isSocket(_ descriptor: Int32) -> Bool {
            var status = stat()
            return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
        }

        static var now: Count {
            Count(descriptors: (3..<Int32(8 * peers)).count(where: isSocket), bytes: heap_bytes_in_use())
        }
    }

    private static func run() async throws {
        let hub = Member("Hub", loop: UVEventLoop())
        let loop = UVEventLoop()
        let guests = (0..<peers).map { Member("Guest \($0)", loop: loop) }
        var before: [Count] = []
        var afterFirst = 0
        for guest in guests { await guest.ready() }
        for round in 1...rounds {
            let address = await hub.listen()
            before.append(.now)
            var next = guests[...]
            while !next.isEmpty {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for guest in next.prefix(wave) { group.addTask { try await guest.call(address) } }
                    try await group.waitForAll()
                }
                next = next.dropFirst(wave)
            }
            let during = Count.now
            print(
                "round \(round): \(during.descriptors) descriptors, \(during.bytes / 1024) KiB with all connected"
            )
            await hub.hide()
            await hub.cut()
            for guest in guests { await guest.alone() }
            await hub.alone()
            let after = await waitForCount(before[round - 1])
            print(
                "round \(round): \(after.descriptors) descriptors, \(after.bytes / 1024) KiB once all were cut"
            )
            guard during.descriptors - before[round - 1].descriptors >= 2 * peers else {
                throw Surprise(description: "not all were connected")
            }
            guard after.descriptors <= before[round - 1].descriptors else {
                throw Surprise(description: "\(after.descriptors - before[0].descriptors) descriptors stay")
            }
            // What the first round allocates once is no leak; what each later round adds is one.
            if round == 1 {
                guard after.bytes - before[0].bytes < peers * keptBytes else {
                    throw Surprise(description: "\(after.bytes - before[0].bytes) bytes stay")
                }
                afterFirst = after.bytes
            } else if after.bytes - afterFirst >= (round - 1) * peers * addedBytes {
                throw Surprise(
                    description: "\(after.bytes - afterFirst) bytes more stay after round \(round)")
            }
        }
    }

    /// Waits for the sockets: they are closed soon after the events, and those that linger some time later.
    private static func waitForCount(_ goal: Count) async -> Count {
        let clock = LoadAdjustedClock()
        while Count.now.descriptors > goal.descriptors, clock.elapsed < .seconds(15) {
            try? await Task.sleep(for: .milliseconds(50))
            clock.advance()
        }
        return .now
    }
}

/// A session that waits for its events.
private final class Member: Sendable {
    private let session: Session
    private let faults: FaultControl
    private let loop: UVEventLoop
    private let state = Mutex(State())

    private struct State {
        var address: TransportAddress?
        var connected = 0
        var waiting: [(isTrue: @Sendable (State) -> Bool, go: CheckedContinuation<Void, Never>)] = []
    }

    init(_ name: String, loop: UVEventLoop) {
        self.loop = loop
        let transport = FaultyTransport(TCPTransport(TCPOptions(interface: "lo", discovery: .off)))
        faults = transport.control
        var configuration = SessionConfiguration(
            service: "crowd", name: DisplayName(fitting: name), role: .client)
        configuration.limits.peers = CrowdProgram.peers
        configuration.timings.grace = .seconds(1)
        // So many handshakes run at once that the last ones wait on a busy machine.
        configuration.timings.dial = .seconds(60)
        configuration.timings.handshake = .seconds(60)
        configuration.timings.loseAfter = .seconds(60)
        session = Session(configuration, identity: .ephemeral(), transports: [transport], loop: loop)
        session.start(onEvent: { [weak self] in self?.handle($0) }, onMessage: { _, _ in })
    }

    private func handle(_ event: SessionEvent) {
        let going = state.withLock { state in
            switch event {
            case .invited(let invitation): invitation.accept()
            case .listening(_, let addresses): state.address = addresses.first
            case .connected: state.connected += 1
            case .disconnected: state.connected -= 1
            default: break
            }
            let (going, staying) = (
                state.waiting.filter { $0.isTrue(state) }, state.waiting.filter { !$0.isTrue(state) }
            )
            state.waiting = staying
            return going
        }
        for waiting in going { waiting.go.resume() }
    }

    private func wait(until isTrue: @escaping @Sendable (State) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if isTrue(state) { return true }
                state.waiting.append((isTrue, continuation))
                return false
            }
            if isReady { continuation.resume() }
        }
    }

    /// Returns when the session has started.
    func ready() async { _ = await session.statistics() }

    func listen() async -> TransportAddress {
        session.startAdvertising()
        await wait { $0.address != nil }
        return state.withLock { $0.address } ?? TransportAddress(scheme: "tcp", value: "")
    }

    func hide() async {
        session.stopAdvertising()
        await wait { $0.address == nil }
    }

    func call(_ address: TransportAddress) async throws { _ = try await session.invite(at: address) }

    /// Cuts all pipes at once.
    func cut() async {
        await withCheckedContinuation { continuation in
            loop.execute { [faults] in
                faults.cut()
                continuation.resume()
            }
        }
    }

    /// Returns when no conversation is left.
    func alone() async { await wait { $0.connected == 0 } }
}
