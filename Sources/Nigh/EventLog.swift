import NighCore

/// How important a line of a log is, by the names of swift-log.
public enum LogLevel: String, CaseIterable, Sendable {
    /// Details for finding a fault in Nigh itself. Nigh writes none.
    case trace
    /// Peers come, change and go; transports and addresses.
    case debug
    /// Conversations begin and end.
    case info
    /// A link was lost, a peer does not respond, or somebody wants to be paired.
    case notice
    /// Something does not work, and the session goes on without it.
    case warning
    /// Something failed that the program wanted. Nigh throws errors instead, and writes none.
    case error
    /// Nothing can go on. Nigh writes none.
    case critical
}

/// Writes the events of a session, and questions that were not answered, to the program's own log.
final class EventLog: SessionLayer {
    private let write: @Sendable (LogLevel, String, [String: String]) -> Void

    init(_ write: @escaping @Sendable (LogLevel, String, [String: String]) -> Void) { self.write = write }

    func handle(_ event: SessionEvent) {
        write(event.logLevel, event.description, Self.metadata(of: event.changedPeer, event.cause))
    }

    func sessionDidClose() { write(.info, SessionEvent.closed.description, [:]) }

    /// Notes that a question of a peer was not answered, because the program threw this.
    func questionFailed(_ name: String, of peer: Peer, _ error: any Error) {
        var metadata = Self.metadata(of: peer, nil)
        metadata["question"] = name
        write(.warning, "the question \"\(name)\" of \(peer.label) was not answered: \(error)", metadata)
    }

    private static func metadata(of peer: Peer?, _ cause: NighError?) -> [String: String] {
        var metadata: [String: String] = [:]
        if let peer {
            metadata["peer"] = peer.id.description
            metadata["peer-name"] = peer.name
        }
        metadata["transport"] = peer?.transport ?? cause?.transport
        metadata["cause"] = cause?.cause.label
        return metadata
    }
}

extension SessionEvent {
    fileprivate var logLevel: LogLevel {
        switch self {
        case .peerFound, .peerLost, .peerChanged, .connecting, .available, .streamOpened, .transportUp,
            .listening, .advertised:
            .debug
        case .connected, .reconnected, .disconnected, .invited, .invitationEnded, .invitationsCrossed,
            .automaticInvitationFailed, .peerResponsive, .closed:
            .info
        case .reconnecting, .peerUnresponsive, .pairingCode, .paired, .pairingFailed: .notice
        case .messageUnreadable, .transportDown, .problem, .eventsDropped: .warning
        }
    }

    fileprivate var cause: NighError? {
        switch self {
        case .invitationEnded(_, let error), .automaticInvitationFailed(_, let error),
            .messageUnreadable(_, let error), .pairingFailed(_, let error), .transportDown(_, let error),
            .problem(let error):
            error
        default: stateChange?.cause
        }
    }
}
