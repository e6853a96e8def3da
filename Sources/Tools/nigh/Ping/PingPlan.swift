import Arguments
import Measuring
import NighCore

/// The settings of `nigh ping`.
struct PingPlan: Sendable {
    /// The number of pings; nil means until a stop request.
    var count: Int?
    /// The time from one ping to the next. Zero means that the next one is sent as soon as the one before is answered.
    var interval: Duration
    /// The size of the payload in bytes.
    var size: Int
    /// How long an answer is waited for.
    var timeout: Duration
    /// Whether pings travel on the link or as datagrams.
    var path: PingPath
    /// Whether the command ends with the first reply.
    var endsWithReply: Bool
}

/// The thresholds that a link must meet for exit status 0.
struct PingThresholds: Sendable {
    var p99: Duration?
    /// The largest share of lost pings, 0 to 1, among those that were answered or lost.
    var loss: Double?

    /// Describes the thresholds that `tally` misses.
    func missed(by tally: PingTally) -> [String] {
        var missed: [String] = []
        if let p99, let measured = tally.roundTrips.histogram.percentile(0.99),
            measured > Moment.Span(p99).nanoseconds
        {
            let limit = Double(Moment.Span(p99).nanoseconds)
            missed.append(
                "p99 is \(Figures.span(nanoseconds: Double(measured))), above \(Figures.span(nanoseconds: limit))"
            )
        }
        if let loss, tally.loss > loss {
            missed.append("\(Figures.percent(tally.loss)) are lost, more than \(Figures.percent(loss))")
        }
        return missed
    }
}

extension Notation where Value == Double {
    /// A percentage, for example `5%`; its value is between 0 and 1.
    static var percent: Notation {
        Notation("PERCENT", write: { Figures.percent($0) }) { text in
            let digits = text.hasSuffix("%") ? String(text.dropLast()) : text
            guard digits.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "." }), let number = Double(digits),
                (0...100).contains(number)
            else { throw UsageError("\"\(text)\" is not a percentage such as 5% or 0.5%") }
            return number / 100
        }
    }
}
