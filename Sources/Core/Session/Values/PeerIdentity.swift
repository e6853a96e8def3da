/// The identity that a peer acts for, as it was announced and as the peer has proven it. A value.
///
/// An announcement may be forged, so it only lets a person see whose session it may be. It grants nothing: whatever is
/// sent to the peer waits for its hello, which proves the identity.
struct PeerIdentity: Equatable {
    /// The peer itself, which is its own identity until something else is known.
    private let peer: PeerID
    private var announced: PeerID?
    private(set) var proven: PeerID?
    /// The identity that was announced, if the peer has proven otherwise.
    private(set) var refuted: PeerID?

    init(of peer: PeerID) { self.peer = peer }

    /// The identity as far as it is known now.
    var current: PeerID { proven ?? announced ?? peer }

    /// Whether the peer acts for another key than its own, as far as it is known now.
    var isDelegated: Bool { current != peer }

    /// Notes an announcement, which counts until the peer has proven its identity. Nil means the peer's own key.
    mutating func announce(_ identity: PeerID?) {
        if proven == nil, identity != peer { announced = identity }
    }

    /// Notes the identity that a hello has proven. Returns false if another one was announced.
    mutating func prove(_ identity: PeerID) -> Bool {
        defer {
            proven = identity
            announced = nil
        }
        guard let announced, announced != identity else { return true }
        refuted = announced
        return false
    }
}
