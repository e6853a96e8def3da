/// A peer of which another peer has told, and where it can be reached.
package struct IntroducedPeer: Hashable, Sendable {
    package var id: PeerID
    /// The identity that the peer acts for, as it was told; nil if it is the peer's own key.
    package var identity: PeerID?
    package var name: DisplayName
    package var info: DiscoveryInfo
    package var addresses: [TransportAddress]
    /// Whether the peer itself has told its name and info.
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
