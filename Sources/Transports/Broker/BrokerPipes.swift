import NighCore

/// The open pipes of a session over a broker, and the packets that they want to send.
///
/// A pipe end is known by a number, which is the last token of the subject under which its packets come. Pipes take
/// turns, a packet each, so a busy one holds up no other. When enough packets wait in this process, all pause.
///
/// Confined to the session's loop.
final class BrokerPipes {
    /// The sizes of pipes.
    struct Sizes {
        /// The most bytes of a pipe that wait unread at one end.
        var window = 512 << 10
        /// The windows of all pipes together, roughly: the bytes that may be on their way to this end, ahead of a small
        /// packet. Beyond it, new pipes have smaller windows, down to `leastWindow`.
        var allWindows = 4 << 20
        var leastWindow = 16 << 10
        /// The longest packet, also if the server takes longer ones: a message of 64 KiB in its frames, encrypted or
        /// not, is one packet.
        var packet = 72 << 10
        /// The most pipes at once.
        var pipes = 1_024
    }

    /// Where the packets of a pipe go: the reply address and token of its other end.
    struct FarEnd: Hashable {
        let replyAddress: BrokerReplyAddress
        let token: String
    }

    private struct OpenPipe {
        let pipe: SequencedPipe
        let far: FarEnd
        let subject: String
        /// The answer to the other end's request for this pipe; nil if this end has asked.
        let answer: [UInt8]?
    }

    /// How many lost pipes are remembered, to abort their other ends once the connection has come back.
    private static let mostOrphans = 1_024

    private let broker: any Broker
    private let subjects: BrokerSubjects
    private let scheme: String
    let sizes: Sizes
    private var limits: BrokerLimits?
    private var pipes: [UInt64: OpenPipe] = [:]
    /// The pipes that others have asked for.
    private var inbound: [FarEnd: UInt64] = [:]
    /// The pipes that may have packets, in the order in which they take turns.
    private var turns = Ring<UInt64>()
    private var hasTurn: Set<UInt64> = []
    /// The pipes that end when the broker has received everything published before a mark.
    private var marks: [UInt64: SequencedPipe] = [:]
    private var lastMark: UInt64 = 0
    private var orphans: [FarEnd] = []

    init(_ broker: any Broker, _ subjects: BrokerSubjects, scheme: String, sizes: Sizes) {
        self.broker = broker
        self.subjects = subjects
        self.scheme = scheme
        self.sizes = sizes
    }

    var count: Int { pipes.count }
    var isFull: Bool { pipes.count >= sizes.pipes }

    /// The window for the next pipe.
    var nextWindow: Int {
        max(sizes.leastWindow, min(sizes.window, sizes.allWindows / (pipes.count + 1)))
    }

    /// The longest packet that this end takes and sends.
    var longestPacket: Int { min(sizes.packet, limits?.longestPacket ?? sizes.packet) }

    /// Opens an end of a pipe.
    ///
    /// - Parameters:
    ///   - window: this end's window, which the other end knows.
    ///   - answer: the answer to the other end's request; nil if this end has asked.
    func open(
        _ number: UInt64, to end: BrokerMessage.PipeEnd, window: Int, answer: [UInt8]?,
        from local: TransportAddress?,
        at remote: TransportAddress?, on loop: any EventLoop
    ) -> SequencedPipe {
        let stream = SequencedStream(
            .init(packet: min(longestPacket, Int(end.longestPacket)), window: window),
            theirWindow: Int(min(end.window, UInt32(sizes.window))), at: loop.now)
        let pipe = SequencedPipe(
            stream, number: number, from: local, to: remote, scheme: scheme, on: loop, channel: self)
        let far = FarEnd(replyAddress: end.replyAddress, token: end.token)
        let subject = subjects.at(far.replyAddress, far.token)
        pipes[number] = OpenPipe(pipe: pipe, far: far, subject: subject, answer: answer)
        if let answer {
            inbound[far] = number
            broker.publish(answer, to: subject, answers: nil)
        }
        return pipe
    }

    /// Answers a repeated request. Returns false if it is a new one.
    func answerAgain(_ end: BrokerMessage.PipeEnd) -> Bool {
        guard let number = inbound[FarEnd(replyAddress: end.replyAddress, token: end.token)],
            let open = pipes[number]
        else {
            return false
        }
        if let answer = open.answer { broker.publish(answer, to: open.subject, answers: nil) }
        return true
    }

    /// Aborts the other end of a pipe, unless this side has an end of it.
    func decline(_ end: BrokerMessage.PipeEnd, _ number: UInt64) {
        guard pipes[number] == nil else { return }
        abort(FarEnd(replyAddress: end.replyAddress, token: end.token))
    }

    private func abort(_ far: FarEnd) {
        broker.publish(SequencedStream.abort, to: subjects.at(far.replyAddress, far.token), answers: nil)
    }

    /// Delivers a packet to the pipe with that number, if there is one.
    func receive(_ packet: ByteSlice, for number: UInt64) { pipes[number]?.pipe.receive(packet) }

    // MARK: The connection

    /// Continues over a new connection. Aborts the other ends of the pipes that the last one has lost, because the
    /// broker does not tell them.
    func connected(_ limits: BrokerLimits) {
        self.limits = limits
        for far in orphans { abort(far) }
        orphans = []
    }

    /// Ends all pipes, because the connection has broken.
    func disconnected(_ error: NighError) {
        limits = nil
        marks = [:]
        for open in pipes.values {
            open.pipe.fail(with: error)
            if orphans.count < Self.mostOrphans { orphans.append(open.far) }
        }
    }

    /// Ends all pipes and notifies only the other ends.
    func shutdown() {
        for open in pipes.values { open.pipe.end(abort: SequencedStream.abort) }
    }

    /// Confirms to a pipe that the broker has received everything published before the mark.
    func hasReceived(mark: UInt64) { marks.removeValue(forKey: mark)?.confirmSent() }

    /// Publishes packets, one of each pipe in turn, until enough wait.
    func pump() {
        guard let limits else { return }
        while broker.bytesWaiting < limits.queue, let number = turns.popFirst() {
            guard let open = pipes[number], let packet = open.pipe.nextPacket() else {
                hasTurn.remove(number)
                continue
            }
            broker.publish(packet, to: open.subject, answers: nil)
            turns.append(number)
        }
    }
}

extension BrokerPipes: PacketChannel {
    func hasPackets(_ pipe: SequencedPipe) {
        if hasTurn.insert(pipe.number).inserted { turns.append(pipe.number) }
        pump()
    }

    func hasSentAll(_ pipe: SequencedPipe) {
        guard limits != nil else { return }
        lastMark += 1
        marks[lastMark] = pipe
        broker.mark(lastMark)
    }

    func isOver(_ pipe: SequencedPipe, abort: [UInt8]?) {
        guard let open = pipes.removeValue(forKey: pipe.number) else { return }
        inbound[open.far] = nil
        if let abort { broker.publish(abort, to: open.subject, answers: nil) }
    }
}
