import NighCore
import NighMemory

// Sessions on a rig: how checks make them, call them and wait for them.

/// The outcome of one call of a program, which must be reported exactly once.
final class PendingResult<Value: Sendable>: @unchecked Sendable {
    private let testbed: Testbed
    private let what: String
    // Guarded by the testbed's monitor.
    private var storedResult: Result<Value, NighError>?

    init(_ what: String, on testbed: Testbed) {
        self.what = what
        self.testbed = testbed
    }

    var result: Result<Value, NighError>? { testbed.monitor.read { storedResult } }

    func complete(with result: Result<Value, NighError>) {
        if self.result != nil { testbed.recordViolation("\(what) was answered twice") }
        testbed.monitor.change { storedResult = result }
    }

    /// Waits for the outcome, which must be a success.
    @discardableResult
    func value() throws -> Value {
        try testbed.wait("\(what) is answered") { self.result != nil }
        switch result {
        case .success(let value): return value
        case .failure(let error): throw Testbed.Failure(message: "\(what) failed: \(error)")
        case nil: throw Testbed.Failure(message: "\(what) has no answer")
        }
    }

    /// Waits for the outcome, which must be a failure.
    func error() throws -> NighError {
        try testbed.wait("\(what) is answered") { self.result != nil }
        guard case .failure(let error)? = result else {
            throw Testbed.Failure(message: "\(what) did not fail")
        }
        return error
    }
}

extension Testbed {
    /// Starts a session on the rig's network. Its events and messages are checked against the rules that always hold.
    func startSession(
        _ name: String, role: SessionRole = .server, identity: UInt64? = nil,
        reading: SessionProbe.Reading = .handler, accepting: Bool = true, plan: FaultPlan = .none,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionProbe {
        var configuration = SessionConfiguration(
            service: rig.service, name: DisplayName(fitting: name), role: role)
        configuration.checksTransports = true
        configuration.timings = .patient
        configuration.timings.firstRetry = .milliseconds(20)
        configuration.timings.longestRetry = .milliseconds(100)
        adjust(&configuration)
        let loop = makeLoop()
        let probe = try addSession(name) { number, transport in
            let transport = FaultyTransport(transport, plan: plan)
            let identity = Identity.ephemeral(seed: rig.seed &* 1_000 &+ (identity ?? 500 + UInt64(number)))
            if case .virtual = rig.time { configuration.seed = UInt64(number) &* 7_919 }
            let session = Session(configuration, identity: identity, transports: [transport], loop: loop)
            return SessionProbe(
                number: number, session: session, wires: [transport.control], monitor: monitor)
        }
        probe.onViolation = { [unowned self] in recordViolation($0) }
        probe.checkMessage = { [unowned self, unowned probe] in checkMessage($0, $1, at: probe) }
        probe.start(reading: reading, accepting: accepting)
        if role != .client {
            try wait("the session \(name) listens") { !probe.listening.isEmpty }
        }
        return probe
    }

    /// Makes two sessions in conversation: `first` called `second` by its address, and neither browses.
    func connectedSessions(
        _ reading: SessionProbe.Reading = .handler, plan: FaultPlan = .none,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (first: SessionProbe, second: SessionProbe) {
        let first = try startSession("First", reading: reading, plan: plan, adjust: adjust)
        let second = try startSession("Second", reading: reading, plan: plan, adjust: adjust)
        try connect(first, second)
        return (first, second)
    }

    /// Lets `caller` invite `host` by its address, and waits until both are connected.
    func connect(_ caller: SessionProbe, _ host: SessionProbe) throws {
        try call(caller, host).value()
        try waitFor(.connected, caller, host)
    }

    /// Waits until each of the two has reported this state of the other.
    func waitFor(_ state: PeerState, _ first: SessionProbe, _ second: SessionProbe) throws {
        try wait("session \(first.number) and session \(second.number) both report \(state)") {
            first.state(of: second.id) == state && second.state(of: first.id) == state
        }
    }

    /// Lets `caller` invite the session that listens where `host` does.
    func call(
        _ caller: SessionProbe, _ host: SessionProbe, context: [UInt8] = [], timeout: Duration? = nil
    ) throws -> PendingResult<PeerID> {
        call(caller, at: try Self.address(in: host.listening), context: context, timeout: timeout)
    }

    func call(
        _ caller: SessionProbe, at address: TransportAddress, context: [UInt8] = [], timeout: Duration? = nil
    ) -> PendingResult<PeerID> {
        let outcome = PendingResult<PeerID>("the call of session \(caller.number) to \(address)", on: self)
        caller.session.invite(at: address, context: context, timeout: timeout ?? rig.timeout * 10) {
            outcome.complete(with: $0)
        }
        return outcome
    }

    /// Lets `caller` invite a peer that it has found.
    func invite(
        _ caller: SessionProbe, _ peer: PeerID, context: [UInt8] = [], timeout: Duration? = nil
    ) -> PendingResult<PeerID> {
        let outcome = PendingResult<PeerID>("the invitation by session \(caller.number)", on: self)
        caller.session.invite(peer, context: context, timeout: timeout ?? rig.timeout * 10) {
            outcome.complete(with: $0)
        }
        return outcome
    }

    func disconnect(_ probe: SessionProbe, from peer: PeerID) -> PendingResult<PeerID> {
        let outcome = PendingResult<PeerID>("the disconnect by session \(probe.number)", on: self)
        probe.session.disconnect(peer) { outcome.complete(with: $0) }
        return outcome
    }

    /// Begins to close a session. Once that is answered, the session may report nothing.
    func beginClosing(_ probe: SessionProbe) -> PendingResult<PeerID> {
        let outcome = PendingResult<PeerID>("the close of session \(probe.number)", on: self)
        probe.session.close { [unowned self] in
            probe.noteClosed()
            freeEnd(of: probe)
            outcome.complete(with: .success(probe.id))
        }
        return outcome
    }

    func close(_ probe: SessionProbe) throws { try beginClosing(probe).value() }

    /// Ends a session as the death of its process would.
    func kill(_ probe: SessionProbe) throws {
        try run(on: probe.session.loop) { probe.session.crash() }
        probe.noteClosed()
        freeEnd(of: probe)
    }

    /// Controls the faults on a session's transport, on its loop.
    func controlFaults(of probe: SessionProbe, _ body: @escaping @Sendable (FaultControl) -> Void) throws {
        try run(on: probe.session.loop) { body(probe.faults) }
    }

    /// Waits for something that no event reports, by looking at the session on its loop from time to time.
    func wait(
        _ what: @autoclosure () -> String, at probe: SessionProbe,
        until isTrue: @escaping @Sendable (Session) -> Bool
    ) throws {
        let poll = StatePoll(probe.session, on: self, isTrue)
        probe.session.loop.execute { poll.check() }
        defer { poll.end() }
        try wait(what()) { poll.isTrue }
    }

    /// Waits until the session has `count` links, and no dial under way.
    func waitForLinks(_ count: Int, at probe: SessionProbe) throws {
        try wait("session \(probe.number) has \(count) links", at: probe) { session in
            let inside = session.inspection
            return inside.links == count && inside.dials == 0
        }
    }

    func statistics(of probe: SessionProbe) throws -> SessionStatistics {
        let outcome = PendingResult<SessionStatistics>("statistics", on: self)
        probe.session.statistics { outcome.complete(with: .success($0)) }
        return try outcome.value()
    }

    /// Runs a task of a program that uses `probe`: in real time on another loop, in virtual time on the only one.
    func startTask(for probe: SessionProbe, _ body: @escaping @Sendable () async -> Void) {
        Task(executorPreference: taskLoop(for: probe.session.loop), operation: body)
    }

    private final class StatePoll: @unchecked Sendable {
        // `isOver` and `found` are guarded by the monitor.
        private let session: Session
        private let testbed: Testbed
        private let condition: @Sendable (Session) -> Bool
        private var isOver = false
        private var found = false

        init(_ session: Session, on testbed: Testbed, _ condition: @escaping @Sendable (Session) -> Bool) {
            self.session = session
            self.testbed = testbed
            self.condition = condition
        }

        var isTrue: Bool { testbed.monitor.read { found } }

        func end() { testbed.monitor.change { isOver = true } }

        func check() {
            guard !testbed.monitor.read({ isOver }) else { return }
            if condition(session) { return testbed.monitor.change { found = true } }
            let loop = session.loop
            loop.schedule(at: loop.now + .milliseconds(2)) { self.check() }
        }
    }
}
