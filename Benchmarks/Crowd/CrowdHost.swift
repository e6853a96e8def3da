import CBenchmark
import Glibc
import Measuring
import NighLoop

/// The cost of one session with many peers.
struct CrowdResult {
    /// The duration of a step, and the host's processor time.
    struct Step {
        var time = Duration.zero
        var processor: UInt64 = 0
    }

    var guests = 0
    var descriptors = 0
    /// Resident memory a peer, in bytes.
    var memory = 0
    /// The step until all guests were connected.
    var connecting = Step()
    /// The step until a message of 1 KiB to all was answered by all.
    var broadcast = Step()
    /// Pinging one after the other.
    var pings = Step()
    /// The step from cutting all links until each conversation had another one, or had ended.
    var back = Step()
    /// Conversations that ended because of the cut.
    var ended = 0

    static let header = """
        | guests | descriptors | KiB a guest | all connected | 1 KiB to all, and answered | a ping to each in turn | \
        all cut, all back | conversations lost |
        | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
        """

    var row: String {
        let cells = [
            "\(guests)", "\(descriptors)", Figures.fixed(Double(memory) / 1_024, decimals: 1),
            text(connecting), text(broadcast), text(pings), text(back), "\(ended)",
        ]
        return "| " + cells.joined(separator: " | ") + " |"
    }

    /// The time, and the processor time of the host for each guest.
    private func text(_ step: Step) -> String {
        let span = Figures.shortSpan(nanoseconds: step.time / .nanoseconds(1))
        let each = Figures.shortSpan(nanoseconds: Double(step.processor) / Double(guests))
        return "\(span), \(each) each"
    }
}

/// One session with many guests in other processes, on one loop.
///
/// `@unchecked Sendable`: its state is touched on the loop only.
final class CrowdHost: @unchecked Sendable {
    /// The most guests of one process. A guest has three descriptors.
    private static let guestsInProcess = 2_000
    private static let timeout = Moment.Span.seconds(240)

    private let size: Int
    private let security: SessionSecurity
    private let loop = UVEventLoop()
    private let session: LowLevelSession
    private var connected = 0
    private var ended = 0
    /// The guests whose links are known to have been cut.
    private var cut: Set<PeerID> = []
    private var answers = 0
    private var port: String?
    private var waiting: Waiting?

    private struct Waiting {
        let isReached: () -> Bool
        let reached: CheckedContinuation<Bool, Never>
        let timer: LoopTimer
    }

    init(of size: Int, _ security: SessionSecurity) {
        self.size = size
        self.security = security
        session = LowLevelSession(
            CrowdProgram.configuration(.server, peers: size, security), identity: .ephemeral(),
            transports: [CrowdProgram.transport()], loop: loop)
    }

    func run() async throws -> CrowdResult {
        session.start(
            onEvent: { [self] in handle($0) },
            onMessage: { [self] _, _ in
                answers += 1
                check()
            })
        try await wait("listening") { self.port != nil }
        let before = benchmark_resident()
        var result = CrowdResult()
        result.guests = size

        var guests: [CrowdGuestProcess] = []
        let begun = Beginning()
        for first in stride(from: 0, to: size, by: Self.guestsInProcess) {
            let count = min(Self.guestsInProcess, size - first)
            guests.append(
                CrowdGuestProcess(
                    try CrowdProcess(["--port", port ?? "", "--guests", "\(count)"], security)))
        }
        try await wait("connecting") { self.connected == self.size }
        result.connecting = begun.step
        result.descriptors = descriptors().count
        result.memory = Int(benchmark_resident() - before) / size

        result.broadcast = try await step("a broadcast", until: { self.answers == self.size }) {
            let payload = ByteSlice([UInt8](repeating: 7, count: 1 << 10))
            _ = try? self.session.trySend(payload, to: self.session.connectedPeerIDs)
        }
        let pinging = Beginning()
        for peer in session.connectedPeerIDs { _ = try await session.ping(peer) }
        result.pings = pinging.step

        let connections = descriptors()
        result.back = try await step(
            "coming back", until: { self.cut.count == self.size && self.connected + self.ended == self.size }
        ) {
            for descriptor in connections { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
        result.ended = ended
        for guest in guests { guest.end() }
        return result
    }

    private func handle(_ event: SessionEvent) {
        switch event {
        case .listening(_, let addresses):
            port = addresses.first.flatMap { $0.value.split(separator: ":").last.map(String.init) }
        case .invited(let invitation): invitation.accept()
        case .connected, .reconnected: connected += 1
        case .reconnecting(let peer, _):
            connected -= 1
            cut.insert(peer.id)
        case .disconnected(let peer, _):
            if cut.insert(peer.id).inserted { connected -= 1 }
            ended += 1
        default: break
        }
        check()
    }

    /// The descriptors of connections over IP.
    private func descriptors() -> [Int32] {
        (0..<Int32(getdtablesize())).filter { descriptor in
            var address = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let status = withUnsafeMutableBytes(of: &address) { bytes in
                getpeername(descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), &length)
            }
            return status == 0 && [AF_INET, AF_INET6].contains(Int32(address.ss_family))
        }
    }

    // MARK: Waiting

    private func check() {
        guard let waiting, waiting.isReached() else { return }
        self.waiting = nil
        loop.cancel(waiting.timer)
        waiting.reached.resume(returning: true)
    }

    /// Waits until something holds, which is checked on the loop at each event and message.
    private func wait(_ what: String, until isReached: @escaping @Sendable () -> Bool) async throws {
        _ = try await step(what, until: isReached) {}
    }

    /// Begins work on the loop, and returns its duration and processor time until a condition held.
    private func step(
        _ what: String, until isReached: @escaping @Sendable () -> Bool, begin: @escaping @Sendable () -> Void
    ) async throws -> CrowdResult.Step {
        let begun = Beginning()
        let isDone = await withCheckedContinuation { (reached: CheckedContinuation<Bool, Never>) in
            loop.execute { [self] in
                let timer = loop.schedule(at: loop.now + Self.timeout) { [self] in
                    waiting?.reached.resume(returning: false)
                    waiting = nil
                }
                waiting = Waiting(isReached: isReached, reached: reached, timer: timer)
                begin()
                check()
            }
        }
        guard isDone else {
            throw NighError(
                .conversing, .timedOut,
                advice: "\(what) was not done: \(connected) connected, \(ended) ended, \(answers) answers")
        }
        return begun.step
    }

    /// The beginning of a step.
    private struct Beginning {
        private let moment = ContinuousClock.now
        private let processor = benchmark_processor()

        /// The time and the processor time until now.
        var step: CrowdResult.Step {
            CrowdResult.Step(time: .now - moment, processor: benchmark_processor() - processor)
        }
    }
}

/// A process of guests. It runs until `end` is called.
///
/// `@unchecked Sendable`: used by one task.
final class CrowdGuestProcess: @unchecked Sendable {
    private var process: CrowdProcess

    init(_ process: consuming CrowdProcess) { self.process = process }

    func end() { _ = process.wait() }
}
