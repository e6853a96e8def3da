import NighLoop

/// Describes the events of a session in words, for `--verbose`.
enum EventDescription {
    /// Returns nil for an event that says nothing by itself.
    static func text(for event: SessionEvent) -> String? {
        switch event {
        case .stateChanged(let peer, let before, let cause):
            let reason = cause.map { ": \($0)" } ?? ""
            let transport = peer.transport.map { " over \($0)" } ?? ""
            return "\(named(peer)) was \(before.rawValue), is \(peer.state.rawValue)\(transport)\(reason)"
        case .peerChanged(let peer):
            let addresses = peer.routes.map(\.address.description).joined(separator: ", ")
            return "\(named(peer)) can be reached at \(addresses.isEmpty ? "no address" : addresses)"
        case .invited(let invitation): return "\(named(invitation.peer)) invites over \(invitation.transport)"
        case .invitationEnded(let invitation, let cause):
            return "the invitation from \(named(invitation.peer)) has ended: \(cause)"
        case .invitationsCrossed(let peer, _):
            return "\(named(peer)) had invited, too, and is connected without a question"
        case .streamOpened(let stream): return "\(stream.peer.short) has opened the stream \(stream.name)"
        case .pairing(let peer, _): return "\(named(peer)) is being paired"
        case .paired(let peer): return "\(named(peer)) is paired"
        case .pairingEnded(let peer, let cause): return "\(named(peer)) is not paired: \(cause)"
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
        case .closed: return nil
        }
    }

    private static func named(_ peer: Peer) -> String { "\(peer.name) (\(peer.id.short))" }
}
