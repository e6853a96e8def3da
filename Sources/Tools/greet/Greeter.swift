import Nigh
import NighRecord
import ProgramLife

/// A session that invites everybody it finds, says hello to everybody it is connected to, and tells what happens.
///
/// `@unchecked Sendable`: what changes is touched on the session's loop alone.
final class Greeter: @unchecked Sendable {
    let name: String
    let session: Session
    let loop: UVEventLoop
    private let output: LineOutput
    private let transports: [any Transport]
    private let recorder: LinkRecorder?
    /// Called on the loop when somebody's greeting has come, and the way there and back was measured.
    private let whenGreeted: @Sendable () -> Void

    private struct Acquaintance {
        var name = ""
        var isSeen = false
        var wasHeard = false
        var wasMeasured = false
        /// It has said goodbye: it is not to be asked again before it has gone and come back.
        var hasLeft = false
        var failures = 0

        mutating func beginAnew() {
            (wasHeard, wasMeasured, hasLeft, failures) = (false, false, false, 0)
        }
    }

    private var acquaintances: [PeerID: Acquaintance] = [:]
    private var isLeaving = false

    /// The pause after a failure; doubles with each one.
    private static let firstPause = Moment.Span.seconds(2)
    private static let mostDoublings = 4

    init(
        _ name: DisplayName, role: SessionRole, service: ServiceName, identity: Identity,
        transports: [any Transport], output: LineOutput, recorder: LinkRecorder? = nil,
        whenGreeted: @escaping @Sendable () -> Void = {}
    ) {
        self.name = name.description
        self.output = output
        self.transports = transports
        self.whenGreeted = whenGreeted
        self.recorder = recorder
        loop = UVEventLoop()
        var configuration = SessionConfiguration(service: service, name: name, role: role)
        configuration.observer = recorder
        session = Session(configuration, identity: identity, transports: transports, loop: loop)
    }

    func start() {
        say("is here as \(session.id.short), over \(transports.map(\.scheme).joined(separator: ", "))")
        session.start(
            onEvent: { [self] in took($0) },
            onMessage: { [self] bytes, origin in
                heard(bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }, from: origin.peer)
            })
    }

    /// Says goodbye to everybody, and returns when that is done.
    func leave() async {
        say("leaves")
        loop.execute { self.isLeaving = true }
        await session.close()
        loop.shutdown()
        if let error = recorder?.finish() { say("has trouble: \(error)") }
        say("has left")
    }

    /// Calls whoever listens at `address`; tries again where that fails.
    func call(_ address: TransportAddress, failures: Int = 0) {
        if failures == 0 { say("calls \(address)") }
        session.invite(at: address, context: Self.question) { [self] result in
            guard case .failure(let error) = result, !isLeaving else { return }
            let pause = pause(after: failures, error)
            say("could not reach \(address): \(error); tries again in \(pause.nanoseconds / 1_000_000_000) s")
            loop.schedule(at: loop.now + pause) { [self] in
                if !isLeaving { call(address, failures: failures + 1) }
            }
        }
    }

    /// What the transports think is wrong.
    func explain() async {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                for transport in transports {
                    for line in transport.diagnose() where line.verdict != .pass {
                        let advice = line.advice.map { "; \($0)" } ?? ""
                        say("finds wrong with \(transport.scheme): \(line.subject): \(line.finding)\(advice)")
                    }
                }
                continuation.resume()
            }
        }
    }

    private static let question = Array("Shall we talk?".utf8)

    private func say(_ words: String) { output.line("\(name)  \(words)") }

    // MARK: What happens

    private func took(_ event: SessionEvent) {
        switch event {
        case .stateChanged(let peer, let before, let cause): moved(peer, from: before, cause)
        case .invited(let invitation):
            let words = String(decoding: invitation.context, as: UTF8.self)
            say("is invited by \(invitation.peer.name) over \(invitation.transport): \"\(words)\"")
            session.accept(invitation)
        case .suspected(let peer, true): say("has not heard from \(nameOf(peer)) for a while")
        case .suspected(let peer, false): say("hears from \(nameOf(peer)) again")
        case .listening(_, let addresses) where !addresses.isEmpty:
            say("can be called at \(addresses.map(\.description).joined(separator: ", "))")
        case .advertised(let scheme, let name): say("can be found over \(scheme) as \(name)")
        case .transportChanged(let scheme, .down(let error)): say("cannot use \(scheme): \(error)")
        case .transportChanged(let scheme, .up): say("can use \(scheme)")
        case .transportFailed(let error): say("has trouble: \(error)")
        case .peerChanged(let peer): changed(peer)
        case .trustNotKept(let error): say("has trouble: \(error)")
        // Nobody is paired in greetings: the session does not let itself be asked.
        case .pairing, .paired, .pairingEnded: break
        case .listening, .invitationEnded, .missed, .closed: break
        }
    }

    private func changed(_ peer: Peer) {
        acquaintances[peer.id]?.name = peer.name.description
        guard acquaintances[peer.id]?.isSeen == false, let route = peer.routes.first else { return }
        acquaintances[peer.id]?.isSeen = true
        say("sees \(peer.name) (\(peer.id.short)) at \(route.address)")
    }

    private func moved(_ peer: Peer, from before: PeerState, _ cause: NighError?) {
        acquaintances[peer.id, default: Acquaintance()].name = peer.name.description
        let reason = cause.map { ": \($0.cause)" } ?? ""
        switch (before, peer.state) {
        case (_, .unavailable):
            if acquaintances.removeValue(forKey: peer.id)?.isSeen == true {
                say("no longer sees \(peer.name)")
            }
        case (.unavailable, .available):
            // Who only asks for a conversation is not seen, and has no route.
            changed(peer)
            if !peer.routes.isEmpty { invite(peer.id) }
        case (.disconnected, .available):
            if acquaintances[peer.id]?.hasLeft == false { inviteLater(peer.id) }
        case (.connecting, .connected):
            say("is connected to \(peer.name) over \(peer.transport ?? "nothing")")
            acquaintances[peer.id]?.beginAnew()
            greet(peer)
        case (.reconnecting, .connected): say("is connected to \(peer.name) again")
        case (_, .reconnecting): say("has lost the link to \(peer.name)\(reason); looks for another")
        case (_, .disconnected):
            say("talks to \(peer.name) no more\(reason)")
            acquaintances[peer.id]?.hasLeft = cause?.cause == .peerLeft
        default: break
        }
    }

    private func nameOf(_ peer: PeerID) -> String { acquaintances[peer]?.name ?? peer.short }

    // MARK: Inviting

    private func invite(_ peer: PeerID) {
        guard !isLeaving else { return }
        say("invites \(nameOf(peer))")
        session.invite(peer, context: Self.question) { [self] result in
            guard case .failure(let error) = result, !isLeaving, acquaintances[peer]?.isSeen == true else {
                return
            }
            say("could not reach \(nameOf(peer)): \(error)")
            inviteLater(peer, error)
        }
    }

    private func inviteLater(_ peer: PeerID, _ error: NighError? = nil) {
        let failures = acquaintances[peer]?.failures ?? 0
        acquaintances[peer]?.failures = failures + 1
        loop.schedule(at: loop.now + pause(after: failures, error)) { [self] in
            session.peers { [self] peers in
                guard peers.contains(where: { $0.id == peer && $0.state == .available && !$0.routes.isEmpty })
                else { return }
                invite(peer)
            }
        }
    }

    private func pause(after failures: Int, _ error: NighError?) -> Moment.Span {
        let doubled = Self.firstPause.nanoseconds << Int64(min(failures, Self.mostDoublings))
        return max(Moment.Span(nanoseconds: doubled), Moment.Span(error?.retryAfter ?? .zero))
    }

    // MARK: Talking

    private func greet(_ peer: Peer) {
        do throws(NighError) {
            try session.trySend(Array("Hello \(peer.name), \(name) here!".utf8), to: peer.id)
        } catch {
            return say("could not greet \(peer.name): \(error)")
        }
        session.ping(peer.id) { [self] result in
            guard case .success(let time) = result else { return }
            say("is \(Moment.Span(time)) there and back from \(nameOf(peer.id))")
            acquaintances[peer.id]?.wasMeasured = true
            told(peer.id)
        }
    }

    private func heard(_ words: String, from peer: PeerID) {
        say("hears from \(nameOf(peer)): \"\(words)\"")
        acquaintances[peer]?.wasHeard = true
        told(peer)
    }

    private func told(_ peer: PeerID) {
        guard let known = acquaintances[peer], known.wasHeard, known.wasMeasured else { return }
        whenGreeted()
    }
}
