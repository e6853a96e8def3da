import NighCore
import Synchronization

/// With whom a session of a mesh is connected without a question to its program.
public enum MeshAdmission: Sendable {
    /// Every member.
    case everyone
    /// Paired peers.
    case paired
    /// The peers that `accepts` returns true for. It is called on the session's own thread, which it must not block,
    /// and may be called several times about one peer. Before the two have met, name and info are what other members
    /// tell of the peer; only its ID is proven later.
    case chosen(accepts: @Sendable (_ peer: Peer) -> Bool)
}

/// Answers for a session with whom its mesh may connect it.
final class MeshMembers: SessionLayer {
    private struct WeakSession {
        weak var session: Session?
    }

    private let admission: MeshAdmission
    private let attached = Mutex(WeakSession())

    init(_ admission: MeshAdmission) { self.admission = admission }

    func attach(to session: Session) { attached.withLock { $0.session = session } }

    /// Returns why the session is not to be connected to an introduced peer, of which others tell this; nil if it may
    /// be. Called on the session's loop.
    func reason(against id: PeerID, _ told: Advertisement? = nil) -> String? {
        if case .everyone = admission { return nil }
        guard let session = attached.withLock({ $0.session }) else { return "the session is closing" }
        let peer = session.peer(id, told: told)
        return switch admission {
        case .everyone: nil
        case .paired: peer.trust == .paired ? nil : "the session there meets paired devices only"
        case .chosen(let accepts): accepts(peer) ? nil : "the program there does not accept this peer"
        }
    }
}
