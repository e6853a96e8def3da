import JSONText
import NighMemory

/// The totals of a relay.
struct RelayTotals {
    private var opened = 0
    private var failed = 0
    private var traffic = Relay.Traffic()

    mutating func count(_ event: Relay.Event) {
        switch event {
        case .opened: opened += 1
        case .failed: failed += 1
        case .closed(_, let traffic, _): count(traffic)
        case .listening, .down, .advertisingFailed, .connected, .rejected: break
        }
    }

    mutating func count(_ traffic: Relay.Traffic) {
        self.traffic.bytesOut += traffic.bytesOut
        self.traffic.bytesIn += traffic.bytesIn
        self.traffic.packetsOut += traffic.packetsOut
        self.traffic.packetsIn += traffic.packetsIn
    }

    var members: [JSON.Member] {
        [
            .init("connection_count", .integer(opened)), .init("failed_count", .integer(failed)),
        ] + traffic.members
    }

    var lines: [Line] {
        let connections = opened == 1 ? "1 connection" : "\(opened) connections"
        let failures = failed > 0 ? ", \(failed) of them failed" : ""
        let bytes = "\(traffic.bytesOut) bytes out, \(traffic.bytesIn) bytes in"
        return [Line("\(connections)\(failures); \(bytes)")] + (traffic.packetText.map { [Line($0)] } ?? [])
    }
}

extension Relay.Traffic {
    /// The counts, as members of a report.
    var members: [JSON.Member] {
        [
            .init("bytes_out", .integer(bytesOut)), .init("bytes_in", .integer(bytesIn)),
            .init("packets_out", .integer(packetsOut.passed)),
            .init("packets_in", .integer(packetsIn.passed)),
            .init("packets_lost_out", .integer(packetsOut.lost)),
            .init("packets_lost_in", .integer(packetsIn.lost)),
            .init("packets_doubled_out", .integer(packetsOut.doubled)),
            .init("packets_doubled_in", .integer(packetsIn.doubled)),
        ]
    }

    /// The packets in words; nil if there were none.
    var packetText: String? {
        guard packetsOut != PacketCounts() || packetsIn != PacketCounts() else { return nil }
        return "\(Self.text(packetsOut, "out")), \(Self.text(packetsIn, "in"))"
    }

    private static func text(_ counts: PacketCounts, _ direction: String) -> String {
        let faults = [(counts.lost, "lost"), (counts.doubled, "doubled")].filter { $0.0 > 0 }
        let list = faults.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
        return "\(counts.passed) packets \(direction)" + (list.isEmpty ? "" : " (\(list))")
    }
}

extension PacketCounts {
    fileprivate static func += (sum: inout PacketCounts, more: PacketCounts) {
        sum.passed += more.passed
        sum.lost += more.lost
        sum.doubled += more.doubled
    }
}
