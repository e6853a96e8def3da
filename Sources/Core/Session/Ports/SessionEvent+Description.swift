// How the values that a session reports print: each in one short line, for people.

extension Peer: CustomStringConvertible {
    /// The name, the short PeerID and the state.
    public var description: String { "\(label), \(state)\(transport.map { " over \($0)" } ?? "")" }

    /// The name and the short PeerID.
    package var label: String {
        name == id.short ? name : displayName.label(of: identity)
    }
}

extension Invitation: CustomStringConvertible {
    /// The peer that invites, and the transport.
    public var description: String { "invitation from \(peer.label) over \(transport)" }
}

extension Message: CustomStringConvertible {
    /// The number of bytes, and the sender.
    public var description: String {
        "\(origin.isReliable ? "" : "unreliable ")message of \(payload.count) bytes from \(sender.short)"
    }
}

extension SessionEvent: CustomStringConvertible {
    /// The event as one sentence.
    public var description: String {
        switch self {
        case .peerFound(let peer): "\(peer.label) can be reached"
        case .peerLost(let peer): "\(peer.label) can no longer be reached"
        case .peerChanged(let peer):
            "\(peer.label) is \(peer.state)" + Self.path(to: peer)
                + (peer.isConnected ? "" : Self.list(peer.routes.map(\.address)))
        case .connecting(let peer): "\(peer.label) is being connected"
        case .connected(let peer): "\(peer.label) is connected" + Self.path(to: peer)
        case .reconnecting(let peer, let error): "looking for another link to \(peer.label): \(error)"
        case .reconnected(let peer): "\(peer.label) is connected again" + Self.path(to: peer)
        case .disconnected(let peer, let error): "\(peer.label) is no longer connected: \(error)"
        case .available(let peer, let error):
            "\(peer.label) can be invited again" + (error.map { ": \($0)" } ?? "")
        case .peerUnresponsive(let peer): "\(peer.label) has been silent for a while"
        case .peerResponsive(let peer): "\(peer.label) responds again"
        case .invited(let invitation): "\(invitation.peer.label) invites over \(invitation.transport)"
        case .invitationEnded(let invitation, let error):
            "the invitation from \(invitation.peer.label) has ended: \(error)"
        case .invitationsCrossed(let peer, _):
            "\(peer.label) had invited, too, and is connected without a question"
        case .automaticInvitationFailed(let peer, let error):
            "\(peer.label) could not be connected automatically: \(error)"
        case .streamOpened(let stream): "\(stream.peerLabel) has opened the stream \"\(stream.name)\""
        case .messageUnreadable(_, let error): "\(error)"
        case .pairingCode(let peer, let code): "\(peer.label) should show the digits \(code)"
        case .paired(let peer): "\(peer.label) is paired"
        case .pairingFailed(let peer, let error): "\(peer.label) is not paired: \(error)"
        case .transportUp(let scheme): "\(scheme) can be used"
        case .transportDown(let scheme, let error): "\(scheme) cannot be used: \(error)"
        case .listening(let scheme, let addresses):
            "\(scheme) " + (addresses.isEmpty ? "does not listen" : "listens") + Self.list(addresses)
        case .advertised(let scheme, let name): "others see this session over \(scheme) as \(name)"
        case .problem(let error): "\(error)"
        case .eventsDropped(let count): "\(count) events were missed"
        case .closed: "the session is closed"
        }
    }

    private static func list(_ addresses: [TransportAddress]) -> String {
        addresses.isEmpty ? "" : " at " + addresses.map(\.description).joined(separator: ", ")
    }

    private static func path(to peer: Peer) -> String { peer.transport.map { " over \($0)" } ?? "" }
}
