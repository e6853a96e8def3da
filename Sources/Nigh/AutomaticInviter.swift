import NighCore
import Synchronization

/// Invites peers and accepts invitations in place of the program, while that wants it.
final class AutomaticInviter: SessionLayer {
    private struct State {
        var isOn: Bool
        var invitations = AutomaticInvitations()
        var timer: LoopTimer?
        var failed: (@Sendable (PeerID, NighError) -> Void)?
        weak var session: NighCore.Session?
    }

    private let state: Mutex<State>
    /// Returns why the session is not to be connected to a peer; nil if it may be.
    private let reason: @Sendable (PeerID) -> String?

    init(isOn: Bool, refusing reason: @escaping @Sendable (PeerID) -> String?) {
        state = Mutex(State(isOn: isOn))
        self.reason = reason
    }

    /// Calls `failed` on the loop with each invitation that has failed.
    func reportFailures(to failed: @escaping @Sendable (PeerID, NighError) -> Void) {
        state.withLock { $0.failed = failed }
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
    private func beginAnew() { session?.peers { [weak self] in self?.begin(with: $0) } }

    private func begin(with peers: [Peer]) {
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

    func attach(to session: NighCore.Session) { state.withLock { $0.session = session } }

    func answers(_ invitation: Invitation) -> Bool {
        guard isOn else { return false }
        if let reason = reason(invitation.peer.id) {
            invitation.decline(because: reason)
        } else {
            invitation.accept()
        }
        return true
    }

    func handle(_ event: NighCore.SessionEvent) {
        let now = self.now
        switch event {
        case .stateChanged(let peer, let former, let cause):
            state.withLock { state in
                switch peer.state {
                case .unavailable: state.invitations.lost(peer.id)
                case .available: state.invitations.available(peer.id, at: now)
                case .connected where former != .reconnecting: state.invitations.connected(peer.id)
                case .disconnected:
                    let error = cause ?? NighError(.conversing, .left)
                    state.invitations.disconnected(peer.id, because: error, at: now)
                case .connecting, .connected, .reconnecting: break
                }
            }
            // The peer may have become available by inviting this session, which is the next event and answered first.
            session?.loop.execute { [weak self] in self?.inviteDue() }
        case .peerChanged(let peer) where peer.trust == .paired: inviteAfterPairing(peer.id, at: now)
        case .paired(let peer): inviteAfterPairing(peer.id, at: now)
        default: break
        }
    }

    // MARK: On the loop

    private var session: NighCore.Session? { state.withLock { $0.session } }
    private var now: Moment { session?.loop.now ?? .never }

    private func inviteAfterPairing(_ peer: PeerID, at now: Moment) {
        state.withLock { $0.invitations.paired(peer, at: now) }
        inviteDue()
    }

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
        let failed = state.withLock { state in
            state.invitations.failed(id, because: error, isPaired: isPaired, at: session.loop.now)
            return state.failed
        }
        failed?(id, error)
        inviteDue()
    }
}
