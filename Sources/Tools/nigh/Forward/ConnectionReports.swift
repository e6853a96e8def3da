import JSONText

/// Reports the connections of `nigh forward` and `nigh expose`. With `--json`, which keeps all items up to the end, it
/// leaves out those beyond the first thousand.
///
/// `@unchecked Sendable`: confined to the session's loop, but for what does not change.
final class ConnectionReports: @unchecked Sendable {
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
