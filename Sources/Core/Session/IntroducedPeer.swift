/// A peer of which another peer has told, and where it can be reached.
package struct IntroducedPeer: Hashable, Sendable {
    package var id: PeerID
    package var name: DisplayName
    package var info: DiscoveryInfo
    package var addresses: [TransportAddress]
    /// Whether the peer itself has told its name and info.
    package var isByItself: Bool

    /// Creates an introduced peer.
    package init(
        id: PeerID, name: DisplayName, info: DiscoveryInfo, addresses: [TransportAddress],
        isByItself: Bool = false
    ) {
        self.id = id
        self.name = name
        self.info = info
        self.addresses = addresses
        self.isByItself = isByItself
    }
}
