import Arguments
import Measuring
import NighCore

/// What `nigh ping` is to do once it has found the peer.
struct PingPlan: Sendable {
    /// How many are sent; nil until somebody interrupts.
    var count: Int?
    /// From one to the next; zero where the next goes out as soon as the one before is answered.
    var interval: Duration
    /// Bytes of its payload.
    var size: Int
    /// For how long an answer is waited for.
    var timeout: Duration
    /// Whether the first reply is the end of it.
    var endsWithReply: Bool
    /// Whether single replies are left out.
    var isQuiet: Bool
}

/// What a link must be like for the status to be 0.
struct PingThresholds: Sendable {
    var p99: Duration?
    /// Of all that were sent, 0 to 1.
    var loss: Double?

    /// Those that `tally` misses, in words.
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
    /// A share of all, as in `5%`; what it comes to is between 0 and 1.
    static var percent: Notation {
        Notation("PERCENT", write: { Figures.percent($0) }) { text in
            let digits = text.hasSuffix("%") ? String(text.dropLast()) : text
            guard digits.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "." }), let number = Double(digits),
                (0...100).contains(number)
            else { throw Misuse("\"\(text)\" is no percentage as in 5% or 0.5%") }
            return number / 100
        }
    }
}
