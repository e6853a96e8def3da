extension LinkClose {
    /// The cause that this close frame means to the side that receives it.
    var cause: NighError.Cause {
        switch code {
        case .left, .sessionClosed: .peerLeft
        case .protocolViolation:
            .protocolViolation("reported by the other side" + (reason.isEmpty ? "" : ": \(reason)"))
        case .superseded: .superseded
        case .selfDial: .selfDial
        case .sameIdentity: .sameIdentity
        case .cancelled: .cancelled
        case .silent: .silent
        case .noCommonVersion: .protocolViolation("the other side speaks no common version")
        case .noCommonSecurity: .noCommonSecurity(theyEncrypt: true)
        case .wrongService: .wrongService(reason)
        case .wrongPeer: .unknownPeer
        case .restarted: .restarted
        case .tooManyLinks: .busy
        case .tooSlow: .timedOut
        case .other: LinkClose.Scope(of: number) == .link ? .linkLost : .peerLeft
        case .notPaired: .notPaired
        case .claimsAnotherPeer: .protocolViolation("the other side knows this side by another PeerID")
        case .prefaceChanged: .insecure(.prefaceChanged)
        }
    }
}
