import FoundationEssentials
import NighCore

extension Peer {
    /// Sends a value as JSON. Waits while the peer's send buffer is full. Returns when the session has accepted the
    /// message, which is before it arrives. If the task is cancelled, the call fails and nothing was sent.
    public nonisolated(nonsending) func send(_ value: some Encodable) async throws(NighError) {
        try await send(bytes: MessageCoding.encode(value, to: self))
    }
}
