import NighLoop
import Synchronization

/// A layer that lets each person knock a few times a minute. It declines those who knock more often, and the program
/// hears nothing of them.
final class Doorkeeper: SessionLayer {
    private struct State {
        var loop: (any EventLoop)?
        /// When each person has knocked in the last minute.
        var knocks: [PeerID: [Moment]] = [:]
        var declined = 0
    }

    /// How often a person may knock within a minute.
    let limit: Int
    private let minute = Moment.Span.seconds(60)
    private let state = Mutex(State())

    init(limit: Int) { self.limit = limit }

    /// How many invitations were declined so far.
    var declined: Int { state.withLock { $0.declined } }

    func attach(to session: Session) { state.withLock { $0.loop = session.lowLevel.loop } }

    /// Declines an invitation that comes too soon. Leaves every other one to the layers behind this one, and to the
    /// program.
    func answers(_ invitation: Invitation) -> Bool {
        let wait = state.withLock { state -> Duration? in
            guard let now = state.loop?.now else { return nil }
            state.knocks = state.knocks.mapValues { $0.filter { now - $0 < minute } }.filter { !$1.isEmpty }
            // One person may have several devices; all of them act for one identity.
            let earlier = state.knocks[invitation.peer.identity] ?? []
            guard earlier.count >= limit, let first = earlier.first else {
                state.knocks[invitation.peer.identity] = earlier + [now]
                return nil
            }
            state.declined += 1
            return .nanoseconds((first + minute - now).nanoseconds)
        }
        guard let wait else { return false }
        invitation.decline(because: "knock at most \(limit) times a minute", retryAfter: wait)
        return true
    }

    /// Forgets the knocks of a person once the program has let them in.
    func handle(_ event: SessionEvent) {
        guard case .connected(let peer) = event else { return }
        state.withLock { $0.knocks[peer.identity] = nil }
    }
}
