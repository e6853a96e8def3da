import NighCore

extension IntroductionTable {
    /// What the session and its program allow.
    package struct Policy {
        /// Whether the session is one of a mesh.
        package var isMesh: Bool
        /// Whether a peer may tell others that it carries pipes to this session.
        package var acceptsRelays: (PeerID) -> Bool
        /// Whether this session carries a pipe between two peers.
        package var carries: (PeerID, PeerID) -> Bool
        /// Returns why this session is not to be connected to an introduced peer; nil if it may be. Gets what others
        /// tell of the peer, which is not proven.
        package var refuses: (PeerID, Advertisement?) -> String?
        /// Whether peers are asked what their conversations run over.
        package var wantsPaths: Bool

        package init(
            isMesh: Bool, acceptsRelays: @escaping (PeerID) -> Bool = { _ in false },
            carries: @escaping (PeerID, PeerID) -> Bool = { _, _ in false },
            refuses: @escaping (PeerID, Advertisement?) -> String? = { _, _ in nil }, wantsPaths: Bool = false
        ) {
            self.isMesh = isMesh
            self.acceptsRelays = acceptsRelays
            self.carries = carries
            self.refuses = refuses
            self.wantsPaths = wantsPaths
        }
    }
}
