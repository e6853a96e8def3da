import COpenSSL

/// A TLS session ticket with its secret, from an accepting peer. It makes the next link to that peer cheaper.
///
/// It is valid for one handshake, with the peer that gave it, and is kept in memory only. Copies share the ticket:
/// once one copy is used, all are used up.
struct ResumptionTicket: Sendable {
    /// The peer that gave the ticket.
    let peer: PeerID
    private let session: Owned

    /// Creates a ticket that owns `session`, an `SSL_SESSION` that nobody else changes.
    init(owning session: OpaquePointer, peer: PeerID) {
        self.peer = peer
        self.session = Owned(session)
    }

    /// Returns the `SSL_SESSION`, which the caller then owns. Nil after the first call.
    func take() -> OpaquePointer? { session.take() }

    /// Owns the `SSL_SESSION`, and hands it out once. An unused one is freed, and its secret overwritten, with the last
    /// copy of the ticket.
    private final class Owned: Sendable {
        private let pointer: Guarded<OpaquePointer?>

        init(_ pointer: OpaquePointer) { self.pointer = Guarded(pointer) }

        deinit { SSL_SESSION_free(take()) }

        func take() -> OpaquePointer? { pointer.withLock { $0.take() } }
    }
}
