import NighCore

/// The calls that this session makes over one stream, on the loop: its questions to a peer, or its calls to one actor.
final class CallsToPeer: CallSide {
    typealias Completion = @Sendable (Result<CallOutcome, NighError>) -> Void

    private let peer: Peer
    private let stage: NighError.Stage
    private let loop: any EventLoop
    private var table: OutgoingCalls<Completion>
    private var stream: CallStream?
    /// Called when the stream is over.
    private let onEnd: (CallsToPeer) -> Void

    init(
        _ peer: Peer, over stream: ByteStream, on loop: any EventLoop, messageLimit: Int,
        onEnd: @escaping (CallsToPeer) -> Void
    ) {
        self.peer = peer
        self.loop = loop
        self.onEnd = onEnd
        let isForActor = stream.purpose == .actors
        stage = isForActor ? .calling : .asking
        table = OutgoingCalls(numbersNames: isForActor)
        self.stream = CallStream(stream, on: loop, messageLimit: messageLimit, stage: stage, side: self)
    }

    /// The number of calls that are not over.
    var count: Int { table.count }

    /// Whether there is nothing to wait for.
    var isIdle: Bool { count == 0 && stream?.isWritten ?? false }

    /// Begins a call, and returns its number. The caller calls `proceed` next.
    func begin(
        _ name: String, _ content: ByteSlice, until deadline: Moment, completion: @escaping Completion
    ) throws(NighError) -> UInt64 {
        if let number = table.begin(name, content, until: deadline, completion) { return number }
        throw NighError(
            stage, .limit("methods of one actor", CallRecord.mostNames),
            advice: "divide it into several actors")
    }

    func proceed() { stream?.proceed() }

    /// Ends a call, if it is under way.
    func cancel(_ number: UInt64) {
        guard let completion = table.cancel(number) else { return }
        completion(.failure(NighError(stage, .cancelled, peer: peer.label)))
        proceed()
    }

    /// Ends the stream, which is idle.
    func finish() { stream?.finish() }

    // MARK: The stream

    func receive(_ record: CallRecord, count: Int) throws(WireError) {
        guard let end = try table.receive(record), case .answered(let outcome) = end.reason else { return }
        end.waiter(.success(outcome))
    }

    func nextFrame() -> ByteSlice? { table.nextFrame(now: loop.now) }

    var nextDeadline: Moment? { table.nextDeadline }

    func deadlinePassed() {
        while let end = table.takeExpired(now: loop.now) {
            end.waiter(.failure(NighError(stage, .timedOut, peer: peer.label)))
        }
    }

    func streamEnded(_ reason: NighError) {
        stream = nil
        onEnd(self)
        for end in table.end() {
            if case .ended(wasSent: true) = end.reason {
                let lost = NighError(stage, .answerLost, peer: peer.label, attempts: [peer.named(reason)])
                end.waiter(.failure(lost))
            } else {
                end.waiter(.failure(NighError(stage, reason.cause, peer: peer.label)))
            }
        }
    }
}
