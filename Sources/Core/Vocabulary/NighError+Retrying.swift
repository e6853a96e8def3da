extension NighError {
    /// Whether calling the peer again may help: it was not reached, somebody else answered in its place, or it wants to
    /// be called again later. What the peer itself has answered stays so; one that refuses without naming a time has
    /// said no.
    package var mayPass: Bool {
        switch cause {
        case .refused, .unreachable, .timedOut, .linkLost, .reset, .silent, .notConnected, .unknownPeer,
            .noRoute, .restarted, .peerLeft, .unknownConversation, .superseded, .system:
            true
        // Whatever answers so has not proven that it is the peer.
        case .wrongPeer, .insecure, .protocolViolation: true
        case .allFailed: attempts.isEmpty || attempts.contains(where: \.mayPass)
        case .declined, .full, .busy: retryAfter != nil
        default: false
        }
    }
}
