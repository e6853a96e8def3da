import Arguments
import NighCore
import NighRecord
import SessionArguments

/// Selects the entries that a trace shows.
struct TraceFilter: Hashable, Sendable {
    var peer: String?
    var link: UInt64?
    /// The names of types of frames and kinds of packets. Empty means all of them, and also items that are neither.
    var types: Set<String> = []
    var direction: PacketDirection?
    /// The time of the first entry to show, from the beginning of the record.
    var since: Duration?
    var until: Duration?

    static let options = OptionGroup(
        "What is shown",
        Option(
            "peer", .text("PEER"),
            "only links to the peer with this name, or with a PeerID that begins with this"),
        Option("link", .integer("NUMBER", in: 1 ... .max), "only this link"),
        Option(
            repeated: "type", .choice(typeNames, "TYPE", isListed: false),
            "only frames or packets of this type"),
        Option(
            "direction", .choice(of: DirectionName.self), "only received frames, or only sent ones"),
        Option("since", .duration(), "only from this time after the beginning on"),
        Option("until", .duration(), "only up to this time after the beginning")
    ) { peer, link, types, direction, since, until in
        TraceFilter(
            peer: peer, link: link.map { UInt64($0) }, types: Set(types),
            direction: direction.map { $0 == .in ? .incoming : .outgoing }, since: since, until: until)
    }

    enum DirectionName: String, CaseIterable, Sendable {
        case `in`
        case out
    }

    static let typeNames =
        ["preface"] + FrameType.allCases.map { FrameType.name(of: $0.rawValue) } + [everyPacket]
        + DatagramContent.kindNames.map { PacketSummary.namePrefix + $0 }

    /// Stands for packets of all kinds.
    private static let everyPacket = "packet"

    /// Whether only frames and packets are shown.
    var isAboutFrames: Bool { !types.isEmpty || direction != nil }

    /// Returns whether frames or packets of that direction and type are shown, regardless of the peer.
    func includes(_ direction: PacketDirection, _ type: String) -> Bool {
        (self.direction == nil || self.direction == direction)
            && (types.isEmpty || types.contains(type)
                || types.contains(Self.everyPacket) && type.hasPrefix(PacketSummary.namePrefix))
    }

    /// Returns whether entries at that time are shown.
    func includes(elapsed: Moment.Span) -> Bool {
        if let since, elapsed < Moment.Span(since) { return false }
        if let until, elapsed > Moment.Span(until) { return false }
        return true
    }

    /// Returns whether the filter matches the peer of that link.
    func matches(_ state: LinkState) -> Bool {
        guard let peer else { return true }
        return state.peer.map { PeerName(peer).matches($0, state.greeting?.name) } ?? false
    }
}
