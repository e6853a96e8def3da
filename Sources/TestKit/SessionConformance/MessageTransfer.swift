import NighCore

/// The messages that one session sends another: of given lengths, on lanes of a conversation, with one task per lane
/// that waits for room. The testbed's ledger accounts for what arrives.
final class MessageTransfer: @unchecked Sendable {
    // The testbed's monitor guards what changes.
    private let testbed: Testbed
    private let stream: Int
    private let sender: SessionProbe
    private let receiver: SessionProbe
    private var lanesLeft: Int
    private var taken = 0
    private var problem: NighError?

    /// Starts to send.
    init(
        _ testbed: Testbed, from sender: SessionProbe, to receiver: SessionProbe, lengths: [Int],
        on lanes: [Lane] = Lane.allCases
    ) {
        self.testbed = testbed
        self.sender = sender
        self.receiver = receiver
        lanesLeft = lanes.count
        stream = testbed.monitor.change {
            testbed.ledger.open(from: sender.number, run: 0, to: receiver.number)
        }
        testbed.expectTransfer(from: sender, at: receiver)
        for lane in lanes {
            testbed.startTask(for: sender) { await self.send(lengths, on: lane) }
        }
    }

    private func send(_ lengths: [Int], on lane: Lane) async {
        let row = lane == .main ? MessageLedger.Row.main : .bulk
        for length in lengths {
            // Recorded before it is sent, since it may arrive before the call returns.
            let bytes = testbed.monitor.change {
                let bytes = testbed.ledger.nextMessage(in: stream, row: row, length: length)
                testbed.ledger.accept(stream, row: row, length: bytes.count)
                return bytes
            }
            do throws(NighError) {
                try await sender.session.send(bytes, to: receiver.id, on: lane)
                testbed.monitor.change { taken += 1 }
            } catch {
                testbed.monitor.change {
                    testbed.ledger.withdraw(stream, row: row)
                    problem = error
                }
                break
            }
        }
        testbed.monitor.change { lanesLeft -= 1 }
    }

    /// The number of messages that the session has accepted.
    var sent: Int { testbed.monitor.read { taken } }
    /// Whether every lane has sent all its messages, or failed.
    var isOver: Bool { testbed.monitor.read { lanesLeft == 0 } }
    /// The error that ended it early.
    var error: NighError? { testbed.monitor.read { problem } }
    /// The number of messages that the session has accepted, or is about to, and that have not arrived.
    var missing: Int { testbed.monitor.read { testbed.ledger.missing(in: stream) } }

    /// Waits until everything was sent and has arrived. Continues as long as something arrives within the rig's
    /// patience, because much of it takes longer on a busy machine.
    func finish() throws {
        try testbed.wait(
            "session \(receiver.number) has all that session \(sender.number) sends, \(missing) are missing",
            while: { [sent, missing] }
        ) { self.isOver && self.missing == 0 }
        if let error { throw Testbed.Failure(message: "session \(sender.number) could not send: \(error)") }
    }
}

extension Testbed {
    /// Checks an arrived message against the ledger. Returns false if it belongs to no transfer.
    func checkMessage(_ bytes: UnsafeRawBufferPointer, _ origin: MessageOrigin, at receiver: SessionProbe)
        -> Bool
    {
        monitor.change {
            guard origin.isReliable, let sender = senders[receiver.number]?[origin.peer] else { return false }
            let reader = MessageLedger.Reader(receiver: receiver.number, run: 0, conversation: nil)
            let row = origin.lane == .main ? MessageLedger.Row.main : .bulk
            if let violation = ledger.recordArrival(of: bytes, at: reader, from: sender, row: row) {
                recordViolation("\(violation.rule.rawValue): \(violation.message)")
            }
            return true
        }
    }

    /// From now on, checks what `receiver` gets from `sender`.
    fileprivate func expectTransfer(from sender: SessionProbe, at receiver: SessionProbe) {
        monitor.change { senders[receiver.number, default: [:]][sender.id] = sender.number }
    }

    /// Waits for several transfers.
    func finish(_ transfers: [MessageTransfer]) throws { for transfer in transfers { try transfer.finish() } }
}
