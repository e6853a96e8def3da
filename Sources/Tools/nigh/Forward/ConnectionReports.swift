import JSONText
import NighCore
import NighForwarding

/// Reports the connections of `nigh forward` and `nigh expose`. With `--json`, which keeps all items up to the end, it
/// leaves out those beyond the first thousand.
///
/// `@unchecked Sendable`: confined to the session's loop, but for constants.
final class ConnectionReports: @unchecked Sendable {
    static let listening = Results.Kind("listening", plural: "listening")
    static let connection = Results.Kind("connection", plural: "connections")

    /// The most items that `--json` keeps.
    private static let maximumItems = 1_000

    private let results: Results
    private var kept = 0

    init(_ results: Results) { self.results = results }

    /// Reports a change of a connection. Loop only.
    func report(_ change: String, _ members: [JSON.Member], _ line: Line) {
        if results.form == .json {
            guard kept < Self.maximumItems else { return }
            kept += 1
        }
        results.report(Self.connection, [.init("change", .text(change))] + members, lines: [line])
    }
}

/// The bytes of one connection, or of all.
struct CarriedBytes: CustomStringConvertible {
    let sent: Int
    let received: Int

    var members: [JSON.Member] {
        [.init("sent_bytes", .integer(sent)), .init("received_bytes", .integer(received))]
    }

    var description: String { "\(ByteCount(sent)) sent, \(ByteCount(received)) received" }

    /// The words about the end of a connection to a port, after the name of the peer.
    func endOfConnection(to port: UInt16, _ error: NighError?) -> String {
        "no longer connected to port \(port): \(self)" + (error.map { " (\($0.cause))" } ?? "")
    }
}

extension ForwardingRefusal {
    /// The reason in words for the person at the side that refuses.
    var reason: String {
        switch self {
        case .notAllowed: "the port is not exposed"
        case .nobodyListens: "no program listens there"
        case .failed: "the connection fails"
        case .notPaired, .full: "\(error(port: 0, peer: "").cause)"
        }
    }
}

extension Results {
    /// Reports the counts of connections as the summary of a command.
    func summarize(_ counts: ForwardingCounts) {
        let bytes = CarriedBytes(sent: counts.sent, received: counts.received)
        let connections = counts.openedEver == 1 ? "1 connection" : "\(counts.openedEver) connections"
        summarize(
            [.init("opened", .integer(counts.openedEver)), .init("refused", .integer(counts.refused))]
                + bytes.members,
            lines: [Line("\(connections), \(counts.refused) refused; \(bytes)")])
    }
}
