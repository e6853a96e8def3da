import NighCore

/// A peer as an engine knows it.
///
/// `@unchecked Sendable`: confined to the control queue.
final class EnginePeer: @unchecked Sendable {
    let id: PeerID
    var name: String
    /// The addresses at which discovery last saw the peer.
    var addresses: [TransportAddress] = []
    /// The addresses at which the peer says that it listens.
    var listening: [String] = []
    /// The keys and values that the peer advertises, without those that this module adds.
    var info: [String: String]?
    var isVisible = false

    /// The peer's invitations that are remembered, and those of them that wait for an answer.
    var invitationCount = 0
    var waitingInvitationCount = 0

    var conversation: PeerConversation?
    /// A conversation that has begun before the one before it was read to its end.
    var nextConversation: PeerConversation?
    var isDialling = false
    /// How long to wait before the next dial.
    var pause: TimeInterval = EnginePeer.firstPause

    static let firstPause: TimeInterval = 0.1
    static let longestPause: TimeInterval = 2

    init(_ id: PeerID, name: String?) {
        self.id = id
        self.name = name ?? id.short
    }

    var peerID: MCPeerID { PeerObjects.object(id, name: name) }
}
