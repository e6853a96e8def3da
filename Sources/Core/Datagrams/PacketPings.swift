/// The pings on a datagram path: probes that wait for their answers.
///
/// A ping that is wanted before the path is open waits until that is decided. No packet is sent twice, so a lost ping
/// stays lost.
package struct PacketPings {
    /// Why a ping has no answer.
    package enum Failure: Error, Equatable {
        /// None came in time.
        case lost
        /// Packets do not pass, or the other side does not say where it takes any.
        case blocked
    }

    /// A ping that was asked for.
    package struct Request {
        /// The number under which its result is returned.
        let call: UInt64
        /// The number of bytes that make its packet longer than a bare ping, as far as the path carries them.
        let padding: Int

        package init(call: UInt64, padding: Int) {
            self.call = call
            self.padding = padding
        }
    }

    /// The round trip of a ping, or the reason why it has none.
    package struct Result: Equatable {
        let call: UInt64
        package let outcome: Swift.Result<Moment.Span, Failure>
    }

    /// A ping to send.
    struct PingToSend: Equatable {
        let token: UInt64
        let padding: Int
    }

    private struct UnderWay {
        let request: Request
        let token: UInt64
        /// When it left; while it waits, when it was wanted.
        var since: Moment
        var hasLeft = false
    }

    /// How long a ping waits for its answer, or for the path.
    private static let patience = Moment.Span.seconds(5)

    private var underWay: [UnderWay] = []
    private var results: [Result] = []

    /// The number of pings whose result was not taken yet.
    var count: Int { underWay.count + results.count }

    /// Adds a ping, which waits until `depart` is called.
    mutating func add(_ request: Request, token: UInt64, now: Moment) {
        underWay.append(UnderWay(request: request, token: token, since: now))
    }

    /// Returns the pings that wait. They count as sent from now on.
    mutating func depart(now: Moment) -> [PingToSend] {
        var pings: [PingToSend] = []
        for index in underWay.indices where !underWay[index].hasLeft {
            underWay[index].hasLeft = true
            underWay[index].since = now
            pings.append(PingToSend(token: underWay[index].token, padding: underWay[index].request.padding))
        }
        return pings
    }

    /// Takes an answer. Returns whether it answers a ping.
    mutating func answered(_ token: UInt64, now: Moment) -> Bool {
        guard let index = underWay.firstIndex(where: { $0.token == token && $0.hasLeft }) else {
            return false
        }
        let ping = underWay.remove(at: index)
        results.append(Result(call: ping.request.call, outcome: .success(now - ping.since)))
        return true
    }

    /// Fails the pings that wait for the path.
    mutating func block() { fail(.blocked) { !$0.hasLeft } }

    /// Forgets all pings, and returns their requests. Results must have been taken.
    mutating func abandon() -> [Request] {
        precondition(results.isEmpty, "the result of a ping was not taken")
        defer { underWay = [] }
        return underWay.map(\.request)
    }

    /// Fails the pings whose time is up.
    mutating func timeArrived(now: Moment) {
        fail(.blocked) { !$0.hasLeft && now - $0.since >= Self.patience }
        fail(.lost) { now - $0.since >= Self.patience }
    }

    private mutating func fail(_ failure: Failure, _ condition: (UnderWay) -> Bool) {
        results += underWay.filter(condition).map {
            Result(call: $0.request.call, outcome: .failure(failure))
        }
        underWay.removeAll(where: condition)
    }

    /// When `timeArrived` must be called next.
    var deadline: Moment {
        underWay.reduce(.never) { min($0, $1.since + Self.patience) }
    }

    /// Whether results have come since the last call of `takeResults`.
    var hasResults: Bool { !results.isEmpty }

    /// Returns the results that have come since the last call.
    mutating func takeResults() -> [Result] {
        defer { results.removeAll(keepingCapacity: true) }
        return results
    }
}
