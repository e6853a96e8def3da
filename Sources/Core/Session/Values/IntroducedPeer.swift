/// A peer as another peer has introduced it, with the addresses at which it can be reached.
package struct IntroducedPeer: Hashable, Sendable {
    package var id: PeerID
    /// The identity that the peer acts for, as the introducer gave it; nil if it is the peer's own key.
    package var identity: PeerID?
    package var name: DisplayName
    package var info: DiscoveryInfo
    package var addresses: [TransportAddress]
    /// Whether the name and info come from the peer itself.
    package var isByItself: Bool

    /// Creates an introduced peer.
    package init(
        id: PeerID, identity: PeerID? = nil, name: DisplayName, info: DiscoveryInfo,
        addresses: [TransportAddress],
        isByItself: Bool = false
    ) {
        self.id = id
        self.identity = identity
        self.name = name
        self.info = info
        self.addresses = addresses
        self.isByItself = isByItself
    }
}
