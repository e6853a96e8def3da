import NighLoop
import NighCore

/// The host's side of a measurement: carries out the orders of one guest, within its limits. Calls `whenFailed` when
/// the guest breaks the protocol or falls silent.
///
/// Nothing holds a weak reference to it, as with `BenchEndpoint`; `stop` releases the references to it.
///
/// `@unchecked Sendable`: used on the session's loop only.
final class BenchHost: @unchecked Sendable {
    /// The measurements of one run.
    struct Run {
        let order: BenchOrder
        /// The amount that arrived here, measured by this side's clock.
        var up: BenchCount?
        /// The amount that arrived at the guest, as the guest reports it.
        var down: BenchCount?

        var isComplete: Bool {
            (up != nil || !order.direction.goesUp) && (down != nil || !order.direction.goesDown)
        }
    }

    /// How long the host waits for a guest that sends no order and makes no progress in a run.
    private static let timeout = Moment.Span.seconds(30)
    private static let checkInterval = Moment.Span.seconds(1)

    private let endpoint: BenchEndpoint
    private var hasReceivedHello = false
    private var lastRun: UInt16 = 0
    private var running: Run?
    private var activeAt: Moment
    private var lastAmount = BenchAmount()
    private var timer: LoopTimer?
    private let whenMeasured: (Run) -> Void
    private let whenFailed: (any Error) -> Void

    private var loop: UVEventLoop { endpoint.loop }

    /// - Parameter whenFailed: called once, when the conversation with the guest should end.
    init(
        _ session: Session, loop: UVEventLoop, guest: PeerID, whenMeasured: @escaping (Run) -> Void,
        whenFailed: @escaping (any Error) -> Void
    ) {
        endpoint = BenchEndpoint(session, loop: loop, peer: guest)
        activeAt = loop.now
        self.whenMeasured = whenMeasured
        self.whenFailed = whenFailed
        endpoint.whenMessage = { [unowned self] message in
            do throws(BenchBreach) { try handle(message) } catch { fail(error) }
        }
        endpoint.whenComplete = { [unowned self] received, _ in
            running?.up = received
            completeIfDone()
        }
        endpoint.whenFailed = { [unowned self] in fail($0) }
        watch()
    }

    @inline(__always)
    func receive(_ bytes: RawSpan, _ origin: MessageOrigin) { endpoint.receive(bytes, origin) }

    /// Ends the run and the timer, when the guest has left or should leave.
    func stop() {
        endpoint.endRun()
        if let timer { loop.cancel(timer) }
        timer = nil
    }

    private func fail(_ error: any Error) {
        stop()
        whenFailed(error)
    }

    private func handle(_ message: BenchMessage) throws(BenchBreach) {
        switch message {
        case .hello(let versions, _):
            guard !hasReceivedHello else { throw BenchBreach("a second hello") }
            guard versions.contains(BenchMessage.version) else {
                return endpoint.send(
                    .refused(run: 0, reason: "only version \(BenchMessage.version) is supported here"))
            }
            hasReceivedHello = true
            activeAt = loop.now
            endpoint.send(
                .welcome(version: BenchMessage.version, limits: .own, software: Software.description))
        case .order(let order): try accept(order)
        case .progress(let run, let progress):
            guard run <= lastRun else { throw BenchBreach("progress of a run that was not ordered") }
            guard run == running?.order.run else { return }
            if progress.received != lastAmount {
                lastAmount = progress.received
                activeAt = loop.now
            }
            endpoint.peerReported(progress)
        case .outcome(let run, let count):
            guard run == running?.order.run, running?.order.direction.goesDown == true, running?.down == nil
            else {
                throw BenchBreach("an unexpected outcome")
            }
            running?.down = count
            completeIfDone()
        case .welcome, .ready, .refused: throw BenchBreach("a message that only a host may send")
        }
    }

    private func accept(_ order: BenchOrder) throws(BenchBreach) {
        guard hasReceivedHello, running == nil else { throw BenchBreach("an order at the wrong time") }
        guard order.run == lastRun + 1, order.run < .max else {
            throw BenchBreach("an order with the wrong run number")
        }
        lastRun = order.run
        activeAt = loop.now
        if let reason = BenchLimits.own.refusal(of: order) {
            return endpoint.send(.refused(run: order.run, reason: reason))
        }
        running = Run(order: order)
        lastAmount = BenchAmount()
        endpoint.prepare(order, receives: order.direction.goesUp)
        endpoint.send(.ready(run: order.run))
        endpoint.start(sends: order.direction.goesDown)
    }

    private func completeIfDone() {
        guard let run = running, run.isComplete else { return }
        activeAt = loop.now
        running = nil
        endpoint.endRun()
        whenMeasured(run)
    }

    private func watch() {
        timer = loop.schedule(at: loop.now + Self.checkInterval) { [self] in
            let received = endpoint.progress.received
            if running?.order.direction.goesUp == true, running?.up == nil, received != lastAmount {
                lastAmount = received
                activeAt = loop.now
            }
            guard loop.now < activeAt + Self.timeout else {
                return fail(BenchBreach("no order and no progress for 30 s"))
            }
            watch()
        }
    }
}
