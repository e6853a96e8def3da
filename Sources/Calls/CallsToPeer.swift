import NighCore

/// The calls that this session makes to a peer, on the loop.
final class CallsToPeer: CallSide {
    typealias Completion = @Sendable (Result<CallOutcome, NighError>) -> Void

    private struct Waiter {
        /// The caller's own number of the call.
        let token: UInt64
        let completion: Completion
    }

    private let peer: Peer
    private let loop: any EventLoop
    private var table = OutgoingCalls<Waiter>()
    private var numbers: [UInt64: UInt64] = [:]
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
        self.stream = CallStream(stream, on: loop, messageLimit: messageLimit, side: self)
    }

    /// The number of calls that are not over.
    var count: Int { table.count }

    func begin(
        _ name: String, _ content: ByteSlice, until deadline: Moment, token: UInt64,
        completion: @escaping Completion
    ) {
        numbers[token] = table.begin(
            name, content, until: deadline, Waiter(token: token, completion: completion))
        stream?.proceed()
    }

    /// Ends the call of this token, if it is under way.
    func cancel(token: UInt64) {
        guard let number = numbers[token], let waiter = table.cancel(number) else { return }
        finish(waiter, .failure(NighError(.asking, .cancelled, peer: peer.label)))
        stream?.proceed()
    }

    private func finish(_ waiter: Waiter, _ result: Result<CallOutcome, NighError>) {
        numbers[waiter.token] = nil
        waiter.completion(result)
    }

    // MARK: The stream

    func receive(_ record: CallRecord, count: Int) throws(WireError) {
        guard let end = try table.receive(record), case .answered(let outcome) = end.reason else { return }
        finish(end.waiter, .success(outcome))
    }

    func nextFrame() -> ByteSlice? { table.nextFrame(now: loop.now) }

    var nextDeadline: Moment? { table.nextDeadline }

    func deadlinePassed() {
        while let end = table.takeExpired(now: loop.now) {
            finish(end.waiter, .failure(NighError(.asking, .timedOut, peer: peer.label)))
        }
    }

    func streamEnded(_ reason: NighError) {
        stream = nil
        onEnd(self)
        for end in table.end() {
            if case .ended(wasSent: true) = end.reason {
                let lost = NighError(.asking, .answerLost, peer: peer.label, attempts: [peer.named(reason)])
                finish(end.waiter, .failure(lost))
            } else {
                finish(end.waiter, .failure(NighError(.asking, reason.cause, peer: peer.label)))
            }
        }
    }
}
