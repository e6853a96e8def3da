/// What a trust store has in memory: peers in the order they were met, found by PeerID and by name. A value; knows no
/// file, no clock and no lock.
package struct TrustBook {
    package struct Entry: Equatable {
        package var name: DisplayName
        package var isPaired: Bool
        package var since: CalendarDay
        package var lastSeen: CalendarDay
        /// Where it stands among all entries and remarks; for a new one, behind them.
        let place: Int
        /// What a person wrote behind it.
        package var note = ""
    }

    /// More are never kept.
    static let maximumCount = 4_096

    package private(set) var entries: [PeerID: Entry] = [:]
    /// What a person wrote between the entries, with its places.
    private(set) var remarks: [(place: Int, text: String)] = []
    private var idsByName: [String: [PeerID]] = [:]
    private var nextPlace = 0

    subscript(id: PeerID) -> Entry? { entries[id] }

    // MARK: Reading

    func trust(in id: PeerID, called name: DisplayName) -> PeerTrust {
        if let entry = entries[id] { return entry.isPaired ? .paired : .known }
        guard let others = idsByName[Self.key(of: name)], !others.isEmpty else { return .new }
        return .newWithKnownName(
            of: others.sorted { left, right in
                let (isLeftPaired, isRightPaired) = (isPaired(left), isPaired(right))
                return isLeftPaired == isRightPaired ? left < right : isLeftPaired
            })
    }

    func isPaired(_ id: PeerID) -> Bool { entries[id]?.isPaired == true }

    /// Whether the same peers are paired as in `earlier`, and none of those that it knew was forgotten. Whom else this one knows does
    /// not matter.
    func trustsAll(thatWereTrustedIn earlier: TrustBook) -> Bool {
        entries.allSatisfy { id, entry in entry.isPaired == earlier.isPaired(id) }
            && earlier.entries.keys.allSatisfy { entries[$0] != nil }
    }

    var pairedCount: Int { entries.values.count { $0.isPaired } }

    /// What two names have in common that a person takes for the same: numbers behind them ("Puma #2"), upper and lower
    /// case, and what cannot be seen do not count. Letters of other scripts that look alike do.
    private static func key(of name: DisplayName) -> String {
        var stem = NumberedName(name.description).stem
        // A long name loses its end to the number, so no end that a number may have cost is compared.
        let longestNumber = " #\(NumberedName.upperBound)".utf8.count
        while stem.utf8.count > DisplayName.maximumByteCount - longestNumber { stem.removeLast() }
        var seen = String.UnicodeScalarView()
        for scalar in stem.unicodeScalars where scalar.properties.generalCategory != .format {
            seen.append(scalar.properties.isWhitespace ? " " : scalar)
        }
        return String(seen).lowercased().split(separator: " ").joined(separator: " ")
    }

    // MARK: Changing

    /// Takes over what is written in a file, behind all that is there.
    mutating func append(
        _ id: PeerID, name: DisplayName, isPaired: Bool, since: CalendarDay, lastSeen: CalendarDay,
        note: String
    ) {
        put(
            Entry(
                name: name, isPaired: isPaired, since: since, lastSeen: lastSeen, place: takePlace(),
                note: note),
            for: id)
    }

    mutating func append(remark: String) { remarks.append((takePlace(), remark)) }

    private mutating func takePlace() -> Int {
        defer { nextPlace += 1 }
        return nextPlace
    }

    private mutating func put(_ entry: Entry, for id: PeerID) {
        remove(id)
        entries[id] = entry
        idsByName[Self.key(of: entry.name), default: []].append(id)
    }

    private mutating func remove(_ id: PeerID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        let key = Self.key(of: entry.name)
        idsByName[key]?.removeAll { $0 == id }
        if idsByName[key]?.isEmpty == true { idsByName[key] = nil }
    }

    /// Makes `change` to what is known about `id`.
    package mutating func apply(_ change: TrustChange, to id: PeerID) {
        if change.forgets { remove(id) }
        var known = entries[id]
        if let seen = change.seen, known == nil {
            known = Entry(
                name: seen.name, isPaired: false, since: seen.day, lastSeen: seen.day, place: takePlace())
        }
        guard var entry = known else { return }
        if let seen = change.seen {
            entry.name = seen.name
            entry.lastSeen = max(entry.lastSeen, seen.day)
        }
        switch change.pairing {
        case .paired(let day) where !entry.isPaired:
            entry.isPaired = true
            entry.since = day
        case .unpaired: entry.isPaired = false
        case .paired, nil: break
        }
        if entry != entries[id] { put(entry, for: id) }
    }

    /// Forgets unpaired peers until the limit holds, and says whom: first who was not seen for longest; of those last seen on one
    /// day, first who was met latest, so that a crowd of strangers drives out itself. Those in `newest` go last.
    mutating func makeRoom(sparing newest: Set<PeerID> = []) -> [PeerID] {
        let excess = entries.count - Self.maximumCount
        guard excess > 0 else { return [] }
        func goesBefore(_ left: (key: PeerID, value: Entry), _ right: (key: PeerID, value: Entry)) -> Bool {
            let (isLeftNew, isRightNew) = (newest.contains(left.key), newest.contains(right.key))
            if isLeftNew != isRightNew { return isRightNew }
            if left.value.lastSeen != right.value.lastSeen {
                return left.value.lastSeen < right.value.lastSeen
            }
            if left.value.since != right.value.since { return left.value.since > right.value.since }
            return left.key < right.key
        }
        let unpaired = entries.lazy.filter { !$0.value.isPaired }
        // Nearly always it is one, for which sorting thousands would be a waste.
        let leaving =
            excess == 1
            ? unpaired.min(by: goesBefore).map { [$0.key] } ?? []
            : unpaired.sorted(by: goesBefore).prefix(excess).map(\.key)
        for id in leaving { remove(id) }
        return leaving
    }
}

/// All that was changed about one peer and is not in the file yet.
///
/// Changes are kept, not their outcome: what another process has changed about the same peer meanwhile stays, as far as
/// nothing here says otherwise.
package struct TrustChange {
    enum PairingChange {
        case paired(CalendarDay)
        case unpaired
    }

    /// Whether everything known before is forgotten first.
    var forgets = false
    /// Under which name it was met last, and when.
    var seen: (name: DisplayName, day: CalendarDay)?
    var pairing: PairingChange?

    package static let forget = TrustChange(forgets: true)
    package static let unpair = TrustChange(pairing: .unpaired)
    package static func remember(_ name: DisplayName, on day: CalendarDay) -> TrustChange {
        TrustChange(seen: (name, day))
    }
    package static func pair(_ name: DisplayName, on day: CalendarDay) -> TrustChange {
        TrustChange(seen: (name, day), pairing: .paired(day))
    }

    /// Both changes as one, `later` after this one.
    func followed(by later: TrustChange) -> TrustChange {
        if later.forgets { return later }
        return TrustChange(forgets: forgets, seen: later.seen ?? seen, pairing: later.pairing ?? pairing)
    }
}
