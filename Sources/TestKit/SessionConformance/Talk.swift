import NighCore

/// What one session sends another: messages of chosen lengths on lanes of a conversation, one task a lane that waits
/// for room. The bench's ledger keeps account of what arrives.
final class Talk: @unchecked Sendable {
    // What changes is guarded by the bench's monitor.
    private let bench: Bench
    private let stream: Int
    private let sender: SessionProbe
    private let receiver: SessionProbe
    private var lanesLeft: Int
    private var taken = 0
    private var problem: NighError?

    /// Begins to send.
    init(
        _ bench: Bench, from sender: SessionProbe, to receiver: SessionProbe, lengths: [Int],
        on lanes: [Lane] = Lane.allCases
    ) {
        self.bench = bench
        self.sender = sender
        self.receiver = receiver
        lanesLeft = lanes.count
        stream = bench.monitor.change {
            bench.ledger.open(from: sender.number, life: 0, to: receiver.number)
        }
        bench.expectTalk(from: sender, at: receiver)
        for lane in lanes {
            bench.launch(for: sender) { await self.send(lengths, on: lane) }
        }
    }

    private func send(_ lengths: [Int], on lane: Lane) async {
        let row = lane == .main ? MessageLedger.Row.main : .bulk
        for length in lengths {
            // Entered before it is sent, since it may arrive before the call returns.
            let bytes = bench.monitor.change {
                let bytes = bench.ledger.nextMessage(in: stream, row: row, length: length)
                bench.ledger.accept(stream, row: row, length: bytes.count)
                return bytes
            }
            do throws(NighError) {
                try await sender.session.send(bytes, to: receiver.id, on: lane)
                bench.monitor.change { taken += 1 }
            } catch {
                bench.monitor.change {
                    bench.ledger.withdraw(stream, row: row)
                    problem = error
                }
                break
            }
        }
        bench.monitor.change { lanesLeft -= 1 }
    }

    /// How many messages the session has taken.
    var sent: Int { bench.monitor.read { taken } }
    /// Whether all were taken, or no more can be.
    var isOver: Bool { bench.monitor.read { lanesLeft == 0 } }
    /// What ended it early.
    var error: NighError? { bench.monitor.read { problem } }
    /// How many messages the session has taken, or is about to take, that have not arrived.
    var missing: Int { bench.monitor.read { bench.ledger.missing(in: stream) } }

    /// Waits until everything was sent and has arrived, for as long as something arrives within the rig's patience: on a busy
    /// machine much of it takes longer.
    func finish() throws {
        try bench.wait(
            "session \(receiver.number) has all that session \(sender.number) sends, \(missing) are missing",
            while: { [sent, missing] }
        ) { self.isOver && self.missing == 0 }
        if let error { throw Bench.Failure(words: "session \(sender.number) could not send: \(error)") }
    }
}

extension Bench {
    /// Enters a message that came in the ledger; false if it is none of a talk's.
    func judge(_ bytes: UnsafeRawBufferPointer, _ origin: MessageOrigin, at receiver: SessionProbe) -> Bool {
        monitor.change {
            guard origin.isReliable, let sender = talks[receiver.number]?[origin.peer] else { return false }
            let reader = MessageLedger.Reader(who: receiver.number, life: 0, conversation: nil)
            let row = origin.lane == .main ? MessageLedger.Row.main : .bulk
            if let fault = ledger.arrived(bytes, at: reader, from: sender, row: row) {
                violated("\(fault.rule.rawValue): \(fault.words)")
            }
            return true
        }
    }

    /// From here on what `receiver` gets from `sender` is judged.
    fileprivate func expectTalk(from sender: SessionProbe, at receiver: SessionProbe) {
        monitor.change { talks[receiver.number, default: [:]][sender.id] = sender.number }
    }

    /// Waits for several talks at once.
    func finish(_ talks: [Talk]) throws { for talk in talks { try talk.finish() } }
}
