import NighCore

extension IntroductionTable {
    /// The rules of a session and its program for introductions.
    package struct Policy {
        /// Whether the session is one of a mesh.
        package var isMesh: Bool
        /// Whether a peer may report to others that it carries pipes to this session.
        package var acceptsRelays: (PeerID) -> Bool
        /// Whether this session carries a pipe between two peers.
        package var carries: (PeerID, PeerID) -> Bool
        /// Returns the reason not to connect to an introduced peer; nil if it may be connected. The advertisement comes
        /// from other peers and is not proven.
        package var refuses: (PeerID, Advertisement?) -> String?
        /// Whether peers are asked for the paths of their conversations.
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
