import NighCore

/// The calls that a peer makes to this session over one stream, on the loop: its questions, or its calls to one actor.
final class CallsFromPeer: CallSide {
    private let peer: PeerID
    /// The name of the actor's stream; nil for questions.
    private let actor: String?
    private weak let owner: Calls?
    private let loop: any EventLoop
    private var table = IncomingCalls()
    private var running: [UInt64: RunningCall] = [:]
    /// Begins calls of actors in order.
    private let starter: CallStarter?
    private var stream: CallStream?

    init(_ stream: ByteStream, of owner: Calls, on loop: any EventLoop, messageLimit: Int) {
        peer = stream.peer
        actor = stream.purpose == .actors ? stream.name : nil
        starter = actor == nil ? nil : CallStarter(on: loop.programExecutor)
        self.owner = owner
        self.loop = loop
        self.stream = CallStream(
            stream, on: loop, messageLimit: messageLimit, stage: actor == nil ? .asking : .calling, side: self
        )
    }

    /// The number of calls that are not over.
    var count: Int { table.count }

    func proceed() { stream?.proceed() }

    func end(_ reason: NighError) { stream?.end(reason) }

    /// Begins as many calls as the limits allow.
    private func begin() {
        guard let owner else { return }
        while running.count < Calls.mostRunning, owner.mayBegin(peer), let call = table.nextCall() {
            let begun = owner.begin(call, from: peer, to: actor, in: self) { [weak self] outcome in
                self?.finish(call.number, outcome)
            }
            guard let begun else {
                table.answer(call.number, .unknownName)
                continue
            }
            running[call.number] = begun
            if let starter { starter.add(begun) } else { begun.begin(on: loop.programExecutor) }
        }
    }

    private func finish(_ number: UInt64, _ outcome: CallOutcome?) {
        guard running.removeValue(forKey: number) != nil, let outcome else { return }
        table.answer(number, owner?.outcome(outcome, for: peer) ?? outcome)
    }

    /// Cancels the task of a call that has begun.
    private func cancel(_ number: UInt64) { running.removeValue(forKey: number)?.cancel() }

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
        owner?.streamEnded(self, of: peer, to: actor)
    }
}
