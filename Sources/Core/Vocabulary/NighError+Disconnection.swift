extension NighError {
    /// Whether a message was not sent because there is no conversation with the peer any more: it had ended before, it
    /// ended while the message waited for room, or this side is leaving it.
    package var isDisconnection: Bool {
        // With this stage, nothing but the end of a conversation is reported to callers that send.
        stage == .conversing || cause == .notConnected || cause == .left
    }
}
