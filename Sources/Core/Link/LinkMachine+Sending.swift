// The frames of a link besides messages: requests and answers, standings, pings.

extension LinkMachine {
    /// The maximum number of pings that wait for their answers. It is higher than a session's
    /// limit, because the link sends pings too.
    static let maximumPendingPings = 256

    /// Sends a request. A request to resume may follow this side's hello directly, before the other side's hello has
    /// come, because the conversation's last link shows which version both sides speak.
    mutating func send(_ request: ConversationRequest, isResume: Bool) {
        guard phase == .open || (isResume && phase == .greeting) else { return }
        control.write(isResume ? .resume : .invite, request)
    }

    mutating func send(_ acceptance: ConversationAcceptance) {
        guard phase == .open else { return }
        control.write(.accept, acceptance)
    }

    /// Sends the context of this side's own invitation, directly before it accepts the other side's.
    mutating func send(crossedContext context: [UInt8]) {
        guard phase == .open else { return }
        control.write(.crossed, payload: context)
    }

    /// Sends an introducer's token, directly before this side invites.
    mutating func send(introduction: [UInt8]) {
        guard phase == .open else { return }
        control.write(.introduction, payload: introduction)
    }

    mutating func send(_ refusal: ConversationRefusal) {
        guard phase == .open else { return }
        control.write(.decline, refusal)
    }

    mutating func send(_ message: PairingMessage) {
        guard phase == .open else { return }
        control.write(.pair, payload: message.payload)
    }

    /// Tells the other side where to send datagrams.
    package mutating func send(_ offer: DatagramOffer) {
        guard phase == .open else { return }
        control.write(.datagrams, offer)
    }

    /// Sends this side's standing without allocating.
    mutating func send(_ standing: Standing) {
        guard phase == .open else { return }
        standing.writeAcknowledgement(
            to: control.reserve(.acknowledge, payloadLength: Standing.byteCount &+ standing.tailLength))
    }

    /// Sends a ping. Its pong becomes a `Step.pong` with `token`. Tokens with the highest bit set are the link's own.
    package mutating func ping(token: UInt64, payload: [UInt8], now: Moment) {
        guard phase == .open else { return }
        if pingsSent.count >= Self.maximumPendingPings { pingsSent.removeFirst() }
        pingsSent.append(SentPing(token: token, at: now))
        control.write(.ping, PingContent(token: token, extra: payload))
    }

    /// Sends a ping of the link's own. With the answer, the other side also says what it has received.
    mutating func sendAutomaticPing(now: Moment) {
        ping(token: nextAutomaticPing, payload: [], now: now)
        nextAutomaticPing = (nextAutomaticPing &+ 1) | Self.firstAutomaticPing
    }

    /// The shortest round trip that pings have measured; nil before the first.
    var shortestRoundTrip: Moment.Span? { statistics.roundTrip.minimum.map { Moment.Span($0) } }

    /// Handles a pong. Returns nil if it does not answer a ping of this side.
    mutating func pongReceived(_ token: UInt64, now: Moment) -> Step? {
        guard let index = pingsSent.firstIndex(where: { $0.token == token }) else { return nil }
        let span = now - pingsSent.remove(at: index).at
        // An idle link keeps no memory for pings.
        if pingsSent.isEmpty { pingsSent = [] }
        statistics.roundTrip.record(span)
        return .pong(token: token, roundTrip: span)
    }
}
