import NighCore

extension Peer {
    /// Sends a value, as JSON unless ``SessionSettings/coder`` says otherwise. Waits while the peer's send buffer is
    /// full. Returns when the session has accepted the message, which is before it arrives. If the task is cancelled,
    /// the call fails and nothing was sent.
    public nonisolated(nonsending) func send(
        _ value: some Encodable, on lane: Lane = .main
    ) async throws(NighError) {
        try await send(bytes: session.encode(value, to: self), on: lane)
    }

    /// Sends a value, to arrive soon or not at all; see ``sendUnreliably(bytes:replacing:)``.
    public func sendUnreliably(_ value: some Encodable, replacing key: UInt8? = nil) throws(NighError) {
        try sendUnreliably(bytes: session.encode(value, to: self), replacing: key)
    }

    /// The messages of this peer alone as values of one type; see ``messages()`` and ``Session/messages(of:)``.
    public nonisolated(nonsending) func messages<Content: Decodable & Sendable>(
        of type: Content.Type
    ) async throws(NighError) -> TypedMessages<Content> {
        TypedMessages(session: session, messages: .session(try await messages()))
    }
}
