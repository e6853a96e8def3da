import NighCore
import Synchronization

/// The peers that a mesh connects to a session without asking its program.
public enum MeshAdmission: Sendable {
    /// Every member.
    case everyone
    /// Paired peers.
    case paired
    /// The peers that `accepts` returns true for. It is called on the session's own thread, which it must not block,
    /// and may be called several times about one peer. Before the two have met, name and info come from other members;
    /// only the ID is proven later.
    case chosen(accepts: @Sendable (_ peer: Peer) -> Bool)
}

/// Decides for a session which peers its mesh may connect to it.
final class MeshMembers: SessionLayer {
    private struct WeakSession {
        weak var session: Session?
    }

    private let admission: MeshAdmission
    private let attached = Mutex(WeakSession())

    init(_ admission: MeshAdmission) { self.admission = admission }

    func attach(to session: Session) { attached.withLock { $0.session = session } }

    /// Returns the reason against connecting the session to an introduced peer with this advertisement; nil if there is
    /// none. Called on the session's loop.
    func reason(against id: PeerID, _ advertisement: Advertisement? = nil) -> String? {
        if case .everyone = admission { return nil }
        guard let session = attached.withLock({ $0.session }) else { return "the session is closing" }
        let peer = session.peer(id, advertisement: advertisement)
        return switch admission {
        case .everyone: nil
        case .paired: peer.trust == .paired ? nil : "the session there meets paired devices only"
        case .chosen(let accepts): accepts(peer) ? nil : "the program there does not accept this peer"
        }
    }
}
