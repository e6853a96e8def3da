import NighCore

/// A session's attempt to connect to a peer, until it succeeds, is refused or times out.
struct Attempt {
    enum Kind {
        /// An invitation with its context.
        case invitation(context: [UInt8]?)
        /// A session of the peer's that this one belongs to.
        case join(session: UInt64)
    }

    let number: UInt64
    let session: SessionCore
    /// The number of the session when it began. If the session was disconnected since then, the attempt is void.
    let sessionNumber: UInt64
    let peer: PeerID
    let kind: Kind
    let deadline: Date
    /// Whether the session reports that it failed. Nobody waits for a session that joins by itself.
    let isReported: Bool
}

/// A peer's invitation, by the peer and the number that it has given it.
struct InvitationKey: Hashable, Sendable {
    var peer: PeerID
    var number: UInt64
}

/// A peer's invitation that waits for this program's answer, or was answered and may be asked again.
final class IncomingInvitation {
    enum Answer {
        case declined
        case accepted(SessionCore, number: UInt64)
    }

    let session: UInt64
    var answer: Answer?

    init(from session: UInt64) { self.session = session }
}

/// The handler that a program gets with an invitation. An invitation whose handler is gone without having been called
/// is declined.
///
/// `@unchecked Sendable`: it only passes on to the control queue.
final class InvitationAnswer: @unchecked Sendable {
    private let key: InvitationKey
    private weak var engine: Engine?

    init(_ key: InvitationKey, in engine: Engine) {
        self.key = key
        self.engine = engine
    }

    func give(_ accepts: Bool, _ session: SessionCore?) {
        let (key, engine) = (key, engine)
        Control.async { engine?.answered(key, with: accepts ? session : nil) }
    }

    deinit {
        let (key, engine) = (key, engine)
        Control.async { engine?.answered(key, with: nil) }
    }
}

/// A peer's request to join a session that does not expect the peer yet. The member that introduces the peer may be
/// slower than the request.
struct ParkedJoin {
    let peer: PeerID
    let sessions: WireMessage.Sessions
    let deadline: Date
}
