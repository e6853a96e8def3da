import JSONText
import Measuring
import NighCore

/// What came of one run.
struct BenchRun: Sendable {
    /// What went one way, as both ends have counted it.
    struct Way: Hashable, Sendable {
        let sent: BenchCount
        let received: BenchCount
    }

    /// One round trip, at its time since the run began.
    struct Echo: Hashable, Sendable {
        let at: Moment.Span
        let roundTrip: Moment.Span
    }

    let order: BenchOrder
    /// What carried it at its end.
    var transport: String?
    var up: Way?
    var down: Way?
    /// Of pings while it was measured.
    var roundTrips = RoundTripRecord()
    var echoes: [Echo] = []
    var pingsLost = 0
    var reconnects = 0
    /// How far both ends have come, again and again, each by its own clock.
    var here: [BenchProgress] = []
    var there: [BenchProgress] = []

    /// Both ways, with what they are called.
    var ways: [(name: BenchDirection, way: Way)] {
        [(BenchDirection.up, up), (.down, down)].compactMap { name, way in way.map { (name, $0) } }
    }

    var json: [JSON.Member] {
        [
            .init("run", .integer(Int(order.run))), .init("direction", .text(order.direction.rawValue)),
            .init("size", .integer(Int(order.size))),
            .init("warm_up_seconds", .number(Double(order.warmUp) / 1_000)),
            .init("seconds", .number(Double(order.measured) / 1_000)),
            .init("transport", JSON(transport)), .init("up", up?.json ?? .null),
            .init("down", down?.json ?? .null), .init("round_trip_ms", roundTrips.json),
            .init("pings_lost", .integer(pingsLost)), .init("reconnects", .integer(reconnects)),
        ]
    }

    /// The first cells of a way's row, here and in the report: run, size, way, sent, received twice, messages a second.
    func cells(_ name: BenchDirection, _ way: Way) -> [String] {
        [
            "\(order.run)", Figures.size(Int(order.size)),
            order.direction == .both ? "\(name.rawValue) of both" : name.rawValue,
            Figures.rate(way.sent.rate), Figures.rate(way.received.rate),
            Figures.bitRate(way.received.rate), Figures.amount(way.received.frequency, unit: "/s"),
        ]
    }

    /// The cells of the round trips' median and 99th percentile.
    func percentiles(absent: String) -> [String] {
        [0.5, 0.99].map { roundTrips.percentileInWords($0) ?? absent }
    }

    /// A row for each way; round trips belong to all of the run, and stand in the first.
    func addRows(to table: inout TextTable) {
        for (index, (name, way)) in ways.enumerated() {
            let cells = cells(name, way) + (index > 0 ? ["", ""] : percentiles(absent: "-"))
            table.add(cells.enumerated().map { Line($0.element, $0.offset == 4 ? .strong : .plain) })
        }
    }

    static var table: TextTable {
        TextTable([
            ("run", .right), ("messages", .right), ("way", .left), ("sent", .right), ("received", .right),
            ("", .right), ("messages", .right), ("ping p50", .right), ("p99", .right),
        ])
    }
}

extension BenchRun.Way {
    var json: JSON { ["sent": sent.json, "received": received.json] }
}
