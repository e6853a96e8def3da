/// The announcement of a session in the entries of a text record: the pairs `v` and `id`, the program's own pairs, and
/// marks, which are keys without a value. The mark `full` says that the session accepts no more peers; `of:` and a
/// PeerID name the identity that it acts for, if that is not its own key.
package enum AnnouncementText {
    /// The version of the pairs. A peer that also understands a later one says so in the hello.
    private static let version = "1"
    private static let versionKey = "v"
    package static let identityKey = "id"
    // A program's pairs all have values, and readers of earlier versions skip a key without one. So no program can set
    // a mark, and no reader takes one for a program's pair.
    private static let fullKey = "full"
    private static let principalPrefix = "of:"

    /// Why an announcement is not one of a Nigh session.
    package enum Problem: Error, Hashable, CustomStringConvertible {
        case noVersion
        case noIdentity
        case badVersion(String)
        case badIdentity(String)

        package var description: String {
            switch self {
            case .noVersion: "no v="
            case .noIdentity: "no id="
            case .badVersion(let text): "v=\(text) is not a version"
            case .badIdentity(let text): "id=\(text) is not a PeerID"
            }
        }
    }

    /// Returns the pairs for `advertisement`.
    package static func entries(of advertisement: Advertisement) -> [TextEntry] {
        let own = [(versionKey, version), (identityKey, advertisement.peer.description)]
        let info = advertisement.info.pairs.sorted { $0.key < $1.key }
        let pairs = (own + info).compactMap { TextEntry(key: $0.0, value: $0.1) }
        var marks: [String] = []
        if let identity = advertisement.identity { marks.append("\(principalPrefix)\(identity)") }
        // Of two entries with the same key the first one counts, so a program's own pair stays as it is.
        if advertisement.isFull, !pairs.contains(where: isFullEntry) { marks.append(fullKey) }
        return pairs + marks.compactMap { TextEntry(key: $0, value: nil) }
    }

    private static func isFullEntry(_ entry: TextEntry) -> Bool { entry.key.lowercased() == fullKey }

    /// The identity that the first mark of this kind names, unless it is the peer itself.
    private static func principal(in entries: [TextEntry], of peer: PeerID) -> PeerID? {
        let mark = entries.lazy.filter { $0.value == nil }.map { $0.key.lowercased() }
            .first { $0.hasPrefix(principalPrefix) }
        guard let mark, let identity = PeerID(String(mark.dropFirst(principalPrefix.count))) else {
            return nil
        }
        return identity == peer ? nil : identity
    }

    /// Reads an advertisement from the pairs. Invalid pairs of the program are left out: it matters more which peer is
    /// there.
    package static func advertisement(
        in entries: [TextEntry], of service: ServiceName, by name: String
    ) throws(Problem) -> Advertisement {
        guard let version = entries.value(of: versionKey) else { throw .noVersion }
        guard (1...3).contains(version.count), version.first != UInt8(ascii: "0"),
            version.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { throw .badVersion(printable(version)) }
        guard let identity = entries.value(of: identityKey) else { throw .noIdentity }
        guard let peer = PeerID(String(decoding: identity, as: UTF8.self)) else {
            throw .badIdentity(printable(identity))
        }
        return Advertisement(
            service: service, peer: peer, name: DisplayName(fitting: name, of: peer), info: info(in: entries),
            isFull: entries.first(where: isFullEntry).map { $0.value == nil } ?? false,
            identity: principal(in: entries, of: peer))
    }

    private static func info(in entries: [TextEntry]) -> DiscoveryInfo {
        var info = DiscoveryInfo.none
        for entry in entries.sorted(by: { $0.key < $1.key }) {
            guard let value = entry.value.flatMap({ String(validating: $0, as: UTF8.self) }) else { continue }
            let more = info.pairs.merging([entry.key: value]) { first, _ in first }
            if let more = try? DiscoveryInfo(more) { info = more }
        }
        return info
    }

    /// Converts bytes from the network for a person: short and printable.
    private static func printable(_ bytes: [UInt8]) -> String {
        DisplayName(fitting: String(decoding: bytes.prefix(60), as: UTF8.self)).description
    }
}
