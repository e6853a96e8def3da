import Nigh
import NighCore

/// One end of a measurement: sends and receives a run's messages, and tells the other end how far it has come. Both ends have one;
/// what is to be measured, and when, is for `BenchHost` and `BenchClient` to say.
///
/// Nobody refers to it weakly: that would make every message's look at it much dearer. `endRun` lets go of what refers
/// to it.
///
/// `@unchecked Sendable`: touched on the session's loop alone.
final class BenchEnd: @unchecked Sendable {
    /// From one report of how far a run has come to the next.
    static let reportInterval = Moment.Span.milliseconds(250)

    let peer: PeerID
    let loop: UVEventLoop
    private let session: Session
    private(set) var order: BenchOrder?
    // Looked at for each message, and not checked for overlapping access then.
    @exclusivity(unchecked) private var receiver: BenchReceiver?
    private var sender: BenchSender?
    private var begunAt = Moment.never
    private var timer: LoopTimer?

    /// Called with every message of the main lane that can be one.
    var whenMessage: (BenchMessage) -> Void = { _ in }
    /// Called when all of a run has come: what was measured here, and what the sender says.
    var whenComplete: (_ received: BenchCount, _ sent: BenchCount) -> Void = { _, _ in }
    /// Called with each report of this end's own.
    var whenReported: (BenchProgress) -> Void = { _ in }
    /// Called when it cannot go on; nothing follows that.
    var whenFailed: (any Error) -> Void = { _ in }

    init(_ session: Session, loop: UVEventLoop, peer: PeerID) {
        self.session = session
        self.loop = loop
        self.peer = peer
    }

    /// Takes a message of the peer's.
    @inline(__always)
    func take(_ bytes: RawSpan, _ origin: MessageOrigin) {
        bytes.withUnsafeBytes { raw in
            if origin.lane == .bulk, let receiver, receiver.takeOrdinary(raw) { return }
            takeOther(raw, origin)
        }
    }

    private func takeOther(_ raw: UnsafeRawBufferPointer, _ origin: MessageOrigin) {
        do throws(BenchBreach) {
            guard origin.lane == .bulk else { return try takeWord(raw, isReliable: origin.isReliable) }
            guard let receiver else { throw BenchBreach("messages that were not asked for") }
            took(try receiver.take(raw))
        } catch {
            fail(error)
        }
    }

    private func takeWord(_ raw: UnsafeRawBufferPointer, isReliable: Bool) throws(BenchBreach) {
        guard isReliable else { throw BenchBreach("an unreliable message") }
        whenMessage(try BenchMessage(raw))
    }

    private func took(_ step: BenchReceiver.Step) {
        switch step {
        case .counted: break
        case .reportDue: report()
        case .complete(let received, let sent):
            guard let run = order?.run else { return }
            report()
            say(.outcome(run: run, received))
            whenComplete(received, sent)
        }
    }

    private func fail(_ error: any Error) {
        let whenFailed = whenFailed
        endRun()
        self.whenFailed = { _ in }
        whenFailed(error)
    }

    func say(_ message: BenchMessage) {
        do throws(NighError) {
            try session.trySend(message.bytes, to: peer)
        } catch {
            fail(error)
        }
    }

    /// Gets ready for what comes in the run; `go` follows.
    func prepare(_ order: BenchOrder, receives: Bool) {
        endRun()
        self.order = order
        receiver = receives ? BenchReceiver(order, loop: loop) : nil
    }

    /// Begins the run that was prepared.
    func go(sends: Bool) {
        guard let order else { return }
        begunAt = loop.now
        if sends {
            let sender = BenchSender(order, session: session, loop: loop, to: peer) { [self] in fail($0) }
            self.sender = sender
            sender.begin()
        }
        scheduleReport()
    }

    /// The other end has come so far.
    func heard(_ progress: BenchProgress) { sender?.reported(progress.received) }

    /// What this end has sent between mark and end, once it has.
    var sent: BenchCount? { sender?.ended }

    /// Nothing is sent or taken any more.
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
        say(.progress(run: order.run, progress))
        whenReported(progress)
    }
}
