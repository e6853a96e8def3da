/// The content of a trust store in memory: peers in the order in which they were met, found by PeerID and by name.
///
/// A value without a file, a clock or a lock.
package struct TrustBook {
    package struct Entry: Equatable {
        package var name: DisplayName
        package var isPaired: Bool
        package var since: CalendarDay
        package var lastSeen: CalendarDay
        /// The position among all entries and comments. A new entry goes behind them.
        package let place: Int
        /// The text that a person wrote behind the entry.
        package var comment = ""
        /// The key of the name, kept because making it takes longer than all else that a connection asks of the store.
        fileprivate var nameKey = ""
    }

    /// The maximum number of entries.
    package static let maximumCount = 4_096

    package private(set) var entries: [PeerID: Entry] = [:]
    /// The lines that a person wrote between the entries, with their positions.
    package private(set) var comments: [(place: Int, text: String)] = []
    private var idsByName: [String: [PeerID]] = [:]
    private var nextPlace = 0

    package init() {}

    subscript(id: PeerID) -> Entry? { entries[id] }

    // MARK: Reading

    func trust(in id: PeerID, called name: DisplayName) -> PeerTrust {
        let known = entries[id]
        if let known {
            if known.isPaired { return .paired }
            if pairedCount == 0 { return .known }
        }
        let key = if let known, known.name == name { known.nameKey } else { Self.key(of: name) }
        // A peer that was met without anybody's decision does not get the name of a paired one by that.
        let others = (idsByName[key] ?? []).filter { $0 != id && (known == nil || isPaired($0)) }
        guard !others.isEmpty else { return known == nil ? .new : .known }
        return .newWithKnownName(
            of: others.sorted { left, right in
                let (isLeftPaired, isRightPaired) = (isPaired(left), isPaired(right))
                return isLeftPaired == isRightPaired ? left < right : isLeftPaired
            })
    }

    func isPaired(_ id: PeerID) -> Bool { entries[id]?.isPaired == true }

    /// Returns whether the same peers are paired as in `earlier`, and no peer that `earlier` knew was forgotten.
    /// Other known peers make no difference.
    func hasSameTrust(as earlier: TrustBook) -> Bool {
        entries.allSatisfy { id, entry in entry.isPaired == earlier.isPaired(id) }
            && earlier.entries.keys.allSatisfy { entries[$0] != nil }
    }

    private(set) var pairedCount = 0

    /// Returns a key that is the same for names that a person takes for the same.
    ///
    /// It ignores numbers at the end ("Puma #2"), upper and lower case, and invisible characters. It does not match
    /// letters of different scripts that look alike.
    private static func key(of name: DisplayName) -> String {
        var stem = NumberedName(name.description).stem
        // A long name is cut to make room for its number. So only the part that no
        // number could have replaced is compared.
        let longestNumber = " #\(NumberedName.upperBound)".utf8.count
        while stem.utf8.count > DisplayName.maximumByteCount - longestNumber { stem.removeLast() }
        var seen = String.UnicodeScalarView()
        for scalar in stem.unicodeScalars where scalar.properties.generalCategory != .format {
            seen.append(scalar.properties.isWhitespace ? " " : scalar)
        }
        return String(seen).lowercased().split(separator: " ").joined(separator: " ")
    }

    // MARK: Changing

    /// Appends an entry that was read from a file, behind everything else.
    package mutating func append(
        _ id: PeerID, name: DisplayName, isPaired: Bool, since: CalendarDay, lastSeen: CalendarDay,
        comment: String
    ) {
        put(
            Entry(
                name: name, isPaired: isPaired, since: since, lastSeen: lastSeen, place: takePlace(),
                comment: comment),
            for: id)
    }

    package mutating func append(comment: String) { comments.append((takePlace(), comment)) }

    private mutating func takePlace() -> Int {
        defer { nextPlace += 1 }
        return nextPlace
    }

    private mutating func put(_ entry: Entry, for id: PeerID) {
        remove(id)
        var entry = entry
        entry.nameKey = Self.key(of: entry.name)
        entries[id] = entry
        idsByName[entry.nameKey, default: []].append(id)
        if entry.isPaired { pairedCount += 1 }
    }

    private mutating func remove(_ id: PeerID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        if entry.isPaired { pairedCount -= 1 }
        idsByName[entry.nameKey]?.removeAll { $0 == id }
        if idsByName[entry.nameKey]?.isEmpty == true { idsByName[entry.nameKey] = nil }
    }

    /// Applies `change` to the entry of `id`.
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

    /// Forgets unpaired peers until the limit is met, and returns them.
    ///
    /// The peer that was seen longest ago goes first. Among peers last seen on the same day, the one that was met
    /// latest goes first, so a crowd of strangers only displaces itself. Peers in `newest` go last.
    package mutating func makeRoom(keeping newest: Set<PeerID> = []) -> [PeerID] {
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
        // Nearly always it is one peer, and then sorting thousands would be a waste.
        let leaving =
            excess == 1
            ? unpaired.min(by: goesBefore).map { [$0.key] } ?? []
            : unpaired.sorted(by: goesBefore).prefix(excess).map(\.key)
        for id in leaving { remove(id) }
        return leaving
    }
}

/// All changes about one peer that are not in the file yet.
///
/// The changes are kept, not their result. So the changes of another process to the same peer stay, unless a change
/// here overrides them.
package struct TrustChange {
    enum PairingChange {
        case paired(CalendarDay)
        case unpaired
    }

    /// Whether everything known about the peer is forgotten first.
    var forgets = false
    /// The name and the day of the last meeting.
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

    /// Returns both changes combined, with `later` after this one.
    func followed(by later: TrustChange) -> TrustChange {
        if later.forgets { return later }
        return TrustChange(forgets: forgets, seen: later.seen ?? seen, pairing: later.pairing ?? pairing)
    }
}
