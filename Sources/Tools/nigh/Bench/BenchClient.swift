import JSONText
import Measuring
import NighLoop
import NighCore
import NighSystem

/// The guest's side of a measurement: greets the host, orders one run after the other, and pings meanwhile.
///
/// `@unchecked Sendable`: used on the session's loop only, except for the calls that are marked.
final class BenchClient: @unchecked Sendable {
    static let second = Results.Kind("second", plural: "seconds")

    private static let answerTimeout = Moment.Span.seconds(10)
    /// How long nothing may move in a run.
    private static let stallTimeout = Moment.Span.seconds(30)
    private static let pauseBetweenPings = Moment.Span.milliseconds(100)
    private static let pauseBetweenIdlePings = Moment.Span.milliseconds(20)
    private static let mostPingsUnderWay = 32
    private static let idlePings = 25
    private static let idlePackets = 100
    /// How long packets may be blocked before none are measured.
    private static let packetPatience = Moment.Span.seconds(10)

    private let commandSession: CommandSession
    private let peer: Peer
    private let results: Results
    private let endpoint: BenchEndpoint
    private var current: BenchRun?
    private var peerProgress = BenchProgress(microseconds: 0, sent: .init(), received: .init())
    private var second = 0
    private var lastTick: (here: BenchProgress, there: BenchProgress)?
    private var begunAt = Moment.never
    private var movedAt = Moment.never
    private var underWay = 0
    /// The datagrams that are measured now.
    private var trips: PacketTrips?
    private var packetNumber = 0
    /// The timers of the run.
    private var timers: [Repeated: LoopTimer] = [:]
    /// The completion of the step that waits for the host now.
    private var waiting: ((Result<BenchMessage?, any Error>) -> Void)?
    private var fault: (any Error)?
    /// The transport that carries the conversation now.
    private var transport: String?

    private var loop: UVEventLoop { commandSession.loop }

    /// A task that a run repeats.
    private enum Repeated: Hashable {
        case ping
        case packet
        case tick
    }

    init(_ commandSession: CommandSession, peer: Peer, results: Results) {
        self.commandSession = commandSession
        self.peer = peer
        self.results = results
        transport = peer.transport
        endpoint = BenchEndpoint(commandSession.session, loop: commandSession.loop, peer: peer.id)
        endpoint.whenMessage = { [unowned self] message in
            do throws(BenchBreach) { try handle(message) } catch { fail(error) }
        }
        endpoint.whenComplete = { [unowned self] received, sent in
            current?.down = BenchRun.DirectionResult(sent: sent, received: received)
            completeIfDone()
        }
        endpoint.whenReported = { [unowned self] progress in current?.add(here: progress) }
        endpoint.whenFailed = { [unowned self] in fail($0) }
    }

    // MARK: Events

    @inline(__always)
    func receive(_ bytes: RawSpan, _ origin: MessageOrigin) {
        if origin.peer == peer.id { endpoint.receive(bytes, origin) }
    }

    func handle(_ event: SessionEvent) {
        switch event {
        case .connected(let peer) where peer == self.peer, .peerChanged(let peer) where peer == self.peer:
            transport = peer.transport ?? transport
        case .reconnected(let peer) where peer == self.peer:
            transport = peer.transport ?? transport
            current?.reconnects += 1
        case .disconnected(let peer, let cause) where peer == self.peer: fail(cause)
        default: break
        }
    }

    private func handle(_ message: BenchMessage) throws(BenchBreach) {
        switch message {
        case .welcome, .ready, .refused:
            guard let waiting else { throw BenchBreach("an unexpected answer") }
            self.waiting = nil
            waiting(.success(message))
        case .progress(let run, let progress):
            guard let order = endpoint.order, run == order.run else { return }
            if progress.received != peerProgress.received { movedAt = loop.now }
            peerProgress = progress
            current?.add(there: progress)
            endpoint.peerReported(progress)
        case .outcome(let run, let received):
            guard run == current?.order.run, current?.order.direction.goesUp == true, current?.up == nil,
                let sent = endpoint.sent, sent.amount == received.amount
            else { throw BenchBreach("an outcome that does not match the run") }
            current?.up = BenchRun.DirectionResult(sent: sent, received: received)
            completeIfDone()
        case .hello, .order: throw BenchBreach("a message that only a guest may send")
        }
    }

    private func fail(_ error: any Error) {
        fault = fault ?? error
        endTimers()
        endpoint.endRun()
        let waiting = waiting
        self.waiting = nil
        waiting?(.failure(error))
    }

    // MARK: Requests; callable from any task

    /// Calls `request`, then waits for the host's answer. Returns nil if the run ends first.
    private func answer(
        within timeout: Moment.Span?, request: @escaping @Sendable () -> Void
    ) async throws -> BenchMessage? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                loop.execute { [self] in
                    if let fault { return continuation.resume(throwing: fault) }
                    waiting = { continuation.resume(with: $0) }
                    if Task.isCancelled { return fail(CancellationError()) }
                    if let timeout {
                        let timer = loop.schedule(at: loop.now + timeout) { [self] in
                            fail(NighError(.conversing, .timedOut, peer: "\(peer.name)"))
                        }
                        let previous = waiting
                        waiting = { [loop] result in
                            loop.cancel(timer)
                            previous?(result)
                        }
                    }
                    request()
                }
            }
        } onCancel: {
            loop.execute { [self] in fail(CancellationError()) }
        }
    }

    /// Sends the hello. Returns the host's limits and its software.
    func sendHello() async throws -> (BenchLimits, software: String) {
        let versions = BenchMessage.version...BenchMessage.version
        let answer = try await answer(within: Self.answerTimeout) { [self] in
            endpoint.send(.hello(versions: versions, software: Software.description))
        }
        switch answer {
        case .welcome(let version, let limits, let software) where versions.contains(version):
            return (limits, software)
        case .refused(_, let reason): throw Refused(reason: reason)
        default: throw BenchBreach("an answer that does not fit the hello")
        }
    }

    /// The error that the host refused a request.
    struct Refused: Error, CustomStringConvertible {
        let reason: String

        var description: String { "the host refused: \(reason)" }
    }

    /// Measures one run.
    func measure(_ order: BenchOrder, withPackets hasPackets: Bool) async throws -> BenchRun {
        let answer = try await answer(within: Self.answerTimeout) { [self] in
            // Messages may arrive before the answer, because they have a lane of their own.
            endpoint.prepare(order, receives: order.direction.goesDown)
            endpoint.send(.order(order))
        }
        if case .refused(_, let reason) = answer { throw Refused(reason: reason) }
        guard case .ready(order.run) = answer else {
            throw BenchBreach("an answer that does not fit the order")
        }
        _ = try await self.answer(within: nil) { [self] in begin(order, hasPackets: hasPackets) }
        return await commandSession.onLoop { [self] _ in
            var run = current ?? BenchRun(order: order)
            run.transport = transport
            run.packets = takeTrips(patience: PacketTrips.patience)
            current = nil
            return run
        }
    }

    /// Measures the round trip without load.
    func measureIdle() async throws -> RoundTripRecord {
        var record = RoundTripRecord()
        for _ in 0..<Self.idlePings {
            record.add(try await peer.ping())
            try await Task.sleep(for: Self.pauseBetweenIdlePings.duration)
        }
        return record
    }

    /// Measures datagrams without load. Fails if there are none.
    func measureIdlePackets() async throws -> PacketTrips {
        // The first answer says that packets pass. On a busy machine the path is tried again before one is in time.
        let end = LoopThread.now + Self.packetPatience
        while true {
            do throws(NighError) {
                _ = try await commandSession.session.ping(peer.id, over: .packets)
                break
            } catch {
                if error.cause == .timedOut { break }
                guard error.cause == .unreachable, LoopThread.now < end else { throw error }
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        await commandSession.onLoop { [self] _ in trips = PacketTrips() }
        for _ in 0..<Self.idlePackets {
            loop.execute { [self] in sendPacket() }
            try await Task.sleep(for: PacketTrips.pause.duration)
        }
        for _ in 0..<Self.idlePackets {
            if await commandSession.onLoop({ [self] _ in trips?.lost == 0 }) { break }
            try await Task.sleep(for: .milliseconds(10))
        }
        return await commandSession.onLoop { [self] _ in takeTrips(patience: .zero) ?? PacketTrips() }
    }

    // MARK: A run

    private func begin(_ order: BenchOrder, hasPackets: Bool) {
        current = BenchRun(order: order)
        peerProgress = BenchProgress(microseconds: 0, sent: .init(), received: .init())
        (second, lastTick, underWay) = (0, nil, 0)
        (begunAt, movedAt) = (loop.now, loop.now)
        endpoint.start(sends: order.direction.goesUp)
        ping()
        if hasPackets {
            schedule(.packet, after: .milliseconds(Int64(order.warmUp))) { [self] in sendPackets() }
        }
        tick()
        completeIfDone()
    }

    private func completeIfDone() {
        guard let run = current, run.up != nil || !run.order.direction.goesUp,
            run.down != nil || !run.order.direction.goesDown
        else { return }
        endTimers()
        endpoint.endRun()
        let waiting = waiting
        self.waiting = nil
        waiting?(.success(nil))
    }

    private func endTimers() {
        for timer in timers.values { loop.cancel(timer) }
        timers = [:]
    }

    private func ping() {
        guard let run = current?.order.run else { return }
        if underWay < Self.mostPingsUnderWay {
            underWay += 1
            let at = loop.now - begunAt
            commandSession.session.ping(peer.id) { [self] result in answered(result, at: at, in: run) }
        }
        schedule(.ping, after: Self.pauseBetweenPings) { [self] in ping() }
    }

    private func answered(_ result: Result<Duration, NighError>, at moment: Moment.Span, in run: UInt16) {
        guard let order = current?.order, order.run == run else { return }
        underWay -= 1
        guard moment >= .milliseconds(Int64(order.warmUp)) else { return }
        switch result {
        case .success(let roundTrip):
            current?.roundTrips.add(roundTrip)
            current?.echoes.append(.init(at: moment, roundTrip: Moment.Span(roundTrip)))
        case .failure: current?.pingsLost += 1
        }
    }

    private func sendPackets() {
        if trips == nil { trips = PacketTrips() }
        sendPacket()
        schedule(.packet, after: PacketTrips.pause) { [self] in sendPackets() }
    }

    private func sendPacket() {
        packetNumber += 1
        let number = packetNumber
        trips?.send(number, at: loop.now)
        commandSession.session.ping(peer.id, over: .packets, payload: PacketTrips.payload) { [self] result in
            switch result {
            case .success(let roundTrip): trips?.receive(number, after: roundTrip)
            case .failure(let error):
                if case .limit = error.cause { trips?.withdraw(number) }
            }
        }
    }

    /// Ends a measurement of packets, and returns it.
    private func takeTrips(patience: Moment.Span) -> PacketTrips? {
        trips?.finish(at: loop.now, patience: patience)
        return trips.take()
    }

    /// Schedules `work` and keeps the timer, which is cancelled at the end of the run.
    private func schedule(
        _ what: Repeated, after span: Moment.Span, _ work: @escaping @Sendable () -> Void
    ) {
        timers[what] = loop.schedule(at: loop.now + span, work)
    }

    private func tick() {
        guard let order = current?.order else { return }
        let now = (here: endpoint.progress, there: peerProgress)
        if let lastTick {
            second += 1
            report(order, from: lastTick, to: now)
            if now.here.received != lastTick.here.received { movedAt = loop.now }
            if loop.now >= movedAt + Self.stallTimeout {
                return fail(NighError(.conversing, .silent, peer: "\(peer.name)"))
            }
        }
        lastTick = now
        schedule(.tick, after: .seconds(1)) { [self] in tick() }
    }

    private func report(
        _ order: BenchOrder, from before: (here: BenchProgress, there: BenchProgress),
        to now: (here: BenchProgress, there: BenchProgress)
    ) {
        let (here, there) = (now.here - before.here, now.there - before.there)
        let roundTrip = current?.echoes.last?.roundTrip
        results.report(
            Self.second,
            [
                .init("run", .integer(Int(order.run))), .init("second", .integer(second)),
                .init("here", here.json), .init("there", there.json),
                .init(
                    "round_trip_ms",
                    roundTrip.map { Figures.json(nanoseconds: Double($0.nanoseconds)) } ?? .null),
            ], lines: [])
        guard results.live.isVisible else { return }
        var line = Line("\(order.direction.rawValue), \(Figures.size(Int(order.size))), \(second) s", .strong)
        if order.direction.goesUp {
            line = line + Line("  sent \(Figures.rate(here.sent)), there \(Figures.rate(there.received))")
        }
        if order.direction.goesDown {
            line =
                line
                + Line("  received \(Figures.rate(here.received)), sent there \(Figures.rate(there.sent))")
        }
        if let roundTrip {
            line = line + Line("  ping \(Figures.span(nanoseconds: Double(roundTrip.nanoseconds)))", .faint)
        }
        results.live.show([line])
    }
}

/// The rates of one end, in bytes per second.
struct BenchPace: Hashable, Sendable {
    let sent: Double
    let received: Double

    var json: JSON {
        [
            "sent_bytes_per_second": .number(sent.rounded()),
            "received_bytes_per_second": .number(received.rounded()),
        ]
    }
}

extension BenchProgress {
    /// The rates between the report `right` and the later report `left`.
    static func - (left: BenchProgress, right: BenchProgress) -> BenchPace {
        let seconds = Double(left.microseconds) / 1e6 - Double(right.microseconds) / 1e6
        guard seconds > 0 else { return BenchPace(sent: 0, received: 0) }
        return BenchPace(
            sent: Double((left.sent - right.sent).bytes) / seconds,
            received: Double((left.received - right.received).bytes) / seconds)
    }
}
