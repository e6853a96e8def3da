import COpenSSL

/// What an accepting peer gave so that the next link to it costs less: TLS's session ticket with the secret that goes
/// with it. Good for one handshake with the peer that gave it; kept in memory only.
///
/// Copies share the ticket: used through one, it is used up for all.
struct ResumptionTicket: Sendable {
    /// Who gave it.
    let peer: PeerID
    private let session: Owned

    /// Takes over a reference to `session`, an `SSL_SESSION` nobody else changes.
    init(owning session: OpaquePointer, peer: PeerID) {
        self.peer = peer
        self.session = Owned(session)
    }

    /// The `SSL_SESSION`, owned by the caller; nil after the first call.
    func take() -> OpaquePointer? { session.take() }

    /// Has the ticket forgotten and its secret overwritten with the last copy, if nobody has used it. `@unchecked
    /// Sendable`: the pointer is reached through the lock alone, and handed out once.
    private final class Owned: @unchecked Sendable {
        private let lock = Lock()
        private var pointer: OpaquePointer?

        init(_ pointer: OpaquePointer) { self.pointer = pointer }

        deinit { SSL_SESSION_free(pointer) }

        func take() -> OpaquePointer? { lock.withLock { pointer.take() } }
    }
}
