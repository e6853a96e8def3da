import NighCompatibility
import NighCore

/// A conversation with a peer: reads its messages one after the other, and sends those of the control queue.
///
/// A message is read when the program's delegate has returned from the one before it. So a slow program slows its peer,
/// which may have `SessionLimits.receiveWindow` bytes under way and no more.
///
/// `@unchecked Sendable`: its state is confined to the control queue.
final class PeerConversation: @unchecked Sendable {
    let peer: PeerID
    /// The number of the conversation among those of its engine.
    let number: UInt64
    private let messages: MessageSequence
    private weak var engine: Engine?
    private let low: LowLevelSession
    /// Messages that found no room in the send buffer, the oldest first.
    private var unsent: [[UInt8]] = []
    /// How many times the conversation has become unneeded.
    var idleCount = 0
    /// Whether this side is ending the conversation because nobody needs it. Messages sent in it from now on would be
    /// lost, and the peer repeats its requests in the next one.
    var isEnding = false

    init(with peer: PeerID, _ number: UInt64, _ messages: MessageSequence, in engine: Engine) {
        self.peer = peer
        self.number = number
        self.messages = messages
        self.engine = engine
        low = engine.low
    }

    /// How many messages are read before other work on the queue gets its turn.
    private static let turn = 256

    /// Reads messages until the conversation ends, then calls `ended` on the control queue.
    func read(ended: @escaping @Sendable () -> Void) {
        Task(executorPreference: QueueExecutor(label: "nigh.multipeer.conversation")) { [self] in
            var count = 0
            while var message = await messages.next() {
                while let next = received(message) {
                    message = next
                    count += 1
                    if count % Self.turn == 0 { await Task.yield() }
                }
            }
            Control.async(ended)
        }
    }

    /// Works a message off. Returns another one if it has taken more of them and left one.
    private func received(_ message: NighCore.Message) -> NighCore.Message? {
        if let sessions = Self.dataSessions(of: message) {
            return SessionDirectory.session(sessions.to)?
                .received(message, from: peer, session: sessions.from) {
                    // More for the same session.
                    guard let next = messages.poll() else { return .none }
                    return Self.dataSessions(of: next) == sessions ? .same(next) : .other(next)
                }
        }
        if let message = message.payload.withUnsafeBytes({ WireMessage($0) }) {
            Control.sync { if !isEnding { engine?.received(message, from: peer) } }
        }
        return nil
    }

    private static func dataSessions(of message: NighCore.Message) -> WireMessage.Sessions? {
        message.payload.withUnsafeBytes { WireMessage.dataSessions(in: $0) }
    }

    /// Sends a message behind everything that was sent before.
    func send(_ message: WireMessage) {
        guard !isEnding else { return }
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

    /// Not the executor of the reader, which waits for the program's delegate.
    private static let sending = QueueExecutor(label: "nigh.multipeer.sending")

    private func sendWhenThereIsRoom(_ bytes: [UInt8]) {
        Task(executorPreference: Self.sending) { [self] in
            // Fails if the conversation has ended; then nothing more can be sent.
            try? await low.send(bytes, to: peer)
            Control.async { [self] in
                unsent.removeFirst()
                if let next = unsent.first { sendWhenThereIsRoom(next) }
            }
        }
    }
}
