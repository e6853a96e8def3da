import NighLoop
import NighCore

/// One end of a measurement: sends and receives a run's messages, and reports its progress to the other end. Both ends
/// have one; `BenchHost` and `BenchClient` decide what to measure, and when.
///
/// Nothing holds a weak reference to it: that would make the access for every message much more expensive. `endRun`
/// releases the references to it.
///
/// `@unchecked Sendable`: used on the session's loop only.
final class BenchEndpoint: @unchecked Sendable {
    /// The interval between two progress reports.
    static let reportInterval = Moment.Span.milliseconds(250)

    let peer: PeerID
    let loop: UVEventLoop
    private let session: Session
    private(set) var order: BenchOrder?
    private var receiver: BenchReceiver?
    private var sender: BenchSender?
    private var begunAt = Moment.never
    private var timer: LoopTimer?

    /// Called with every valid control message.
    var whenMessage: (BenchMessage) -> Void = { _ in }
    /// Called when all messages of a run have arrived, with the count measured here and the one that the sender
    /// reports.
    var whenComplete: (_ received: BenchCount, _ sent: BenchCount) -> Void = { _, _ in }
    /// Called with each progress report that this end sends.
    var whenReported: (BenchProgress) -> Void = { _ in }
    /// Called when this end cannot continue; at most once.
    var whenFailed: (any Error) -> Void = { _ in }

    init(_ session: Session, loop: UVEventLoop, peer: PeerID) {
        self.session = session
        self.loop = loop
        self.peer = peer
    }

    /// Handles a message from the peer.
    @inline(__always)
    func receive(_ bytes: RawSpan, _ origin: MessageOrigin) {
        bytes.withUnsafeBytes { raw in
            if origin.lane == .bulk, let receiver, receiver.receiveExpected(raw) { return }
            receiveOther(raw, origin)
        }
    }

    private func receiveOther(_ raw: UnsafeRawBufferPointer, _ origin: MessageOrigin) {
        do throws(BenchBreach) {
            guard origin.lane == .bulk else { return try receiveControl(raw, isReliable: origin.isReliable) }
            guard let receiver else { throw BenchBreach("messages that were not ordered") }
            handle(try receiver.receive(raw))
        } catch {
            fail(error)
        }
    }

    private func receiveControl(_ raw: UnsafeRawBufferPointer, isReliable: Bool) throws(BenchBreach) {
        guard isReliable else { throw BenchBreach("an unreliable message") }
        whenMessage(try BenchMessage(raw))
    }

    private func handle(_ step: BenchReceiver.Step) {
        switch step {
        case .counted: break
        case .reportDue: report()
        case .complete(let received, let sent):
            guard let run = order?.run else { return }
            report()
            send(.outcome(run: run, received))
            whenComplete(received, sent)
        }
    }

    private func fail(_ error: any Error) {
        let whenFailed = whenFailed
        endRun()
        self.whenFailed = { _ in }
        whenFailed(error)
    }

    func send(_ message: BenchMessage) {
        do throws(NighError) {
            try session.trySend(message.bytes, to: peer)
        } catch {
            fail(error)
        }
    }

    /// Prepares to receive the messages of a run; `start` begins it.
    func prepare(_ order: BenchOrder, receives: Bool) {
        endRun()
        self.order = order
        receiver = receives ? BenchReceiver(order, loop: loop) : nil
    }

    /// Begins the run that was prepared.
    func start(sends: Bool) {
        guard let order else { return }
        begunAt = loop.now
        if sends {
            let sender = BenchSender(order, session: session, loop: loop, to: peer) { [self] in fail($0) }
            self.sender = sender
            sender.begin()
        }
        scheduleReport()
    }

    /// Passes on how far the other end has come.
    func peerReported(_ progress: BenchProgress) { sender?.reported(progress.received) }

    /// The amount that this end has sent between mark and end; nil before the end.
    var sent: BenchCount? { sender?.ended }

    /// Ends the run: nothing is sent or accepted any more.
    func endRun() {
        if let timer { loop.cancel(timer) }
        timer = nil
        sender?.cancel()
        (order, receiver, sender) = (nil, nil, nil)
    }

    private func scheduleReport() {
        timer = loop.schedule(at: loop.now + Self.reportInterval) { [self] in
            guard order != nil else { return }
            report()
            scheduleReport()
        }
    }

    /// How far this end has come.
    var progress: BenchProgress {
        BenchProgress(
            microseconds: begunAt == .never ? 0 : UInt64(max((loop.now - begunAt).nanoseconds / 1_000, 0)),
            sent: sender?.amount ?? BenchAmount(), received: receiver?.amount ?? BenchAmount())
    }

    private func report() {
        guard let order else { return }
        let progress = progress
        send(.progress(run: order.run, progress))
        whenReported(progress)
    }
}
