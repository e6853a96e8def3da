import CBenchmark
import Nigh

/// Sends each message to all who have come.
///
/// `@unchecked Sendable`: touched on the loop only.
final class Publisher: @unchecked Sendable {
    private let setting: Setting
    private let session: Session
    private let sending: Sending
    private let end = End()
    private var peers: [PeerID] = []

    init(_ setting: Setting) {
        self.setting = setting
        session = setting.session(.server)
        sending = Sending(setting, session)
    }

    func serve() {
        setting.accept(
            with: session, onMessage: { [end] _, _ in end.reach() },
            connected: { [self] peer in
                peers.append(peer)
                if peers.count == setting.peers { sending.begin(to: peers) }
            })
        end.wait()
        sending.report()
        benchmark_wait_for_other_side()
    }
}

/// Many sessions in one process, on one loop, each connected with the publisher.
///
/// `@unchecked Sendable`: touched on the loop only.
final class Subscribers: @unchecked Sendable {
    private let setting: Setting
    private let end = End()
    private let tally: UnsafeMutablePointer<benchmark_tally>
    private let sessions: [Session]

    init(_ setting: Setting) {
        self.setting = setting
        tally = Receipt.tally(peers: setting.peers)
        sessions = (0..<setting.peers).map { _ in setting.session(.client) }
    }

    func connect() {
        call(0)
        end.wait()
        benchmark_wait_for_other_side()
    }

    /// One after the other, so that nobody has to wait for an invitation that stands behind a thousand.
    private func call(_ index: Int) {
        guard index < sessions.count else { return }
        let session = sessions[index]
        let receipt = Receipt(size: setting.size, tally: tally)
        let take: @Sendable (UnsafeRawBufferPointer, PeerID) -> Void = {
            [self] bytes, peer in
            guard receipt.take(bytes) else { return }
            benchmark_tally_report(tally)
            Setting.demand { () throws(NighError) in try session.trySend([1], to: peer) }
            end.reach()
        }
        let handler: MessageHandler = { bytes, origin in bytes.withUnsafeBytes { take($0, origin.peer) } }
        setting.call(with: session, onMessage: setting.door == .handler ? handler : nil) { [self] _ in
            call(index + 1)
        }
        setting.read(session) { message in message.payload.withUnsafeBytes { take($0, message.peer) } }
    }
}

/// Calls, says one thing, hears one thing, and leaves; again and again.
///
/// `@unchecked Sendable`: touched on the loop only.
final class Caller: @unchecked Sendable {
    private let setting: Setting
    private let session: Session
    private let end = End()
    private let outgoing: Outgoing
    private let payload: UnsafePointer<UInt8>
    private var trips = benchmark_trips()
    private var begunAt: UInt64 = 0

    init(_ setting: Setting) {
        self.setting = setting
        session = setting.session(.client)
        outgoing = Outgoing(session, size: setting.size)
        payload = UnsafePointer(benchmark_payload(setting.size, 0))
        var options = setting.options
        benchmark_trips_begin(&trips, &options)
    }

    func connect() {
        session.start(
            onEvent: { _ in },
            onMessage: { [self] _, origin in
                benchmark_trips_add(&trips, benchmark_now() - begunAt)
                session.disconnect(origin.peer) { [self] _ in call() }
            })
        session.loop.execute { [self] in call() }
        end.wait()
    }

    private func call() {
        guard trips.sample_count < setting.options.count else {
            benchmark_trips_report(&trips)
            return end.reach()
        }
        begunAt = benchmark_now()
        session.invite(at: setting.address()) { [self] result in
            outgoing.post(payload, to: Setting.demand { () throws(NighError) in try result.get() })
        }
    }
}
