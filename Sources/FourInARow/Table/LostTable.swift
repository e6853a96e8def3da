import NighCore

/// A table that has lost its host, as one of its watchers knew it last. The watcher shows it to the guest, which takes
/// over the table.
public struct LostTable: Hashable, Sendable {
    /// The host that left.
    var host: PeerID
    /// The game that was on. Red stands for the host that left.
    var game: Game
}
