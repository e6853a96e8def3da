import JSONText
import Measuring
import Nigh
import NighCore

/// The side of a measurement that asks: greets the host, orders one run after the other, and pings meanwhile.
///
/// `@unchecked Sendable`: touched on the session's loop alone, but for the calls that are marked.
final class BenchClient: @unchecked Sendable {
    static let second = Results.Kind("second", plural: "seconds")

    private static let patienceWithAnswer = Moment.Span.seconds(10)
    /// For how long nothing may move in a run.
    private static let patienceWithRun = Moment.Span.seconds(30)
    private static let pauseBetweenPings = Moment.Span.milliseconds(100)
    private static let pauseBetweenIdlePings = Moment.Span.milliseconds(20)
    private static let mostPingsUnderWay = 32
    private static let idlePings = 25

    private let mine: CommandSession
    private let peer: Peer
    private let results: Results
    private let end: BenchEnd
    private var current: BenchRun?
    private var heard = BenchProgress(microseconds: 0, sent: .init(), received: .init())
    private var second = 0
    private var lastTick: (here: BenchProgress, there: BenchProgress)?
    private var begunAt = Moment.never
    private var movedAt = Moment.never
    private var underWay = 0
    private var timers: [LoopTimer] = []
    /// Who waits for the host now, and is told how that came out.
    private var waiting: ((Result<BenchMessage?, any Error>) -> Void)?
    private var fault: (any Error)?
    /// The way over which the conversation goes now.
    private var transport: String?

    private var loop: UVEventLoop { mine.loop }

    init(_ mine: CommandSession, peer: Peer, results: Results) {
        self.mine = mine
        self.peer = peer
        self.results = results
        transport = peer.transport
        end = BenchEnd(mine.session, loop: mine.loop, peer: peer.id)
        end.whenMessage = { [unowned self] message in
            do throws(BenchBreach) { try heard(message) } catch { fail(error) }
        }
        end.whenComplete = { [unowned self] received, sent in
            current?.down = BenchRun.Way(sent: sent, received: received)
            completeIfDone()
        }
        end.whenReported = { [unowned self] progress in current?.here.append(progress) }
        end.whenFailed = { [unowned self] in fail($0) }
    }

    // MARK: What the session says

    @inline(__always)
    func take(_ bytes: RawSpan, _ origin: MessageOrigin) {
        if origin.peer == peer.id { end.take(bytes, origin) }
    }

    func took(_ event: SessionEvent) {
        switch event {
        case .stateChanged(let peer, let before, let cause) where peer.id == self.peer.id:
            transport = peer.transport ?? transport
            if peer.state == .connected, before == .reconnecting { current?.reconnects += 1 }
            if peer.state == .disconnected {
                fail(cause ?? NighError(.conversing, .linkLost, peer: "\(peer.name)"))
            }
        case .peerChanged(let peer) where peer.id == self.peer.id: transport = peer.transport ?? transport
        default: break
        }
    }

    private func heard(_ message: BenchMessage) throws(BenchBreach) {
        switch message {
        case .welcome, .ready, .refused:
            guard let waiting else { throw BenchBreach("an answer that nobody waits for") }
            self.waiting = nil
            waiting(.success(message))
        case .progress(let run, let progress):
            guard let order = end.order, run == order.run else { return }
            if progress.received != heard.received { movedAt = loop.now }
            heard = progress
            current?.there.append(progress)
            end.heard(progress)
        case .outcome(let run, let received):
            guard run == current?.order.run, current?.order.direction.goesUp == true, current?.up == nil,
                let sent = end.sent, sent.amount == received.amount
            else { throw BenchBreach("an outcome that cannot be") }
            current?.up = BenchRun.Way(sent: sent, received: received)
            completeIfDone()
        case .hello, .order: throw BenchBreach("words of a guest")
        }
    }

    private func fail(_ error: any Error) {
        fault = fault ?? error
        endTimers()
        end.endRun()
        let waiting = waiting
        self.waiting = nil
        waiting?(.failure(error))
    }

    // MARK: Asking; callable from any task

    /// Waits for an answer of the host's, or for the end of what it was asked to do.
    private func answer(
        within patience: Moment.Span?, asking: @escaping @Sendable () -> Void
    ) async throws -> BenchMessage? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                loop.execute { [self] in
                    if let fault { return continuation.resume(throwing: fault) }
                    waiting = { continuation.resume(with: $0) }
                    if Task.isCancelled { return fail(CancellationError()) }
                    if let patience {
                        let timer = loop.schedule(at: loop.now + patience) { [self] in
                            fail(NighError(.conversing, .timedOut, peer: "\(peer.name)"))
                        }
                        let told = waiting
                        waiting = { [loop] result in
                            loop.cancel(timer)
                            told?(result)
                        }
                    }
                    asking()
                }
            }
        } onCancel: {
            loop.execute { [self] in fail(CancellationError()) }
        }
    }

    /// Says hello; returns what the host takes and what it runs on.
    func greet() async throws -> (BenchLimits, software: String) {
        let versions = BenchMessage.version...BenchMessage.version
        let answer = try await answer(within: Self.patienceWithAnswer) { [self] in
            end.say(.hello(versions: versions, software: Software.description))
        }
        switch answer {
        case .welcome(let version, let limits, let software) where versions.contains(version):
            return (limits, software)
        case .refused(_, let words): throw Refused(words: words)
        default: throw BenchBreach("no answer to a hello")
        }
    }

    /// The host does not do what it was asked for.
    struct Refused: Error, CustomStringConvertible {
        let words: String

        var description: String { "the other side refuses: \(words)" }
    }

    /// Measures once.
    func measure(_ order: BenchOrder) async throws -> BenchRun {
        let answer = try await answer(within: Self.patienceWithAnswer) { [self] in
            // What comes may overtake the answer: it has a lane of its own.
            end.prepare(order, receives: order.direction.goesDown)
            end.say(.order(order))
        }
        if case .refused(_, let words) = answer { throw Refused(words: words) }
        guard case .ready(order.run) = answer else { throw BenchBreach("no answer to an order") }
        _ = try await self.answer(within: nil) { [self] in begin(order) }
        return await mine.onLoop { [self] _ in
            var run = current ?? BenchRun(order: order)
            run.transport = transport
            current = nil
            return run
        }
    }

    /// The round trip while nothing else is going on.
    func measureIdle() async throws -> RoundTripRecord {
        var record = RoundTripRecord()
        for _ in 0..<Self.idlePings {
            record.add(try await mine.session.ping(peer.id))
            try await Task.sleep(for: Self.pauseBetweenIdlePings.duration)
        }
        return record
    }

    // MARK: A run

    private func begin(_ order: BenchOrder) {
        current = BenchRun(order: order)
        heard = BenchProgress(microseconds: 0, sent: .init(), received: .init())
        (second, lastTick, underWay) = (0, nil, 0)
        (begunAt, movedAt) = (loop.now, loop.now)
        end.go(sends: order.direction.goesUp)
        ping()
        tick()
        completeIfDone()
    }

    private func completeIfDone() {
        guard let run = current, run.up != nil || !run.order.direction.goesUp,
            run.down != nil || !run.order.direction.goesDown
        else { return }
        endTimers()
        end.endRun()
        let waiting = waiting
        self.waiting = nil
        waiting?(.success(nil))
    }

    private func endTimers() {
        for timer in timers { loop.cancel(timer) }
        timers = []
    }

    private func ping() {
        guard let run = current?.order.run else { return }
        if underWay < Self.mostPingsUnderWay {
            underWay += 1
            let at = loop.now - begunAt
            mine.session.ping(peer.id) { [self] result in answered(result, at: at, in: run) }
        }
        schedule(after: Self.pauseBetweenPings) { [self] in ping() }
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

    /// Keeps the timers of a run, so that they end with it.
    private func schedule(after span: Moment.Span, _ work: @escaping @Sendable () -> Void) {
        if timers.count > 8 { timers.removeFirst(timers.count - 8) }
        timers.append(loop.schedule(at: loop.now + span, work))
    }

    private func tick() {
        guard let order = current?.order else { return }
        let now = (here: end.progress, there: heard)
        if let lastTick {
            second += 1
            tell(order, from: lastTick, to: now)
            if now.here.received != lastTick.here.received { movedAt = loop.now }
            if loop.now >= movedAt + Self.patienceWithRun {
                return fail(NighError(.conversing, .silent, peer: "\(peer.name)"))
            }
        }
        lastTick = now
        schedule(after: .seconds(1)) { [self] in tick() }
    }

    private func tell(
        _ order: BenchOrder, from before: (here: BenchProgress, there: BenchProgress),
        to now: (here: BenchProgress, there: BenchProgress)
    ) {
        let (here, there) = (now.here - before.here, now.there - before.there)
        let roundTrip = current?.echoes.last?.roundTrip
        results.tell(
            Self.second,
            [
                .init("run", .integer(Int(order.run))), .init("second", .integer(second)),
                .init("here", here.json), .init("there", there.json),
                .init(
                    "round_trip_ms",
                    roundTrip.map { Figures.json(nanoseconds: Double($0.nanoseconds)) } ?? .null),
            ], words: [])
        guard results.live.isSeen else { return }
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

/// Bytes a second.
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
    /// How fast it went from `right` to `left`.
    static func - (left: BenchProgress, right: BenchProgress) -> BenchPace {
        let seconds = Double(left.microseconds) / 1e6 - Double(right.microseconds) / 1e6
        guard seconds > 0 else { return BenchPace(sent: 0, received: 0) }
        return BenchPace(
            sent: Double((left.sent - right.sent).bytes) / seconds,
            received: Double((left.received - right.received).bytes) / seconds)
    }
}
