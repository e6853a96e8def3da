import Glibc
import Measuring

/// Prints measurements, as lines of a table or as lines of JSON.
struct Table {
    let asJSON: Bool

    /// The columns for every measurement, with their decimals in a table and in JSON. A value is nil if it was not
    /// measured.
    private static let columns:
        [(
            head: String, width: Int, key: String, decimals: (table: Int, json: Int),
            value: @Sendable (_ of: Measurement, _ size: Int) -> Double?
        )] = [
            ("messages/s", 12, "perSecond", (0, 0), { of, _ in of.perSecond.rounded(.down) }),
            ("ns/message", 11, "nanoseconds", (1, 1), { of, _ in of.perMessage(of.nanoseconds) }),
            (
                "CPU ns", 9, "processorNanoseconds", (1, 1),
                { of, _ in of.perMessage(of.processorNanoseconds) }
            ),
            ("MB/s", 8, "megabytesPerSecond", (1, 1), { of, size in of.perSecond * Double(size) / 1e6 }),
            ("p50 µs", 9, "p50Microseconds", (2, 2), { of, _ in of.percentile(50) }),
            ("p99 µs", 9, "p99Microseconds", (2, 2), { of, _ in of.percentile(99) }),
            ("allocs/msg", 11, "allocations", (4, 5), { of, _ in of.perMessage(of.allocations) }),
        ]

    func begin() {
        if !asJSON { printRow("scenario", "size", Self.columns.map(\.head)) }
    }

    func add(_ measurement: Measurement, of scenario: Scenario, size: Int) {
        let cells = Self.columns.map { column in
            column.value(measurement, size).map {
                Figures.fixed($0, decimals: asJSON ? column.decimals.json : column.decimals.table)
            }
        }
        guard asJSON else { return printRow(scenario.name, Figures.size(size), cells.map { $0 ?? "" }) }
        let members = zip(Self.columns, cells).map { "\"\($0.key)\":\($1 ?? "null")" }
        print(
            "{\"scenario\":\"\(scenario.name)\",\"loops\":\"\(scenario.loops.rawValue)\",\"size\":\(size),"
                + "\"messages\":\(measurement.messages),\(members.joined(separator: ","))}")
    }

    private func printRow(_ scenario: String, _ size: String, _ cells: [String]) {
        let row = zip(Self.columns, cells).map { Figures.right($1, $0.width) }
        print(Figures.left(scenario, 13), Figures.right(size, 9), row.joined(separator: " "))
        fflush(nil)
    }
}
