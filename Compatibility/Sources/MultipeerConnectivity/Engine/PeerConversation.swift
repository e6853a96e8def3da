import NighCore

/// A conversation with a peer: reads its messages one after the other, and sends what the control queue has to say.
///
/// A message is read when the program's delegate has returned from the one before it. So a slow program slows its peer, which may
/// have `SessionLimits.receiveWindow` bytes under way and no more.
///
/// `@unchecked Sendable`: `unsent` is confined to the control queue, and nothing else changes.
final class PeerConversation: @unchecked Sendable {
    let peer: PeerID
    private weak var engine: Engine?
    private let low: NighCore.Session
    /// What found no room in the send buffer, the oldest first.
    private var unsent: [[UInt8]] = []

    init(with peer: PeerID, in engine: Engine) {
        self.peer = peer
        self.engine = engine
        low = engine.low
    }

    /// How many messages are read before other work on the queue gets its turn.
    private static let turn = 256

    /// Reads messages until the conversation ends, then calls `ended` on the control queue.
    func read(_ messages: MessageSequence, ended: @escaping @Sendable () -> Void) {
        let executor = QueueExecutor(label: "nigh.multipeer.conversation")
        Task(executorPreference: executor) { [self] in
            var count = 0
            while let message = await messages.next() {
                received(message)
                count += 1
                if count % Self.turn == 0 { await Task.yield() }
            }
            Control.async(ended)
        }
    }

    private func received(_ message: NighCore.Message) {
        message.payload.withUnsafeBytes { bytes in
            if let sessions = WireMessage.dataSessions(in: bytes) {
                SessionDirectory.session(sessions.to)?
                    .received(bytes[WireMessage.dataHeaderCount...], from: peer, session: sessions.from)
            } else if let message = WireMessage(bytes) {
                Control.sync { engine?.received(message, from: peer) }
            }
        }
    }

    /// Sends a message behind everything that was sent before.
    func send(_ message: WireMessage) {
        let bytes = message.bytes
        if unsent.isEmpty {
            do throws(NighError) {
                return try low.trySend(bytes, to: peer)
            } catch {
                guard case .bufferFull = error.cause else { return }
            }
        }
        unsent.append(bytes)
        if unsent.count == 1 { sendWhenThereIsRoom(bytes) }
    }

    private func sendWhenThereIsRoom(_ bytes: [UInt8]) {
        Task { [self] in
            // Fails if the conversation has ended; then nothing more can be sent.
            try? await low.send(bytes, to: peer)
            Control.async { [self] in
                unsent.removeFirst()
                if let next = unsent.first { sendWhenThereIsRoom(next) }
            }
        }
    }
}
