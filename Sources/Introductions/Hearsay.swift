import NighCore

/// A peer with which another one has a conversation, as that one says.
package struct Acquaintance: Equatable, Sendable {
    package let listing: Listing
    /// What the conversation runs over; nil if it was not said.
    package let path: ConversationPath?
}

/// What the connected peers tell of other ones. A value: nothing of it is proven.
struct Hearsay {
    /// What one peer tells of another one.
    private struct Report {
        var isMesh: Bool
        var isCarried: Bool
        var path: ConversationPath?
    }

    private struct Entry {
        var advertisement: Advertisement
        var by: [PeerID: Report] = [:]
    }

    private var entries: [PeerID: Entry] = [:]
    /// How many others each peer tells of.
    private var counts: [PeerID: Int] = [:]

    /// Whether some peer tells of this one.
    func tells(of id: PeerID) -> Bool { entries[id] != nil }

    /// What was last told of the peer itself.
    func advertisement(of id: PeerID) -> Advertisement? { entries[id]?.advertisement }

    /// The peers that say that they carry pipes to this one, by PeerID.
    func carriers(of id: PeerID) -> [PeerID] { tellers(of: id) { $0.isCarried } }

    /// The peers that say that they and this one are in the mesh, by PeerID.
    func members(thatKnow id: PeerID) -> [PeerID] { tellers(of: id) { $0.isMesh } }

    private func tellers(of id: PeerID, where isMeant: (Report) -> Bool) -> [PeerID] {
        (entries[id]?.by ?? [:]).filter { isMeant($0.value) }.keys.sorted()
    }

    /// The peers of which one peer tells, by PeerID.
    func acquaintances(of teller: PeerID) -> [Acquaintance] {
        entries.values.compactMap { entry in
            entry.by[teller].map { report in
                Acquaintance(
                    listing: Listing(
                        isMesh: report.isMesh, isCarried: report.isCarried,
                        advertisement: entry.advertisement),
                    path: report.path)
            }
        }.sorted { $0.listing.advertisement.peer < $1.listing.advertisement.peer }
    }

    /// The peers of which one peer tells, by PeerID.
    func subjects(of teller: PeerID) -> [PeerID] {
        entries.filter { $0.value.by[teller] != nil }.keys.sorted()
    }

    /// Notes what a peer tells of another one. Fails if it tells of more than `limit`.
    mutating func note(_ listing: Listing, by teller: PeerID, limit: Int) throws(WireError) {
        let id = listing.advertisement.peer
        var entry = entries[id] ?? Entry(advertisement: listing.advertisement)
        if entry.by[teller] == nil {
            guard counts[teller, default: 0] < limit else {
                throw .malformed("more members than are allowed")
            }
            counts[teller, default: 0] += 1
        }
        entry.by[teller] = Report(
            isMesh: listing.isMesh, isCarried: listing.isCarried, path: entry.by[teller]?.path)
        entry.advertisement = listing.advertisement
        entries[id] = entry
    }

    /// Notes what a peer's conversation with another one, of which it tells, runs over.
    mutating func note(_ path: ConversationPath, to id: PeerID, by teller: PeerID) {
        entries[id]?.by[teller]?.path = path
    }

    /// Forgets what a peer has told of another one. Returns false if it has told nothing of it.
    mutating func remove(_ id: PeerID, by teller: PeerID) -> Bool {
        guard entries[id]?.by.removeValue(forKey: teller) != nil else { return false }
        if entries[id]?.by.isEmpty == true { entries[id] = nil }
        counts[teller] = counts[teller].flatMap { $0 > 1 ? $0 - 1 : nil }
        return true
    }
}
