import Glibc
import JSONText
import NighCore
import NighRecord

/// Makes lines from the entries of a record. It follows each link, so that a frame is reported with its peer, its
/// number and its round trip.
struct Trace {
    /// The report of one entry.
    struct Item {
        let kind: Results.Kind
        let members: [JSON.Member]
        let lines: [Line]
        var tally = TraceTotals.Tally.nothing
    }

    static let linkKind = Results.Kind("link", plural: "links")
    static let frameKind = Results.Kind("frame", plural: "frames")
    static let packetKind = Results.Kind("packet", plural: "path_packets")
    static let gapKind = Results.Kind("gap", plural: "gaps")

    private let filter: TraceFilter
    private let dumpsPayloads: Bool
    private var links: [UInt64: LinkState] = [:]
    private var conversations = TracedConversations()
    /// Items that wait until the peer at the other end of their link is known.
    private var held: [UInt64: [Item]] = [:]
    /// When the record begins. If the record does not say, this is the time of its first entry.
    var startTime: Int64?
    private(set) var totals = TraceTotals()

    /// The maximum number of items that wait for the hello of one link. It is enough for all entries that can pass
    /// before both hellos; more are dropped.
    private static let heldLimit = 64

    init(_ filter: TraceFilter, dumpsPayloads: Bool) {
        self.filter = filter
        self.dumpsPayloads = dumpsPayloads
    }

    /// Takes one more entry, and returns the items to report.
    mutating func add(_ entry: RecordEntry) -> [Item] {
        let start = startTime ?? entry.time
        startTime = start
        let elapsed = Moment.Span(nanoseconds: entry.time &- start)
        if case .gap(let entries, let bytes) = entry.content {
            totals.gap(entries: entries, bytes: bytes)
            for link in Array(links.keys) { links[link]?.resetCounts() }
            conversations.reset()
            return filter.includes(elapsed: elapsed) ? [gap(entry, elapsed, entries, bytes)] : []
        }
        var state = links[entry.link] ?? LinkState()
        let item = item(for: entry, elapsed, &state)
        links[entry.link] = state
        var isOver = false
        if case .ended = entry.content { isOver = true }
        defer { if isOver { links[entry.link] = nil } }
        let items = ready(item, of: entry.link, state, isOver: isOver)
        for item in items { totals.count(item.tally) }
        return items
    }

    /// Returns the items to report now: none as long as it is not known whether the filter matches the peer.
    private mutating func ready(_ item: Item?, of link: UInt64, _ state: LinkState, isOver: Bool) -> [Item] {
        guard filter.peer != nil else { return item.map { [$0] } ?? [] }
        guard state.greeting != nil || isOver else {
            if let item, held[link, default: []].count < Self.heldLimit {
                held[link, default: []].append(item)
            }
            return []
        }
        let before = held.removeValue(forKey: link) ?? []
        return filter.matches(state) ? before + (item.map { [$0] } ?? []) : []
    }

    private mutating func item(
        for entry: RecordEntry, _ elapsed: Moment.Span, _ state: inout LinkState
    ) -> Item? {
        let isInTime = filter.includes(elapsed: elapsed) && (filter.link == nil || filter.link == entry.link)
        switch entry.content {
        case .opened(let opening):
            state = LinkState(isComplete: true)
            state.opening = opening
            let here = opening.localAddress.map { ", here \($0)" } ?? ""
            let text =
                (opening.isDialled ? "dialled over " : "accepted over ") + opening.scheme
                + (opening.remoteAddress.map { ", there \($0)" } ?? "") + here
            return isInTime ? event(entry, elapsed, state, "opened", text, opening: opening) : nil
        case .secured(let peer, let wasResumed):
            state.provenPeer = peer
            let text = "proven: \(peer)" + (wasResumed ? ", by a ticket" : "")
            return isInTime ? event(entry, elapsed, state, "secured", text, wasResumed: wasResumed) : nil
        case .greeted(let greeting):
            state.greeting = greeting
            return isInTime
                ? event(entry, elapsed, state, "greeted", "\(greeting.name) is \(greeting.peer)") : nil
        case .ended(let ending):
            let code = ending.code.map { " (\(LinkClose.name(of: $0)))" } ?? ""
            let text = "\(ending.isByPeer ? "ended by the peer" : "ended")\(code): \(ending.reason)"
            return isInTime ? event(entry, elapsed, state, "ended", text, ending: ending) : nil
        case .preface(let direction, let bytes):
            let summary = Self.summary(ofPreface: bytes)
            guard isInTime, filter.includes(direction, "preface") else { return nil }
            return frame(
                entry, elapsed, state, direction, "preface", bytes.count, bytes, length: bytes.count, summary)
        case .frame(let frame):
            let summary = FrameSummary(of: frame, at: entry.time, in: &state, &conversations)
            let name = FrameType.name(of: frame.type)
            guard isInTime, filter.includes(frame.direction, name) else { return nil }
            return self.frame(
                entry, elapsed, state, frame.direction, name, frame.length, frame.payload,
                length: frame.length, summary)
        case .packet(let packet):
            let summary = PacketSummary(of: packet, in: &state)
            if packet.direction == .incoming {
                let missing = state.received(packet: packet.number, connection: packet.connection)
                if isInTime, filter.direction != .outgoing, filter.matches(state) {
                    totals.count(missingPackets: missing)
                }
            }
            guard isInTime, filter.includes(packet.direction, summary.name) else { return nil }
            return item(entry, elapsed, state, packet, summary)
        case .gap: return nil
        }
    }

    private static func summary(ofPreface bytes: ByteSlice) -> FrameSummary {
        do throws(WireError) {
            let preface = try bytes.withUnsafeBytes { bytes throws(WireError) in try Preface(reading: bytes) }
            let kinds = [(Preface.Security.tls13, "TLS 1.3"), (.plaintext, "plaintext")].filter {
                preface.security.contains($0.0)
            }
            return FrameSummary(
                text: kinds.isEmpty
                    ? "accepts nothing" : "accepts " + kinds.map(\.1).joined(separator: " and "))
        } catch {
            var summary = FrameSummary(text: "breaks the protocol: \(error.message)")
            summary.fault = error.message
            return summary
        }
    }

    // MARK: Lines

    private func event(
        _ entry: RecordEntry, _ elapsed: Moment.Span, _ state: LinkState, _ name: String, _ text: String,
        opening: LinkOpening? = nil, wasResumed: Bool? = nil, ending: LinkEnding? = nil
    ) -> Item? {
        guard !filter.isAboutFrames else { return nil }
        var members = common(entry, elapsed, state) + [.init("event", .text(name))]
        if let opening {
            members += [
                .init("is_dialled", .bool(opening.isDialled)), .init("transport", .text(opening.scheme)),
                .init("local_address", JSON(opening.localAddress?.description)),
                .init("remote_address", JSON(opening.remoteAddress?.description)),
            ]
        }
        if let wasResumed { members.append(.init("was_resumed", .bool(wasResumed))) }
        if let ending {
            members += [
                .init("cause", .text(ending.reason)), .init("code", JSON(ending.code.map { Int($0) })),
                .init("code_name", JSON(ending.code.map(LinkClose.name))),
                .init("is_by_peer", .bool(ending.isByPeer)),
            ]
        }
        let line =
            head(entry) + Line("--  ", .faint) + Line(name, .strong).padded(to: 12) + Line("  \(text)")
        return Item(
            kind: Self.linkKind, members: members, lines: [line], tally: opening == nil ? .nothing : .link)
    }

    private func frame(
        _ entry: RecordEntry, _ elapsed: Moment.Span, _ state: LinkState, _ direction: PacketDirection,
        _ name: String, _ size: Int, _ payload: ByteSlice, length: Int, _ summary: FrameSummary
    ) -> Item {
        var members = common(entry, elapsed, state)
        members += [
            .init("direction", .text(direction == .incoming ? "in" : "out")), .init("frame", .text(name)),
            .init("bytes", .integer(size)),
        ]
        if payload.count < length { members.append(.init("recorded_bytes", .integer(payload.count))) }
        if let lane = summary.lane { members.append(.init("lane", .text("\(lane)"))) }
        if let message = summary.message {
            members.append(.init("message", .integer(Int(clamping: message))))
        }
        if let roundTrip = summary.roundTrip {
            members.append(.init("round_trip_ms", .number(roundTrip.milliseconds)))
        }
        if !summary.details.isEmpty { members.append(.init("details", .object(summary.details))) }
        if let fault = summary.fault { members.append(.init("fault", .text(fault))) }
        let bytes = dumpsPayloads ? payload.bytes : []
        if dumpsPayloads { members.append(.init("payload", .text(HexDump.digits(of: bytes)))) }
        let line = line(entry, state, direction, name, size, summary.text, isFault: summary.fault != nil)
        return Item(
            kind: Self.frameKind, members: members, lines: [line] + HexDump.lines(of: bytes).map { Line($0) },
            tally: .frame(name, direction, bytes: size, isFault: summary.fault != nil))
    }

    private func item(
        _ entry: RecordEntry, _ elapsed: Moment.Span, _ state: LinkState, _ packet: RecordedPacket,
        _ summary: PacketSummary
    ) -> Item {
        var members = common(entry, elapsed, state)
        members += [
            .init("direction", .text(packet.direction == .incoming ? "in" : "out")),
            .init("packet", .text(summary.name)), .init("number", .integer(Int(clamping: packet.number))),
            .init("connection", .text(PacketSummary.hex(packet.connection))),
            .init("bytes", .integer(packet.length)),
        ]
        if !packet.isWhole { members.append(.init("recorded_bytes", .integer(packet.content.count))) }
        if !summary.details.isEmpty { members.append(.init("details", .object(summary.details))) }
        if let fault = summary.fault { members.append(.init("fault", .text(fault))) }
        let bytes = dumpsPayloads ? packet.content.bytes : []
        if dumpsPayloads { members.append(.init("payload", .text(HexDump.digits(of: bytes)))) }
        let line = line(
            entry, state, packet.direction, summary.name, packet.length, summary.text,
            isFault: summary.fault != nil)
        return Item(
            kind: Self.packetKind, members: members,
            lines: [line] + HexDump.lines(of: bytes).map { Line($0) },
            tally: .packet(
                summary.name, packet.direction, bytes: packet.length, isFault: summary.fault != nil,
                completesMessage: summary.completesMessage))
    }

    private func line(
        _ entry: RecordEntry, _ state: LinkState, _ direction: PacketDirection, _ name: String, _ size: Int,
        _ text: String, isFault: Bool
    ) -> Line {
        let arrow = direction == .incoming ? "<-" : "->"
        return head(entry) + Line("\(arrow)  ") + Line(name, .strong).padded(to: 12)
            + Line("  \(size)").padded(to: 8, atStart: true) + Line("  \(state.label)  ", .faint)
            + Line(text, isFault ? .bad : .plain)
    }

    private func gap(
        _ entry: RecordEntry, _ elapsed: Moment.Span, _ entries: UInt64, _ bytes: UInt64
    ) -> Item {
        Item(
            kind: Self.gapKind,
            members: [
                .init("time", .text(ClockTime.full(entry.time))),
                .init("elapsed_ms", .number(elapsed.milliseconds)),
                .init("missing_entries", .integer(Int(clamping: entries))),
                .init("missing_bytes", .integer(Int(clamping: bytes))),
            ],
            lines: [
                Line("\(ClockTime.ofDay(entry.time))  ")
                    + Line(
                        "\(entries) entries with \(bytes) bytes are missing: they arrived faster than they could be written",
                        .warning)
            ])
    }

    private func head(_ entry: RecordEntry) -> Line {
        Line("\(ClockTime.ofDay(entry.time))  ", .faint) + Line("link \(entry.link)").padded(to: 8)
            + Line("  ")
    }

    private func common(_ entry: RecordEntry, _ elapsed: Moment.Span, _ state: LinkState) -> [JSON.Member] {
        [
            .init("time", .text(ClockTime.full(entry.time))),
            .init("elapsed_ms", .number(elapsed.milliseconds)),
            .init("link", .integer(Int(clamping: entry.link))), .init("peer", JSON(state.peer?.description)),
            .init("peer_name", JSON(state.greeting?.name.description)),
        ]
    }
}

/// Formats times for people and programs.
enum ClockTime {
    /// The local time of day, to the microsecond.
    static func ofDay(_ nanoseconds: Int64) -> String {
        var (seconds, rest) = split(nanoseconds)
        var parts = tm()
        localtime_r(&seconds, &parts)
        rest /= 1_000
        return "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)).\(digits(rest, 6))"
    }

    /// The date and time in UTC, to the nanosecond.
    static func full(_ nanoseconds: Int64) -> String {
        var (seconds, rest) = split(nanoseconds)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let day = "\(digits(Int64(parts.tm_year) + 1_900, 4))-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        return "\(day)T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)).\(digits(rest, 9))Z"
    }

    private static func split(_ nanoseconds: Int64) -> (time_t, Int64) {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return rest < 0 ? (Int(seconds) - 1, rest + 1_000_000_000) : (Int(seconds), rest)
    }

    private static func two(_ number: Int32) -> String { digits(Int64(number), 2) }

    private static func digits(_ number: Int64, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(count - text.count, 0)) + text
    }
}
