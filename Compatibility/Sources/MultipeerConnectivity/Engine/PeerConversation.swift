import NighCore

/// A conversation with a peer: reads its messages one after the other, and sends what the control queue has to say.
///
/// A message is read when the program's delegate has returned from the one before it. So a slow program slows its peer,
/// which may have `SessionLimits.receiveWindow` bytes under way and no more.
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
            while var message = await messages.next() {
                while let next = received(message, from: messages) {
                    message = next
                    count += 1
                    if count % Self.turn == 0 { await Task.yield() }
                }
            }
            Control.async(ended)
        }
    }

    /// Works a message off. Returns another one if it has taken more of them and left one.
    private func received(_ message: NighCore.Message, from messages: MessageSequence) -> NighCore.Message? {
        if let sessions = Self.dataSessions(of: message) {
            return SessionDirectory.session(sessions.to)?
                .received(message, from: peer, session: sessions.from) {
                    // More for the same session.
                    guard let next = messages.poll() else { return .none }
                    return Self.dataSessions(of: next) == sessions ? .same(next) : .other(next)
                }
        }
        if let message = message.payload.withUnsafeBytes({ WireMessage($0) }) {
            Control.sync { engine?.received(message, from: peer) }
        }
        return nil
    }

    private static func dataSessions(of message: NighCore.Message) -> WireMessage.Sessions? {
        message.payload.withUnsafeBytes { WireMessage.dataSessions(in: $0) }
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
