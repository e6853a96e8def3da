import NighCore

/// The calls that a peer makes to this session over one stream, on the loop.
///
/// `@unchecked Sendable`: used on the loop only.
final class CallsFromPeer: CallSide, @unchecked Sendable {
    private let peer: PeerID
    private weak let owner: Calls?
    private let loop: any EventLoop
    private var table = IncomingCalls()
    private var tasks: [UInt64: Task<Void, Never>] = [:]
    private var stream: CallStream?

    init(_ peer: PeerID, over stream: ByteStream, of owner: Calls, on loop: any EventLoop, messageLimit: Int)
    {
        self.peer = peer
        self.owner = owner
        self.loop = loop
        self.stream = CallStream(stream, on: loop, messageLimit: messageLimit, side: self)
    }

    /// The number of calls that are not over.
    var count: Int { table.count }

    func proceed() { stream?.proceed() }

    func end(_ reason: NighError) { stream?.end(reason) }

    /// Begins what may begin now.
    private func begin() {
        guard let owner else { return }
        while owner.mayBegin(peer), let call = table.nextCall() {
            guard let handler = owner.handler(of: call.name) else {
                table.answer(call.number, .unknownName)
                continue
            }
            tasks[call.number] = owner.run(handler, call.content, for: peer) { [weak self] outcome in
                self?.finish(call.number, outcome)
            }
        }
    }

    private func finish(_ number: UInt64, _ outcome: CallOutcome) {
        guard tasks.removeValue(forKey: number) != nil else { return }
        table.answer(number, owner?.outcome(outcome, for: peer) ?? outcome)
    }

    /// Cancels the task of a call that has begun.
    private func cancel(_ number: UInt64) { tasks.removeValue(forKey: number)?.cancel() }

    // MARK: The stream

    func receive(_ record: CallRecord, count: Int) throws(WireError) {
        if let number = try table.receive(record, count: count, now: loop.now) { cancel(number) }
    }

    /// Calls begin only as long as the answers to the earlier ones can leave.
    func nextFrame() -> ByteSlice? {
        begin()
        return table.nextFrame()
    }

    var nextDeadline: Moment? { table.nextDeadline }

    func deadlinePassed() {
        while let number = table.takeExpired(now: loop.now) { cancel(number) }
    }

    func streamEnded(_ reason: NighError) {
        stream = nil
        for number in table.end() { cancel(number) }
        owner?.streamEnded(self, of: peer)
    }
}
