import JSONText
import Measuring
import NighLoop

/// The counts and round trips of all pings so far, in constant memory.
struct PingTally: Sendable {
    /// Why a ping counts as lost.
    enum Loss: String, Sendable, CaseIterable {
        /// No answer within the timeout.
        case timeout
        /// The link broke while the ping was under way.
        case linkLost = "link_lost"
        /// There was no link when the ping fell due: the session was looking for another.
        case noLink = "no_link"
        /// There was no conversation when the ping fell due: the peer is gone.
        case noPeer = "no_peer"
        /// Datagrams did not pass.
        case blocked
        /// Too many pings were under way already.
        case tooMany = "too_many"

        var text: String {
            switch self {
            case .timeout: "no answer in time"
            case .linkLost: "the link broke"
            case .noLink: "no link"
            case .noPeer: "the peer is gone"
            case .blocked: "packets do not pass beside the link"
            case .tooMany: "too many are under way"
            }
        }
    }

    private(set) var sent = 0
    private(set) var received = 0
    private(set) var losses: [Loss: Int] = [:]
    /// The number of lost pings whose answer came after the timeout.
    private(set) var late = 0
    /// The number of replies that came after the reply to a later ping.
    var reordered: Int { order.overtaken }
    private var order = AnswerOrder()
    /// How often the conversation continued over another link.
    var reconnects = 0
    /// How often the conversation ended and another began.
    var rejoins = 0
    private(set) var roundTrips = RoundTripRecord()
    /// The number of replies over each transport.
    private(set) var paths: [String: Int] = [:]

    var lost: Int { losses.values.reduce(0, +) }
    /// The number of pings that are neither answered nor lost yet.
    var underWay: Int { sent - received - lost }
    /// The share of lost pings among those that were answered or lost.
    var loss: Double { received + lost > 0 ? Double(lost) / Double(received + lost) : 0 }

    mutating func send() { sent += 1 }

    mutating func receive(_ number: Int, after roundTrip: Duration, over transport: String) {
        received += 1
        order.add(number)
        paths[transport, default: 0] += 1
        roundTrips.add(roundTrip)
    }

    mutating func lose(by loss: Loss) { losses[loss, default: 0] += 1 }

    mutating func receiveLate() { late += 1 }

    /// Counts the pings under way as not sent.
    mutating func discardPending() { sent -= underWay }

    var json: [JSON.Member] {
        [
            .init("sent", .integer(sent)), .init("received", .integer(received)),
            .init("lost", .integer(lost)),
            .init("loss_percent", .number((loss * 1_000_000).rounded() / 10_000)),
            .init(
                "losses",
                .object(Loss.allCases.map { JSON.Member($0.rawValue, .integer(losses[$0] ?? 0)) })),
            .init("late", .integer(late)), .init("reordered", .integer(reordered)),
            .init("round_trip_ms", roundTrips.json),
            .init("reconnects", .integer(reconnects)), .init("rejoins", .integer(rejoins)),
            .init(
                "paths",
                .list(
                    paths.sorted { $0.key < $1.key }.map {
                        ["transport": .text($0.key), "received": .integer($0.value)]
                    })),
        ]
    }

    /// One line with the counts, then the round trips and the transports.
    func lines(about peer: Peer) -> [Line] {
        var lines = [
            Line("\(peer.name) (\(peer.identity.short))", .strong)
                + Line(": \(sent) sent, \(received) received, ")
                + Line("\(Figures.percent(loss)) lost", lost > 0 ? .bad : .good)
        ]
        let reasons = Loss.allCases.compactMap { reason in losses[reason].map { "\($0) \(reason.text)" } }
        if !reasons.isEmpty { lines.append(Line("lost because: \(reasons.joined(separator: ", "))")) }
        if late > 0 { lines.append(Line("\(late) of the lost pings were answered after the timeout")) }
        if reordered > 0 { lines.append(Line("\(reordered) replies came after the reply to a later ping")) }
        lines += roundTrips.statistics.enumerated().map {
            Line(($0 == 0 ? "round trip: " : "            ") + $1)
        }
        if !paths.isEmpty {
            let counts = paths.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            lines.append(
                Line(
                    "carried by \(counts.joined(separator: ", ")); \(reconnects) reconnects, \(rejoins) rejoins"
                ))
        }
        return lines
    }
}
