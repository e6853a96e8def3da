import JSONText

/// The totals of a relay.
struct RelayTotals {
    private var opened = 0
    private var failed = 0
    private var bytesOut = 0
    private var bytesIn = 0

    mutating func count(_ event: Relay.Event) {
        switch event {
        case .opened: opened += 1
        case .failed: failed += 1
        case .closed(_, let traffic, _): count(traffic)
        case .listening, .down, .advertisingFailed, .connected, .rejected: break
        }
    }

    mutating func count(_ traffic: Relay.Traffic) {
        bytesOut += traffic.bytesOut
        bytesIn += traffic.bytesIn
    }

    var members: [JSON.Member] {
        [
            .init("connection_count", .integer(opened)), .init("failed_count", .integer(failed)),
            .init("bytes_out", .integer(bytesOut)), .init("bytes_in", .integer(bytesIn)),
        ]
    }

    var lines: [Line] {
        let connections = opened == 1 ? "1 connection" : "\(opened) connections"
        let failures = failed > 0 ? ", \(failed) of them failed" : ""
        return [Line("\(connections)\(failures); \(bytesOut) bytes out, \(bytesIn) bytes in")]
    }
}
