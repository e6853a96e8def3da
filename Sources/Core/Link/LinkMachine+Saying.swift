// What a link says besides messages: requests and answers, standings, pings.

extension LinkMachine {
    /// Pings that may wait for their answers; more than a session lets wait, since the link asks too.
    static let pingsRemembered = 256

    /// Sends a request; one to resume also behind this side's hello, before the other's has come: the version both speak is
    /// known from the link before.
    func send(_ request: ConversationRequest, isResume: Bool) {
        guard phase == .open || (isResume && phase == .greeting) else { return }
        control.write(isResume ? .resume : .invite, payload: request.payload)
    }

    func send(_ acceptance: ConversationAcceptance) {
        guard phase == .open else { return }
        control.write(.accept, payload: acceptance.payload)
    }

    func send(_ refusal: ConversationRefusal) {
        guard phase == .open else { return }
        control.write(.decline, payload: refusal.payload)
    }

    func send(_ message: PairingMessage) {
        guard phase == .open else { return }
        control.write(.pair, payload: message.payload)
    }

    /// Tells the other side where this one stands; allocates nothing.
    func send(_ standing: Standing) {
        guard phase == .open else { return }
        standing.write(to: control.reserve(.acknowledge, payloadLength: Standing.byteCount))
    }

    /// Sends a ping whose pong will be a `Step.pong` with `token`; the highest bit of tokens is the link's own.
    package func ping(token: UInt64, payload: [UInt8], now: Moment) {
        guard phase == .open else { return }
        if pingsSent.count >= Self.pingsRemembered,
            let oldest = pingsSent.min(by: { $0.value < $1.value })
        {
            pingsSent.removeValue(forKey: oldest.key)
        }
        pingsSent[token] = now
        var writer = FieldWriter()
        writer.write(token)
        writer.write(raw: payload)
        control.write(.ping, payload: writer.bytes)
    }

    /// Has the other side answer, and with the answer say what it has received.
    func sendAutomaticPing(now: Moment) {
        ping(token: nextAutomaticPing, payload: [], now: now)
        nextAutomaticPing = (nextAutomaticPing &+ 1) | Self.firstAutomaticPing
    }

    /// The answer to a ping, where it is to one of this side's.
    func interpretPong(_ frame: FrameDecoder.Frame, now: Moment) throws(WireError) -> Step? {
        var reader = FieldReader(frame.bytes)
        let token = try reader.number(UInt64.self, "a pong's token")
        guard let sent = pingsSent.removeValue(forKey: token) else { return nil }
        let span = now - sent
        statistics.roundTrip.measured(span)
        return .pong(token: token, roundTrip: span)
    }
}
