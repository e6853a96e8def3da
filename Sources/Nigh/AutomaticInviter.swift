import NighCore
import Synchronization

/// Invites peers and accepts invitations in place of the program, while that wants it.
final class AutomaticInviter: SessionLayer {
    private struct State {
        var isOn: Bool
        var invitations = AutomaticInvitations()
        var timer: LoopTimer?
        weak var session: Session?
    }

    private let state: Mutex<State>
    /// Returns why the session is not to be connected to a peer; nil if it may be.
    private let reason: @Sendable (PeerID) -> String?

    init(isOn: Bool, refusing reason: @escaping @Sendable (PeerID) -> String?) {
        state = Mutex(State(isOn: isOn))
        self.reason = reason
    }

    var isOn: Bool {
        get { state.withLock { $0.isOn } }
        set {
            let session = state.withLock { state in
                state.isOn = newValue
                return state.session
            }
            if newValue { session?.loop.execute { [weak self] in self?.beginAnew() } }
        }
    }

    /// Invites all peers, also those that were left alone before. Loop only.
    private func beginAnew() {
        guard let peers = session?.peers else { return }
        let now = self.now
        state.withLock { state in
            state.invitations = AutomaticInvitations()
            for peer in peers {
                switch peer.state {
                case .available: state.invitations.available(peer.id, at: now)
                case .connected, .reconnecting: state.invitations.connected(peer.id)
                case .unavailable, .connecting, .disconnected: break
                }
            }
        }
        inviteDue()
    }

    // MARK: The layer

    func attach(to session: Session) { state.withLock { $0.session = session } }

    func answers(_ invitation: Invitation) -> Bool {
        guard isOn else { return false }
        if let reason = reason(invitation.peer.id) {
            invitation.decline(because: reason)
        } else {
            invitation.accept()
        }
        return true
    }

    func handle(_ event: SessionEvent) {
        let now = self.now
        switch event {
        case .peerLost(let peer): state.withLock { $0.invitations.lost(peer.id) }
        case .peerFound(let peer), .available(let peer, _):
            state.withLock { $0.invitations.available(peer.id, at: now) }
        case .connected(let peer): state.withLock { $0.invitations.connected(peer.id) }
        case .disconnected(let peer, let error):
            state.withLock { $0.invitations.disconnected(peer.id, because: error, at: now) }
        case .peerChanged(let peer) where peer.trust == .paired, .paired(let peer):
            state.withLock { $0.invitations.paired(peer.id, at: now) }
        default: return
        }
        // The peer may have become available by inviting this session, which is the next event and answered first.
        session?.loop.execute { [weak self] in self?.inviteDue() }
    }

    // MARK: On the loop

    private var session: Session? { state.withLock { $0.session } }
    private var now: Moment { session?.loop.now ?? .never }

    /// Invites the peers that are due, and waits for the next ones.
    private func inviteDue() {
        guard isOn, let session else { return }
        let loop = session.loop
        for id in state.withLock({ $0.invitations.takeDue(at: loop.now) }) {
            guard reason(id) == nil else {
                state.withLock { $0.invitations.finish(id) }
                continue
            }
            session.invite(id) { [weak self] result in
                if case .failure(let error) = result { self?.invitationFailed(id, error) }
            }
        }
        let (former, next) = state.withLock { ($0.timer, $0.invitations.nextMoment) }
        if let former { loop.cancel(former) }
        let timer = next.map { loop.schedule(at: $0) { [weak self] in self?.inviteDue() } }
        state.withLock { $0.timer = timer }
    }

    private func invitationFailed(_ id: PeerID, _ error: NighError) {
        guard let session else { return }
        let isPaired = session.isPaired(with: id)
        state.withLock { $0.invitations.failed(id, because: error, isPaired: isPaired, at: session.loop.now) }
        session.reference.report(.automaticInvitationFailed(session.peer(id), error))
        inviteDue()
    }
}
