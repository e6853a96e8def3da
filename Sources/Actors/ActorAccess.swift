import NighCore

/// The peers that may call an actor.
public struct ActorAccess: Sendable {
    /// Returns why a peer may not call the actor; nil if it may.
    let reason: @Sendable (Peer) -> String?

    /// Every connected peer.
    public static let everyone = ActorAccess { _ in nil }

    /// Paired peers.
    public static let paired = ActorAccess {
        $0.trust == .paired ? nil : "the actor is for paired devices only"
    }

    /// The peers for which `isAllowed` returns true. It is called for each call, and on the session's own thread when
    /// the session lists actors to a peer; it must not block.
    public static func peers(where isAllowed: @escaping @Sendable (Peer) -> Bool) -> ActorAccess {
        ActorAccess { isAllowed($0) ? nil : "the program there does not let this peer call the actor" }
    }
}
