// How the values that a session reports print: each in one short line, for people.

extension TypedMessage: CustomStringConvertible {
    /// Who has sent the value, and the value.
    public var description: String { "\(sender.label): \(content)" }
}

extension Group: CustomStringConvertible {
    /// The name.
    public var description: String { "group \"\(name)\"" }
}

extension SessionEvent: CustomStringConvertible {
    /// The event as one sentence.
    public var description: String {
        switch self {
        case .peerFound(let peer): "\(peer.label) can be reached"
        case .peerLost(let peer): "\(peer.label) can no longer be reached"
        case .peerChanged(let peer): "\(peer.label) is \(peer.state)"
        case .connected(let peer): "\(peer.label) is connected" + (peer.transport.map { " over \($0)" } ?? "")
        case .reconnecting(let peer, let error): "looking for another link to \(peer.label): \(error)"
        case .reconnected(let peer):
            "\(peer.label) is connected again" + (peer.transport.map { " over \($0)" } ?? "")
        case .disconnected(let peer, let error): "\(peer.label) is no longer connected: \(error)"
        case .peerUnresponsive(let peer): "\(peer.label) has been silent for a while"
        case .peerResponsive(let peer): "\(peer.label) responds again"
        case .invited(let invitation): "\(invitation.peer.label) invites"
        case .invitationEnded(let invitation, let error):
            "the invitation from \(invitation.peer.label) has ended: \(error)"
        case .invitationsCrossed(let peer, _):
            "\(peer.label) had invited, too, and is connected without a question"
        case .automaticInvitationFailed(let peer, let error):
            "\(peer.label) could not be connected automatically: \(error)"
        case .streamOpened(let peer, let name): "\(peer.label) has opened the stream \"\(name)\""
        case .filesOffered(let offer): "\(offer)"
        case .filesAccepted(let transfer): "\(transfer)"
        case .memberJoined(let peer, let group, _): "\(peer.label) is in the group \"\(group)\""
        case .memberLeft(let peer, let group): "\(peer.label) is no longer in the group \"\(group)\""
        case .groupRefused(let peer, let group, let error):
            "\(peer.label) does not want this session in the group \"\(group)\": \(error)"
        case .messageUnreadable(_, let error): "\(error)"
        case .pairingCode(let peer, let code): "\(peer.label) should show the digits \(code)"
        case .paired(let peer): "\(peer.label) is paired"
        case .pairingFailed(let peer, let error): "\(peer.label) is not paired: \(error)"
        case .transportUp(let scheme): "\(scheme) can be used"
        case .transportDown(let scheme, let error): "\(scheme) cannot be used: \(error)"
        case .problem(let error): "\(error)"
        case .eventsDropped(let count): "\(count) events were missed"
        }
    }
}
