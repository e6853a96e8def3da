import JSONText
import NighRecord

/// How much of each kind has passed in a trace.
struct TraceTotals {
    private struct Count {
        var frames = [0, 0]
        var bytes = [0, 0]
    }

    /// The part of the totals that comes from one reported item.
    enum Tally {
        case nothing
        case link
        case frame(String, PacketDirection, bytes: Int, isFault: Bool)
        case packet(String, PacketDirection, bytes: Int, isFault: Bool, completesMessage: Bool)
    }

    private var links = 0
    /// Frames and packets that break the protocol.
    private var faults = 0
    private var byType: [String: Count] = [:]
    /// The packets, and the messages in them, by direction.
    private var packets = [0, 0]
    private var messages = [0, 0]
    private var missingPackets = 0
    private var missing = (entries: 0 as UInt64, bytes: 0 as UInt64)

    mutating func count(_ tally: Tally) {
        switch tally {
        case .nothing: break
        case .link: links += 1
        case .frame(let type, let direction, let bytes, let isFault):
            count(type, direction, bytes)
            if isFault { faults += 1 }
        case .packet(let type, let direction, let bytes, let isFault, let completesMessage):
            count(type, direction, bytes)
            packets[Int(direction.rawValue)] += 1
            if isFault { faults += 1 }
            if completesMessage { messages[Int(direction.rawValue)] += 1 }
        }
    }

    /// Counts packets that were not received, though later ones were; a negative number once they are.
    mutating func count(missingPackets: Int) { self.missingPackets &+= missingPackets }

    private mutating func count(_ type: String, _ direction: PacketDirection, _ bytes: Int) {
        byType[type, default: Count()].frames[Int(direction.rawValue)] += 1
        byType[type, default: Count()].bytes[Int(direction.rawValue)] += bytes
    }

    mutating func gap(entries: UInt64, bytes: UInt64) {
        missing.entries &+= entries
        missing.bytes &+= bytes
    }

    private var sorted: [(key: String, value: Count)] {
        byType.sorted { left, right in
            let places = [left.key, right.key].map { TraceFilter.typeNames.firstIndex(of: $0) ?? .max }
            return places[0] == places[1] ? left.key < right.key : places[0] < places[1]
        }
    }

    var members: [JSON.Member] {
        [
            .init("link_count", .integer(links)), .init("fault_count", .integer(faults)),
            .init("missing_entries", .integer(Int(clamping: missing.entries))),
            .init("missing_bytes", .integer(Int(clamping: missing.bytes))),
            .init("packets_in", .integer(packets[0])), .init("packets_out", .integer(packets[1])),
            .init("packet_messages_in", .integer(messages[0])),
            .init("packet_messages_out", .integer(messages[1])),
            .init("missing_packets", .integer(max(missingPackets, 0))),
            .init(
                "totals",
                .list(
                    sorted.map { type, count in
                        [
                            "frame": .text(type), "frames_in": .integer(count.frames[0]),
                            "bytes_in": .integer(count.bytes[0]), "frames_out": .integer(count.frames[1]),
                            "bytes_out": .integer(count.bytes[1]),
                        ]
                    })),
        ]
    }

    private var packetLines: [Line] {
        guard packets != [0, 0] else { return [] }
        return [
            Line(
                "packets: \(packets[0]) in with \(messages[0]) messages, \(packets[1]) out with \(messages[1]); "
                    + "\(max(missingPackets, 0)) of those sent here are missing")
        ]
    }

    var lines: [Line] {
        guard !byType.isEmpty else { return ["nothing has passed"] }
        var table = TextTable([
            ("frames", .left), ("in", .right), ("bytes", .right), ("out", .right), ("bytes", .right),
        ])
        for (type, count) in sorted {
            table.add([
                Line(type), "\(count.frames[0])", "\(count.bytes[0])", "\(count.frames[1])",
                "\(count.bytes[1])",
            ])
        }
        return ["", "on \(links) \(links == 1 ? "link" : "links"):"] + table.lines + packetLines
    }
}
