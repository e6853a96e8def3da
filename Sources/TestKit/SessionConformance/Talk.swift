import NighCore

/// The messages that one session sends another: of given lengths, on lanes of a conversation, with one task per lane
/// that waits for room. The bench's ledger accounts for what arrives.
final class Talk: @unchecked Sendable {
    // The bench's monitor guards what changes.
    private let bench: Bench
    private let stream: Int
    private let sender: SessionProbe
    private let receiver: SessionProbe
    private var lanesLeft: Int
    private var taken = 0
    private var problem: NighError?

    /// Starts to send.
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
            // Recorded before it is sent, since it may arrive before the call returns.
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

    /// The number of messages that the session has accepted.
    var sent: Int { bench.monitor.read { taken } }
    /// Whether every lane has sent all its messages, or failed.
    var isOver: Bool { bench.monitor.read { lanesLeft == 0 } }
    /// The error that ended it early.
    var error: NighError? { bench.monitor.read { problem } }
    /// The number of messages that the session has accepted, or is about to, and that have not arrived.
    var missing: Int { bench.monitor.read { bench.ledger.missing(in: stream) } }

    /// Waits until everything was sent and has arrived. Continues as long as something arrives within the rig's
    /// patience, because much of it takes longer on a busy machine.
    func finish() throws {
        try bench.wait(
            "session \(receiver.number) has all that session \(sender.number) sends, \(missing) are missing",
            while: { [sent, missing] }
        ) { self.isOver && self.missing == 0 }
        if let error { throw Bench.Failure(words: "session \(sender.number) could not send: \(error)") }
    }
}

extension Bench {
    /// Checks an arrived message against the ledger. Returns false if it belongs to no talk.
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

    /// From now on, checks what `receiver` gets from `sender`.
    fileprivate func expectTalk(from sender: SessionProbe, at receiver: SessionProbe) {
        monitor.change { talks[receiver.number, default: [:]][sender.id] = sender.number }
    }

    /// Waits for several talks.
    func finish(_ talks: [Talk]) throws { for talk in talks { try talk.finish() } }
}
