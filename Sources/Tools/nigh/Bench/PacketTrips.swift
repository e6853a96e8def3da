import JSONText
import Measuring
import NighCore

/// The round trips of datagrams while their link is measured. Each packet is a ping, so the loss is that of both ways.
struct PacketTrips: Sendable {
    /// The time between two packets: a game sends about as often.
    static let pause = Moment.Span.milliseconds(20)
    /// The bytes of each packet beyond a ping's own.
    static let payload = [UInt8](repeating: 0, count: 200)
    /// A packet that was sent this long before the end of a run and has no answer is lost.
    static let patience = Moment.Span.seconds(1)

    private(set) var sent = 0
    private(set) var answered = 0
    /// The answers that came after the answer to a later packet.
    var reordered: Int { order.overtaken }
    private var order = AnswerOrder()
    private(set) var roundTrips = RoundTripRecord()
    private var underWay: [Int: Moment] = [:]

    /// Counts a packet. No other one, of this measurement or of others, has its number.
    mutating func send(_ number: Int, at moment: Moment) {
        sent += 1
        underWay[number] = moment
    }

    /// Takes in the answer to a packet. One of an earlier measurement changes nothing.
    mutating func receive(_ number: Int, after roundTrip: Duration) {
        guard underWay.removeValue(forKey: number) != nil else { return }
        answered += 1
        roundTrips.add(roundTrip)
        order.add(number)
    }

    /// Takes back a packet that could not be sent.
    mutating func withdraw(_ number: Int) {
        if underWay.removeValue(forKey: number) != nil { sent -= 1 }
    }

    /// Ends the measurement. Packets that were sent for less than `patience` and have no answer do not count.
    mutating func finish(at moment: Moment, patience: Moment.Span) {
        sent -= underWay.values.count { moment - $0 < patience }
        underWay = [:]
    }

    var lost: Int { sent - answered }
    var loss: Double { sent > 0 ? Double(lost) / Double(sent) : 0 }

    var json: JSON {
        [
            "sent": .integer(sent), "received": .integer(answered), "lost": .integer(lost),
            "loss_percent": .number((loss * 1_000_000).rounded() / 10_000), "reordered": .integer(reordered),
            "round_trip_ms": roundTrips.json,
        ]
    }

    /// The cells of a row: how many were sent, lost and reordered, the jitter, the median and the 99th percentile.
    func cells(absent: String) -> [String] {
        let jitter = roundTrips.histogram.count > 1 ? Figures.span(nanoseconds: roundTrips.jitter) : absent
        return ["\(sent)", Figures.percent(loss), "\(reordered)", jitter]
            + [0.5, 0.99].map { roundTrips.percentileInWords($0) ?? absent }
    }

    /// The headings of these cells, behind that of the run, and with those of the pings on the link behind them.
    static let headings = ["run", "packets", "lost", "reordered", "jitter", "p50", "p99", "link p50", "p99"]

    static var table: TextTable { TextTable(headings.map { ($0, $0 == "run" ? .left : .right) }) }
}
