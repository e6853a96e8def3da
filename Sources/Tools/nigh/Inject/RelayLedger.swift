import JSONText

/// The totals of a relay.
struct RelayLedger {
    private var opened = 0
    private var failed = 0
    private var bytesOut = 0
    private var bytesIn = 0

    mutating func count(_ event: Relay.Event) {
        switch event {
        case .opened: opened += 1
        case .failed: failed += 1
        case .closed(_, let toll, _): count(toll)
        case .listening, .down, .trouble, .connected, .turnedAway: break
        }
    }

    mutating func count(_ toll: Relay.Toll) {
        bytesOut += toll.bytesOut
        bytesIn += toll.bytesIn
    }

    var members: [JSON.Member] {
        [
            .init("connection_count", .integer(opened)), .init("failed_count", .integer(failed)),
            .init("bytes_out", .integer(bytesOut)), .init("bytes_in", .integer(bytesIn)),
        ]
    }

    var words: [Line] {
        let connections = opened == 1 ? "1 connection" : "\(opened) connections"
        let failures = failed > 0 ? ", \(failed) of them not passed on" : ""
        return [Line("\(connections)\(failures); \(bytesOut) bytes out, \(bytesIn) bytes in")]
    }
}
