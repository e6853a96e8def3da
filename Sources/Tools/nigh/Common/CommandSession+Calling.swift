import NighLoop
import NighCore

/// Calls a peer until it answers: waits for discovery to find a peer that is given by name or PeerID, and calls again
/// while the peer cannot be reached.
extension CommandSession {
    /// The target of a call: a known peer, or an address.
    enum CallTarget: Sendable {
        case peer(PeerID)
        case address(TransportAddress)
    }

    /// How long a command keeps calling.
    struct CallLimits: Sendable {
        /// The time for finding the peer, reaching it and getting its answer together; nil means no limit.
        var timeLimit: Duration?
        /// Whether an address is called again after a failure. Otherwise an address is called once: there is no peer to
        /// find first, so "nobody listens there" is an answer.
        var retriesAddresses = false
        /// Whether the command reports that it waits, if that takes a while.
        var isAnnounced = true
        /// The identity that must answer; nil if it is the first time.
        var identity: PeerID?
    }

    /// The longest time for one call when there is no limit for all calls together.
    private static let longestCall = Moment.Span.seconds(30)
    /// The shortest time for one call, even if less of the total time is left; never more than the total time.
    private static let shortestCall = Moment.Span.seconds(1)

    /// Finds the peer that `choice` names and starts a conversation for `purpose`; see `call`.
    func connect(
        to choice: PeerChoice, for purpose: InvitationPurpose, _ limits: CallLimits,
        whenFailed: (@Sendable (NighError) -> Void)? = nil
    ) async throws -> Peer {
        try await call(choice, for: purpose, limits, whenFailed: whenFailed) { [self] target, timeout in
            let id: PeerID
            switch target {
            case .peer(let peer):
                id = peer
                try await session.peer(id).invite(context: purpose.context, timeout: timeout)
            case .address(let address):
                id = try await session.invite(at: address, context: purpose.context, timeout: timeout)
            }
            guard let peer = await onLoop({ $0.peers[id] }) else {
                throw NighError(.conversing, .linkLost, peer: id.short)
            }
            if let expected = limits.identity, peer.identity != expected {
                try? await peer.disconnect()
                throw NighError(
                    .connecting, .wrongPeer(expected: expected, found: peer.identity), peer: "\(choice)",
                    advice: "somebody else is there now: send the files anew if you mean that one")
            }
            return peer
        }
    }

    /// Finds the peer that `choice` names and makes `attempt`. Repeats the attempt while it fails because the peer was
    /// not reached or asks to be called later. Throws the last failure once the time is over, and throws a refusal by
    /// the peer at once. Cancelling the task ends the calls.
    ///
    /// - Parameter whenFailed: receives each failure before the next attempt. Without it, the terminal shows the
    ///   failure.
    func call<Outcome: Sendable>(
        _ choice: PeerChoice, for purpose: InvitationPurpose?, _ limits: CallLimits,
        whenFailed: (@Sendable (NighError) -> Void)? = nil,
        _ attempt: @escaping @Sendable (CallTarget, _ timeout: Duration) async throws -> Outcome
    ) async throws -> Outcome {
        let call = await onLoop { $0.beginCall(for: limits.timeLimit.map(Moment.Span.init)) }
        defer {
            loop.execute { [self] in
                call.cancelAnnouncement()
                calls[ObjectIdentifier(call)] = nil
            }
        }
        var lastFailure: NighError?
        while true {
            let target: CallTarget
            do {
                target = try await self.target(
                    choice, for: purpose, until: call.deadline, isAnnounced: limits.isAnnounced)
            } catch let error as NighError where error.cause == .unknownPeer {
                // The peer was found before and has disappeared: the last failure says more.
                guard let lastFailure else { throw error }
                throw await onLoop { call.failure(lastFailure, at: $0.loop.now) }
            }
            let timeout = await onLoop { commandSession in
                call.callStarted(target, commandSession.peers)
                if limits.isAnnounced { commandSession.announce(call, to: choice) }
                return commandSession.timeout(of: call, within: limits.timeLimit.map(Moment.Span.init))
            }
            do {
                let outcome = try await attempt(target, timeout.duration)
                await onLoop { commandSession in
                    call.cancelAnnouncement()
                    if limits.isAnnounced { commandSession.results.endWaiting() }
                }
                return outcome
            } catch let error as NighError {
                let isCalledOnce = if case .address = target { !limits.retriesAddresses } else { false }
                guard !isCalledOnce, !Task.isCancelled else { throw error }
                let (next, failure) = await onLoop { commandSession in
                    let now = commandSession.loop.now
                    call.cancelAnnouncement()
                    return (call.nextCall(after: error, at: now), call.failure(error, at: now))
                }
                guard let next else { throw failure }
                lastFailure = error
                if let whenFailed { whenFailed(error) } else { await show(error, of: call, to: choice) }
                try await pause(call, until: next)
            }
        }
    }

    /// Shows why the peer was not reached. Without a terminal, only a call that takes a while shows it: the next
    /// attempt may succeed.
    private func show(_ error: NighError, of call: OngoingCall, to choice: PeerChoice) async {
        let line = Line("cannot reach \(choice): \(error.cause); trying again", .faint)
        await onLoop { commandSession in
            let isLong = commandSession.loop.now >= call.start + Self.patience
            guard commandSession.results.live.isVisible || isLong && !commandSession.options.isVerbose else {
                return
            }
            commandSession.results.showWaiting(line)
        }
    }

    /// Shows that the peer is called, once that takes a while. Loop only.
    private func announce(_ call: OngoingCall, to choice: PeerChoice) {
        call.announce(at: loop.now + Self.patience) { [weak self] in
            self?.results.showWaiting(Line("calling \(choice) …", .faint))
        }
    }

    /// Stops showing that a peer is called: it has answered, although the attempt goes on. Loop only.
    func endAnnouncements() {
        for call in calls.values { call.cancelAnnouncement() }
        results.endWaiting()
    }

    private func target(
        _ choice: PeerChoice, for purpose: InvitationPurpose?, until deadline: Moment, isAnnounced: Bool
    ) async throws -> CallTarget {
        switch choice {
        case .address(let address):
            guard transports.contains(where: { $0.scheme == address.scheme }) else {
                throw NighError(
                    .connecting, .noRoute, peer: "\(address)", transport: address.scheme,
                    advice: "name its transport: --transport \(address.scheme)")
            }
            return .address(address)
        case .named, .code:
            return .peer(
                try await find(choice, for: purpose, until: deadline, isAnnounced: isAnnounced).id)
        }
    }

    /// Loop only.
    private func beginCall(for span: Moment.Span?) -> OngoingCall {
        let call = OngoingCall(
            RetrySchedule(from: loop.now, until: span.map { loop.now + $0 } ?? .never), on: loop)
        calls[ObjectIdentifier(call)] = call
        return call
    }

    /// Loop only.
    private func timeout(of call: OngoingCall, within span: Moment.Span?) -> Moment.Span {
        guard let span else { return Self.longestCall }
        return max(call.deadline - loop.now, min(span, Self.shortestCall))
    }

    private func pause(_ call: OngoingCall, until next: Moment) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                loop.execute { [self] in
                    call.pause(until: next) { continuation.resume(with: $0) }
                    call.routesChanged(in: peers)
                }
            }
        } onCancel: {
            loop.execute { call.cancel() }
        }
    }
}

/// A sequence of calls to one peer, with the pause between two attempts.
///
/// `@unchecked Sendable`: everything except the constants `start` and `deadline` is used on the session's loop only.
final class OngoingCall: @unchecked Sendable {
    let start: Moment
    let deadline: Moment
    private let loop: UVEventLoop
    private var schedule: RetrySchedule
    private var peer: PeerID?
    private var timer: LoopTimer?
    private var announcement: LoopTimer?
    private var completion: ((Result<Void, any Error>) -> Void)?
    private var isCancelled = false

    init(_ schedule: RetrySchedule, on loop: UVEventLoop) {
        self.schedule = schedule
        self.loop = loop
        start = loop.now
        deadline = schedule.deadline
    }

    /// Calls `say` at `moment`, unless the attempt has ended by then.
    func announce(at moment: Moment, _ say: @escaping @Sendable () -> Void) {
        cancelAnnouncement()
        announcement = loop.schedule(at: moment, say)
    }

    func cancelAnnouncement() {
        if let announcement { loop.cancel(announcement) }
        announcement = nil
    }

    /// Notes that an attempt begins.
    func callStarted(_ target: CommandSession.CallTarget, _ peers: [PeerID: Peer]) {
        if case .peer(let id) = target { peer = id }
        schedule.callStarted(along: addresses(peers), at: loop.now)
    }

    func nextCall(after error: NighError, at now: Moment) -> Moment? {
        schedule.nextCall(after: error, at: now)
    }

    func failure(_ error: NighError, at now: Moment) -> NighError { schedule.failure(error, at: now) }

    /// Waits until `moment`, or until discovery reports another route to the peer.
    func pause(until moment: Moment, _ completion: @escaping (Result<Void, any Error>) -> Void) {
        guard !isCancelled else { return completion(.failure(CancellationError())) }
        self.completion = completion
        setTimer(moment)
    }

    private func setTimer(_ moment: Moment) {
        if let timer { loop.cancel(timer) }
        timer = loop.schedule(at: moment) { [self] in endPause(.success(())) }
    }

    /// Ends the current pause, or the next one, with `CancellationError`.
    func cancel() {
        isCancelled = true
        endPause(.failure(CancellationError()))
    }

    private func endPause(_ result: Result<Void, any Error>) {
        guard let completion else { return }
        self.completion = nil
        if let timer { loop.cancel(timer) }
        timer = nil
        completion(result)
    }

    /// Checks whether a new route to the peer allows an earlier call.
    func routesChanged(in peers: [PeerID: Peer]) {
        guard let sooner = schedule.nextCall(along: addresses(peers), at: loop.now), completion != nil else {
            return
        }
        setTimer(sooner)
    }

    private func addresses(_ peers: [PeerID: Peer]) -> [TransportAddress] {
        peer.flatMap { peers[$0] }?.routes.map(\.address) ?? []
    }
}
