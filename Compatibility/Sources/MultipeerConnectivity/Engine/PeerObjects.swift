import NighCore

/// The `MCPeerID` objects that programs got for other peers. A program gets the same object for a peer for as long as
/// it holds it. Control queue only.
enum PeerObjects {
    private struct Entry {
        weak var object: MCPeerID?
    }

    /// `nonisolated(unsafe)`: confined to the control queue.
    nonisolated(unsafe) private static var entries: [PeerID: Entry] = [:]

    static func object(_ id: PeerID, name: String) -> MCPeerID {
        if let object = entries[id]?.object, object.displayName == name { return object }
        // Objects that are gone are dropped when the table has grown.
        if entries.count >= 1_024 { entries = entries.filter { $0.value.object != nil } }
        let made = MCPeerID(KnownPeer(remote: id, name: name))
        entries[id] = Entry(object: made)
        return made
    }
}
