import NighLoop
import NighCore

/// Runs a transport without a session, to see whether it works. It advertises, browses and dials at its owner's
/// request, and accepts no pipe from others.
///
/// `@unchecked Sendable`: all mutable state is confined to the loop.
final class TransportRunner: TransportEvents, @unchecked Sendable {
    let transport: any Transport
    let loop: UVEventLoop
    private var condition = TransportCondition.up
    private var hasEnded = false
    private let startedAt: Moment
    private var sightings: [TransportAddress: Sighting] = [:]
    private var listening: [TransportAddress] = []
    private var dials: [DialID: (startedAt: Moment, opened: Opened, waiting: Waiting)] = [:]
    private var dialCount: UInt64 = 0

    /// Called on the loop with a pipe, in the turn in which the pipe has opened.
    typealias Opened = @Sendable (any Pipe) -> Void
    private typealias Waiting = CheckedContinuation<Result<Moment.Span, NighError>, Never>

    /// Starts the transport.
    init(of transport: any Transport) throws(NighError) {
        self.transport = transport
        loop = try UVEventLoop.make()
        startedAt = loop.now
        loop.execute { [self] in transport.start(on: loop, events: self) }
    }

    /// Returns whether the transport works: as soon as it reports that it does not, or when it has not reported that
    /// within `timeout` after its start.
    func condition(within timeout: Moment.Span) async -> TransportCondition {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                waiting = continuation
                if condition != .up { return answer() }
                loop.schedule(at: startedAt + timeout) { [self] in answer() }
            }
        }
    }

    private var waiting: CheckedContinuation<TransportCondition, Never>?

    private func answer() {
        waiting?.resume(returning: condition)
        waiting = nil
    }

    /// Returns the transport's report about itself.
    func diagnose() async -> [Diagnosis] { await onLoop { $0.transport.diagnose() } }

    /// Listens, and lets others find the transport under `advertisement`.
    func advertise(_ advertisement: Advertisement) {
        loop.execute { [self] in if !hasEnded { transport.advertise(advertisement) } }
    }

    /// Looks for peers that offer `service`.
    func browse(_ service: ServiceName) {
        loop.execute { [self] in if !hasEnded { transport.browse(service) } }
    }

    /// Returns the current sightings.
    func seen() async -> [Sighting] {
        await onLoop { $0.sightings.values.sorted { $0.address.description < $1.address.description } }
    }

    /// Returns the addresses at which the transport listens now.
    func listeningAddresses() async -> [TransportAddress] { await onLoop { $0.listening } }

    /// Returns the first address at which the transport listens, as soon as there is one. Returns nil if there is none
    /// within `timeout`, or if the transport cannot work.
    func firstListeningAddress(within timeout: Moment.Span) async -> TransportAddress? {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                whenListening.set { continuation.resume(returning: $0) }
                if let address = listening.first { whenListening.give(address) }
                if condition != .up { whenListening.give(nil) }
                loop.schedule(at: loop.now + timeout) { [self] in whenListening.give(nil) }
            }
        }
    }

    private let whenListening = Once<TransportAddress?>()

    /// Returns the addresses that a dial of `address` would try.
    func places(behind address: TransportAddress, within timeout: Duration) async throws
        -> [TransportAddress]
    {
        let answer = Once<Result<[TransportAddress], NighError>>()
        let timedOut = NighError(
            .connecting, .timedOut, peer: "\(address)", transport: transport.scheme,
            advice: "no name server has answered; an IP address works too")
        return try await withCheckedContinuation { continuation in
            loop.execute { [self] in
                answer.set { continuation.resume(returning: $0) }
                guard !hasEnded else { return answer.give(.failure(timedOut)) }
                transport.places(behind: address) { answer.give($0) }
                loop.schedule(at: loop.now + Moment.Span(timeout)) { answer.give(.failure(timedOut)) }
            }
        }.get()
    }

    /// Opens a pipe to `address` and passes it to `opened`, which must start or close it there. Returns how long the
    /// dial took.
    func dial(
        _ address: TransportAddress, timeout: Duration, opened: @escaping Opened
    ) async -> Result<Moment.Span, NighError> {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                guard !hasEnded else {
                    return continuation.resume(returning: .failure(NighError(.connecting, .closed)))
                }
                dialCount += 1
                let id = DialID(number: dialCount)
                dials[id] = (loop.now, opened, continuation)
                transport.dial(address, as: id, timeout: timeout)
            }
        }
    }

    /// Shuts the transport and the loop down.
    func end() async {
        await onLoop { runner in
            if !runner.hasEnded { runner.transport.shutdown() }
            runner.hasEnded = true
            for dial in runner.dials.values {
                dial.waiting.resume(returning: .failure(NighError(.connecting, .closed)))
            }
            runner.dials = [:]
        }
        loop.shutdown()
    }

    private func onLoop<Value: Sendable>(_ body: @escaping @Sendable (TransportRunner) -> Value) async
        -> Value
    {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in continuation.resume(returning: body(self)) }
        }
    }

    // MARK: Transport events

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        self.condition = condition
        if condition != .up {
            answer()
            whenListening.give(nil)
        }
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) {
        sightings[sighting.address] = sighting
    }

    func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        sightings[sighting.address] = sighting
    }

    func routeLost(_ address: TransportAddress, by transport: any Transport) { sightings[address] = nil }

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        guard let dial, let waiting = dials.removeValue(forKey: dial) else { return pipe.close(.now) }
        waiting.opened(pipe)
        waiting.waiting.resume(returning: .success(loop.now - waiting.startedAt))
    }

    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        dials.removeValue(forKey: dial)?.waiting.resume(returning: .failure(error))
    }

    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        listening = addresses
        if let address = addresses.first { whenListening.give(address) }
    }

    func addressKnown(_ address: TransportAddress, by transport: any Transport) {}
    func advertised(as name: DisplayName, by transport: any Transport) {}
    func advertisingFailed(_ error: NighError, by transport: any Transport) {}
    func browsingFailed(_ error: NighError, by transport: any Transport) {}
}

/// A callback that takes the first of several answers, and ignores the others.
///
/// `@unchecked Sendable`: the lock guards all mutable state.
final class Once<Value: Sendable>: @unchecked Sendable {
    private let lock = Lock()
    private var receiver: (@Sendable (Value) -> Void)?

    /// Sets the callback. Must be called before any answer is given.
    func set(_ receiver: @escaping @Sendable (Value) -> Void) { lock.withLock { self.receiver = receiver } }

    /// Gives an answer; only the first counts.
    func give(_ value: Value) {
        let receiver = lock.withLock {
            defer { self.receiver = nil }
            return self.receiver
        }
        receiver?(value)
    }
}
