import JSONText
import Measuring
import NighCore

/// The results of one run.
struct BenchRun: Sendable {
    /// The messages in one direction, as both ends counted them.
    struct DirectionResult: Hashable, Sendable {
        let sent: BenchCount
        let received: BenchCount
    }

    /// One round trip, with its time since the run began.
    struct Echo: Hashable, Sendable {
        let at: Moment.Span
        let roundTrip: Moment.Span
    }

    let order: BenchOrder
    /// The transport that carried the conversation at the end of the run.
    var transport: String?
    var up: DirectionResult?
    var down: DirectionResult?
    /// The round trips of pings during the measured time.
    var roundTrips = RoundTripRecord()
    var echoes: [Echo] = []
    var pingsLost = 0
    /// Datagrams during the measured time; nil if none were asked for.
    var packets: PacketTrips?
    var reconnects = 0
    /// The progress reports of this end and of the other end, each by its own clock.
    private(set) var here: [BenchProgress] = []
    private(set) var there: [BenchProgress] = []

    /// The most progress reports that are kept of each end: more than honest ends send in the longest run.
    private static let mostReports = 10_000

    mutating func add(here progress: BenchProgress) {
        if here.count < Self.mostReports { here.append(progress) }
    }

    mutating func add(there progress: BenchProgress) {
        if there.count < Self.mostReports { there.append(progress) }
    }

    /// The directions that were measured, with their names.
    var directions: [(name: BenchDirection, result: DirectionResult)] {
        [(BenchDirection.up, up), (.down, down)].compactMap { name, result in result.map { (name, $0) } }
    }

    var json: [JSON.Member] {
        [
            .init("run", .integer(Int(order.run))), .init("direction", .text(order.direction.rawValue)),
            .init("size", .integer(Int(order.size))),
            .init("warm_up_seconds", .number(Double(order.warmUp) / 1_000)),
            .init("seconds", .number(Double(order.measured) / 1_000)),
            .init("transport", JSON(transport)), .init("up", up?.json ?? .null),
            .init("down", down?.json ?? .null), .init("round_trip_ms", roundTrips.json),
            .init("pings_lost", .integer(pingsLost)), .init("packets", packets?.json ?? .null),
            .init("reconnects", .integer(reconnects)),
        ]
    }

    /// The first cells of a direction's row, on the terminal and in the report: run, size, direction, sent, received
    /// twice, messages per second.
    func cells(_ name: BenchDirection, _ result: DirectionResult) -> [String] {
        [
            "\(order.run)", Figures.size(Int(order.size)),
            order.direction == .both ? "\(name.rawValue) of both" : name.rawValue,
            Figures.rate(result.sent.rate), Figures.rate(result.received.rate),
            Figures.bitRate(result.received.rate), Figures.amount(result.received.frequency, unit: "/s"),
        ]
    }

    /// The cells with the median and the 99th percentile of the round trips.
    func percentiles(absent: String) -> [String] {
        [0.5, 0.99].map { roundTrips.percentileInWords($0) ?? absent }
    }

    /// Adds a row for each direction. The round trips belong to the whole run and stand in the first row.
    func addRows(to table: inout TextTable) {
        for (index, (name, result)) in directions.enumerated() {
            let cells = cells(name, result) + (index > 0 ? ["", ""] : percentiles(absent: "-"))
            table.add(cells.enumerated().map { Line($0.element, $0.offset == 4 ? .strong : .plain) })
        }
    }

    /// The cells of a row about packets, with the round trips of the link beside them.
    func packetCells(absent: String) -> [String]? {
        packets.map {
            ["\(order.run), \(order.direction.rawValue)"] + $0.cells(absent: absent)
                + percentiles(absent: absent)
        }
    }

    static var table: TextTable {
        TextTable([
            ("run", .right), ("messages", .right), ("way", .left), ("sent", .right), ("received", .right),
            ("", .right), ("messages", .right), ("ping p50", .right), ("p99", .right),
        ])
    }
}

extension BenchRun.DirectionResult {
    var json: JSON { ["sent": sent.json, "received": received.json] }
}
