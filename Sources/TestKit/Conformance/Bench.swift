import NighCore
import NighMemory

/// What a check works with: stations and sessions on a rig, waiting for things to happen, and a list of what broke the
/// contract meanwhile.
final class Bench: @unchecked Sendable {
    /// Why a check failed, in words.
    struct Failure: Error {
        let words: String
    }

    /// The check does not apply to the rig.
    struct Skip: Error {
        let words: String
    }

    let rig: TransportRig
    let monitor = Monitor()
    /// What sessions send each other by `Talk`s, and what came of it; guarded by the monitor.
    var ledger = MessageLedger()
    /// Whose messages are the ledger's, by the numbers of receivers and then by the sender; guarded by the monitor.
    var talks: [Int: [PeerID: Int]] = [:]
    private var stations: [Station] = []
    private var sessions: [SessionProbe] = []
    /// Who has the ends of the wire, by number; guarded by the monitor.
    private var holders: [Int: ObjectIdentifier] = [:]
    /// All transports made, and how to ask each for its last error.
    private var used: [(name: String, end: Int, lastError: () throws -> NighError?)] = []
    private var loops: [any EventLoop] = []
    private var callDepths: [ObjectIdentifier: CallDepth] = [:]
    private var recordedViolations: [String] = []
    private var taskLoop: ThreadEventLoop?

    init(_ rig: TransportRig) { self.rig = rig }

    /// The first few things seen that must not be, none twice.
    var violations: [String] { monitor.read { recordedViolations } }

    func violated(_ words: String) {
        monitor.change {
            guard recordedViolations.count < 5, !recordedViolations.contains(words) else { return }
            recordedViolations.append(words)
        }
    }

    func knows(_ peer: PeerID) -> Bool { monitor.read { stations.contains { $0.peer == peer } } }

    /// A loop of the rig's, which is stopped at the end.
    func makeLoop() -> any EventLoop {
        let loop = rig.makeLoop()
        if !loops.contains(where: { $0 === loop }) { loops.append(loop) }
        return loop
    }

    /// Where tasks of a program that uses a session on `loop` run: elsewhere, in virtual time there.
    func taskLoop(besides loop: any EventLoop) -> any EventLoop {
        if case .virtual = rig.time { return loop }
        let taskLoop = taskLoop ?? ThreadEventLoop()
        self.taskLoop = taskLoop
        return taskLoop
    }

    /// Has the session closed at the end.
    func adopt(
        _ name: String, _ make: (_ number: Int, _ transport: any Transport) -> SessionProbe
    ) throws -> SessionProbe {
        try monitor.change {
            let end = try freeEnd()
            let probe = make(sessions.count + 1, rig.makeTransport(end))
            sessions.append(probe)
            holders[end] = ObjectIdentifier(probe)
            used.append(
                (
                    "session \(probe.number), \(name)", end,
                    { [unowned self] in try run(on: probe.session.loop) { probe.faults.lastError } }
                ))
            return probe
        }
    }

    private func freeEnd() throws -> Int {
        let end = (0...).first { holders[$0] == nil } ?? 0
        guard end < rig.endsAtOnce else {
            throw Failure(words: "the check uses more ends than the wire has, \(rig.endsAtOnce)")
        }
        return end
    }

    /// The transport of this station or session is shut down, and another can take its end of the wire.
    func release(_ holder: AnyObject) {
        monitor.change { holders = holders.filter { $0.value != ObjectIdentifier(holder) } }
    }

    /// All transports made so far, with the last error of each.
    func usedTransports() -> [ConformanceReport.UsedTransport] {
        used.map { .init(name: $0.name, end: $0.end, lastError: (try? $0.lastError()) ?? nil) }
    }

    /// Starts another transport on the rig's network. Its pipes carry patterns that are checked, or `raw` bytes.
    func station(raw: Bool = false) throws -> Station {
        let loop = makeLoop()
        // In a call to one of them nothing may be told by any other on the same loop either.
        let callDepth = callDepths[ObjectIdentifier(loop)] ?? CallDepth()
        callDepths[ObjectIdentifier(loop)] = callDepth
        let station = try monitor.change {
            let end = try freeEnd()
            let station = Station(
                stations.count + 1, bench: self,
                transport: CheckedTransport(rig.makeTransport(end), callDepth: callDepth), loop: loop,
                isRaw: raw)
            stations.append(station)
            holders[end] = ObjectIdentifier(station)
            used.append(("transport \(station.number)", end, { station.lastError }))
            return station
        }
        try station.run { station.transport.start(on: loop, events: station) }
        return station
    }

    /// A station that listens.
    func listener(raw: Bool = false) throws -> Station {
        let station = try station(raw: raw)
        try station.advertise()
        try wait("listeningChanged after advertise") { !station.listening.isEmpty }
        return station
    }

    /// Opens a pipe from `client` to `server` and returns both ends.
    func connect(_ client: Station, _ server: Station) throws -> (dialled: PipeProbe, accepted: PipeProbe) {
        guard let address = server.listening.first else { throw Failure(words: "nobody listens") }
        let count = server.acceptedPipes.count
        let dial = try client.dial(address)
        try wait("a dial to a listener opens a pipe at both ends") {
            (client.dialledPipe(dial) != nil && server.acceptedPipes.count > count)
                || client.failure(dial) != nil
        }
        if let failure = client.failure(dial) {
            throw Failure(words: "a dial to a listener failed: \(failure.error)")
        }
        return (client.dialledPipe(dial)!, server.acceptedPipes[count])
    }

    /// Two stations and a pipe between them.
    func pair() throws -> (dialled: PipeProbe, accepted: PipeProbe) { try connect(station(), listener()) }

    func expect(_ condition: Bool, _ words: @autoclosure () -> String) throws {
        if !condition { throw Failure(words: words()) }
    }

    /// Waits until `isTrue`, for the rig's patience; what breaks the contract meanwhile ends the wait.
    func wait(_ what: @autoclosure () -> String, until isTrue: () -> Bool) throws {
        let isDecided = { isTrue() || !self.recordedViolations.isEmpty }
        switch rig.time {
        case .virtual(let loop): _ = try loop.run(until: isDecided, within: rig.patience)
        case .real: _ = monitor.wait(within: rig.patience, until: isDecided)
        }
        guard monitor.read(isTrue) else {
            throw Failure(words: "waited in vain for: \(what())")
        }
    }

    /// The same for what takes long on a busy machine, such as many bytes: waits on for as long as `progress` changes within
    /// the rig's patience.
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

    /// Lets a quiet time pass, in which everything that is still under way should happen.
    func settle() throws {
        switch rig.time {
        case .virtual(let loop): try loop.run(for: rig.quietTime)
        case .real:
            let gate = Gate()
            let quietTime = Moment.Span(rig.quietTime)
            for loop in loops {
                loop.execute { [monitor] in
                    loop.schedule(at: loop.now + quietTime) { monitor.change { gate.count += 1 } }
                }
            }
            guard monitor.wait(within: rig.patience, until: { gate.count == loops.count }) else {
                throw Failure(words: "a loop is stuck")
            }
        }
    }

    /// Runs `body` on `loop` and waits for it.
    func run<Result: Sendable>(on loop: any EventLoop, _ body: @escaping @Sendable () -> Result) throws
        -> Result
    {
        if loop.isCurrent { return body() }
        let box = Box<Result>()
        loop.execute { [monitor] in
            let result = body()
            monitor.change { box.value = result }
        }
        _ = monitor.wait(within: rig.patience) { box.value != nil }
        guard let result = monitor.read({ box.value }) else { throw Failure(words: "a call blocks the loop") }
        return result
    }

    /// Shuts down what still runs, and sees that it is quiet afterwards.
    func tearDown() {
        do {
            for probe in sessions {
                try run(on: probe.session.loop) { probe.session.die() }
                probe.noteClosed()
            }
            for station in stations { try station.shutdown() }
            try settle()
            for station in stations { station.noteBreach() }
        } catch let failure as Failure {
            violated(failure.words)
        } catch {
            violated("\(error)")
        }
        for loop in loops { rig.stopLoop(loop) }
        taskLoop?.shutdown()
        for station in stations { station.forgetPipes() }
        monitor.change {
            stations = []
            sessions = []
            used = []
        }
    }

    /// Guarded by the monitor.
    private final class Box<Value>: @unchecked Sendable {
        var value: Value?
    }

    private final class Gate: @unchecked Sendable {
        var count = 0
    }
}
