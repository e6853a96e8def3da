extension NighError.Cause {
    /// The cause without its particulars: what statistics count under, and programs tell causes apart by. Never changed.
    public var label: String {
        switch self {
        case .refused: "refused"
        case .unreachable: "unreachable"
        case .timedOut: "timed out"
        case .cancelled: "cancelled"
        case .linkLost: "link lost"
        case .reset: "reset"
        case .silent: "silent"
        case .declined: "declined"
        case .full: "full"
        case .busy: "busy"
        case .bufferFull: "buffer full"
        case .messageTooLarge: "message too large"
        case .notConnected: "not connected"
        case .unknownPeer: "unknown peer"
        case .noRoute: "no route"
        case .selfDial: "self-dial"
        case .sameIdentity: "same identity"
        case .wrongPeer: "wrong peer"
        case .wrongService: "wrong service"
        case .restarted: "restarted"
        case .peerLeft: "peer left"
        case .left: "left"
        case .unknownConversation: "unknown conversation"
        case .superseded: "superseded"
        case .protocolViolation: "protocol violation"
        case .contractBroken: "contract broken"
        case .noCommonVersion: "no common version"
        case .noCommonSecurity: "no common security"
        case .notPaired: "not paired"
        case .pairingRefused: "pairing refused"
        case .insecure(let fault): fault.label
        case .limit: "limit"
        case .invalid: "invalid"
        case .unavailable: "unavailable"
        case .closed: "closed"
        case .system: "system"
        case .allFailed: "all failed"
        }
    }
}
