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
    /// Who invites.
    public var description: String { "invitation from \(peer.label) over \(transport)" }
}

extension Message: CustomStringConvertible {
    /// The number of bytes, and who has sent them.
    public var description: String {
        "\(origin.isReliable ? "" : "unreliable ")message of \(payload.count) bytes from \(sender.short)"
    }
}

extension SessionEvent: CustomStringConvertible {
    /// The event as one sentence.
    public var description: String {
        switch self {
        case .stateChanged(let peer, let former, let cause):
            let reason = cause.map { ": \($0)" } ?? ""
            let transport = peer.transport.map { " over \($0)" } ?? ""
            return "\(peer.label) was \(former), is \(peer.state)\(transport)\(reason)"
        case .peerChanged(let peer):
            let addresses = peer.routes.map(\.address.description).joined(separator: ", ")
            return "\(peer.label) can be reached at \(addresses.isEmpty ? "no address" : addresses)"
        case .invited(let invitation): return "\(invitation.peer.label) invites over \(invitation.transport)"
        case .invitationEnded(let invitation, let cause):
            return "the invitation from \(invitation.peer.label) has ended: \(cause)"
        case .invitationsCrossed(let peer, _):
            return "\(peer.label) had invited, too, and is connected without a question"
        case .streamOpened(let stream): return "\(stream.peerLabel) has opened the stream \(stream.name)"
        case .pairing(let peer, _): return "\(peer.label) is being paired"
        case .paired(let peer): return "\(peer.label) is paired"
        case .pairingEnded(let peer, let cause): return "\(peer.label) is not paired: \(cause)"
        case .trustStoreFailed(let error), .transportFailed(let error): return "\(error)"
        case .peerUnresponsive(let peer): return "\(peer.short) has been silent for a while"
        case .peerResponsive(let peer): return "\(peer.short) responds again"
        case .transportChanged(let scheme, .up): return "\(scheme) can be used"
        case .transportChanged(let scheme, .down(let error)): return "\(scheme) cannot be used: \(error)"
        case .listening(let scheme, let addresses):
            let list = addresses.map(\.description).joined(separator: ", ")
            return addresses.isEmpty ? "\(scheme) does not listen" : "\(scheme) listens at \(list)"
        case .advertised(let scheme, let name): return "others see this session over \(scheme) as \(name)"
        case .eventsDropped(let count): return "\(count) events were missed"
        case .closed: return "the session is closed"
        }
    }
}
