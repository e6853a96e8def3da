import NighCore
import NighMemory

/// The tools of a check: transports and sessions on a rig, ways to wait for events, and a list of contract violations.
final class Testbed: @unchecked Sendable {
    /// Why a check failed.
    struct Failure: Error {
        let message: String
    }

    /// Why the check does not apply to the rig.
    struct Skip: Error {
        let reason: String
    }

    let rig: TransportRig
    let monitor = Monitor()
    /// The messages that sessions send each other in `MessageTransfer`s, and their arrivals; guarded by the monitor.
    var ledger = MessageLedger()
    /// The numbers of the senders whose messages the ledger checks, by the receiver's number and the sender's PeerID;
    /// guarded by the monitor.
    var senders: [Int: [PeerID: Int]] = [:]
    private var transportProbes: [TransportProbe] = []
    private var sessionProbes: [SessionProbe] = []
    /// The probe at each end of the wire, by the end's number; guarded by the monitor.
    private var holders: [Int: ObjectIdentifier] = [:]
    /// All transports made, each with a closure that returns its last error.
    private var used: [(name: String, end: Int, lastError: () throws -> NighError?)] = []
    private var loops: [any EventLoop] = []
    private var callDepths: [ObjectIdentifier: CallDepth] = [:]
    private var recordedViolations: [String] = []
    private var taskLoop: ThreadEventLoop?

    init(_ rig: TransportRig) { self.rig = rig }

    /// The first violations, at most 5 and each only once.
    var violations: [String] { monitor.read { recordedViolations } }

    func recordViolation(_ message: String) {
        monitor.change {
            guard recordedViolations.count < 5, !recordedViolations.contains(message) else { return }
            recordedViolations.append(message)
        }
    }

    func knows(_ peer: PeerID) -> Bool { monitor.read { transportProbes.contains { $0.peer == peer } } }

    /// Makes a loop with the rig. The testbed stops it at the end.
    func makeLoop() -> any EventLoop {
        let loop = rig.makeLoop()
        if !loops.contains(where: { $0 === loop }) { loops.append(loop) }
        return loop
    }

    /// Returns the loop for the tasks of a program that uses a session on `loop`: another loop, or `loop` itself in
    /// virtual time.
    func taskLoop(for loop: any EventLoop) -> any EventLoop {
        if case .virtual = rig.time { return loop }
        let taskLoop = taskLoop ?? ThreadEventLoop()
        self.taskLoop = taskLoop
        return taskLoop
    }

    /// Makes a session on a free end of the wire. The testbed closes it at the end.
    func addSession(
        _ name: String, _ make: (_ number: Int, _ transport: any Transport) -> SessionProbe
    ) throws -> SessionProbe {
        try monitor.change {
            let end = try firstFreeEnd()
            let probe = make(sessionProbes.count + 1, rig.makeTransport(end))
            sessionProbes.append(probe)
            holders[end] = ObjectIdentifier(probe)
            used.append(
                (
                    "session \(probe.number), \(name)", end,
                    { [unowned self] in try run(on: probe.session.loop) { probe.faults.lastError } }
                ))
            return probe
        }
    }

    private func firstFreeEnd() throws -> Int {
        let end = (0...).first { holders[$0] == nil } ?? 0
        guard end < rig.endsAtOnce else {
            throw Failure(message: "the check uses more ends than the wire has, \(rig.endsAtOnce)")
        }
        return end
    }

    /// Frees the end of the wire for another transport. The transport of this probe is shut down.
    func freeEnd(of holder: AnyObject) {
        monitor.change { holders = holders.filter { $0.value != ObjectIdentifier(holder) } }
    }

    /// Returns all transports made so far, each with its last error.
    func usedTransports() -> [ConformanceReport.UsedTransport] {
        used.map { .init(name: $0.name, end: $0.end, lastError: (try? $0.lastError()) ?? nil) }
    }

    /// Starts another transport on the rig's network, and returns its probe. Its pipes carry patterns that are checked
    /// or, if `raw`, any bytes.
    func startTransport(raw: Bool = false) throws -> TransportProbe {
        let loop = makeLoop()
        // While one transport is called, no other transport on the same loop may report anything either.
        let callDepth = callDepths[ObjectIdentifier(loop)] ?? CallDepth()
        callDepths[ObjectIdentifier(loop)] = callDepth
        let probe = try monitor.change {
            let end = try firstFreeEnd()
            let probe = TransportProbe(
                transportProbes.count + 1, testbed: self,
                transport: CheckedTransport(rig.makeTransport(end), callDepth: callDepth), loop: loop,
                isRaw: raw)
            transportProbes.append(probe)
            holders[end] = ObjectIdentifier(probe)
            used.append(("transport \(probe.number)", end, { probe.lastError }))
            return probe
        }
        try probe.run { probe.transport.start(on: loop, events: probe) }
        return probe
    }

    /// Starts a transport that listens, and returns its probe.
    func startListener(raw: Bool = false) throws -> TransportProbe {
        let probe = try startTransport(raw: raw)
        try probe.advertise()
        try wait("listeningChanged after advertise") { !probe.listening.isEmpty }
        return probe
    }

    /// The first of the addresses at which somebody listens. Fails if there is none, since a transport may lose its
    /// listener at any time.
    static func address(in listening: [TransportAddress]) throws -> TransportAddress {
        guard let address = listening.first else { throw Failure(message: "nobody listens") }
        return address
    }

    /// Opens a pipe from `client` to `server`, and returns both ends.
    func connect(_ client: TransportProbe, _ server: TransportProbe) throws -> (
        dialled: PipeProbe, accepted: PipeProbe
    ) {
        let address = try Self.address(in: server.listening)
        let count = server.acceptedPipes.count
        let dial = try client.dial(address)
        try wait("a dial to a listener opens a pipe at both ends") {
            (client.dialledPipe(dial) != nil && server.acceptedPipes.count > count)
                || client.failure(dial) != nil
        }
        if let failure = client.failure(dial) {
            throw Failure(message: "a dial to a listener failed: \(failure.error)")
        }
        return (client.dialledPipe(dial)!, server.acceptedPipes[count])
    }

    /// Starts two transports and opens a pipe between them.
    func connectedPair() throws -> (dialled: PipeProbe, accepted: PipeProbe) {
        try connect(startTransport(), startListener())
    }

    func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
        if !condition { throw Failure(message: message()) }
    }

    /// Waits until `isTrue` returns true, for at most the rig's timeout. A contract violation ends the wait.
    func wait(_ what: @autoclosure () -> String, until isTrue: () -> Bool) throws {
        let isDecided = { isTrue() || !self.recordedViolations.isEmpty }
        switch rig.time {
        case .virtual(let loop): _ = try loop.run(until: isDecided, within: rig.timeout)
        case .real: _ = monitor.wait(within: rig.timeout, until: isDecided)
        }
        guard monitor.read(isTrue) else {
            throw Failure(message: "timed out waiting for: \(what())")
        }
    }

    /// Waits for something that takes long on a busy machine, such as many bytes: continues as long as `progress`
    /// changes within the rig's timeout.
    func wait<Progress: Equatable>(
        _ what: @autoclosure () -> String, while progress: () throws -> Progress, until isTrue: () -> Bool
    ) throws {
        while true {
            let before = try progress()
            do {
                return try wait(what(), until: isTrue)
            } catch {
                guard violations.isEmpty, try progress() != before else { throw error }
            }
        }
    }

    /// Lets the rig's quiet time pass, in which everything under way should happen.
    func waitQuietTime() throws {
        switch rig.time {
        case .virtual(let loop): try loop.run(for: rig.quietTime)
        case .real:
            let passed = Guarded(0)
            let quietTime = Moment.Span(rig.quietTime)
            for loop in loops {
                loop.execute { [monitor] in
                    loop.schedule(at: loop.now + quietTime) {
                        monitor.change { passed.withLock { $0 += 1 } }
                    }
                }
            }
            guard monitor.wait(within: rig.timeout, until: { passed.withLock { $0 } == loops.count }) else {
                throw Failure(message: "a loop is stuck")
            }
        }
    }

    /// Runs `body` on `loop`, and waits for its result.
    func run<Result: Sendable>(on loop: any EventLoop, _ body: @escaping @Sendable () -> Result) throws
        -> Result
    {
        if loop.isCurrent { return body() }
        let returned = Guarded<Result?>(nil)
        loop.execute { [monitor] in
            let result = body()
            monitor.change { returned.withLock { $0 = result } }
        }
        _ = monitor.wait(within: rig.timeout) { returned.withLock { $0 != nil } }
        guard let result = returned.withLock({ $0 }) else {
            throw Failure(message: "a call blocks the loop")
        }
        return result
    }

    /// Shuts down everything that still runs, and checks that nothing is reported afterwards.
    func tearDown() {
        do {
            for probe in sessionProbes {
                try run(on: probe.session.loop) { probe.session.crash() }
                probe.noteClosed()
            }
            for probe in transportProbes { try probe.shutdown() }
            try waitQuietTime()
            for probe in transportProbes { probe.noteBreach() }
        } catch let failure as Failure {
            recordViolation(failure.message)
        } catch {
            recordViolation("\(error)")
        }
        for loop in loops { rig.stopLoop(loop) }
        taskLoop?.shutdown()
        for probe in transportProbes { probe.forgetPipes() }
        monitor.change {
            transportProbes = []
            sessionProbes = []
            used = []
        }
    }

}
