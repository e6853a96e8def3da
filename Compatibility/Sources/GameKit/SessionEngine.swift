import NighCompatibility
import NighLoop
import Synchronization

/// The session under a `GKSession`, on a loop of its own. It passes events and messages on to the main queue.
///
/// Events and messages reach the program in the order in which they came. Messages wait in the low-level session until
/// the main queue has time for them, so a slow program slows down those who send to it. The messages that came before
/// the end of a connection are taken out before it, since they have to be delivered before it.
final class SessionEngine: Sendable {
    /// The queue of occurrences for the main queue. Messages that are still in the low-level session come after them.
    private struct Waiting {
        private var occurrences: [SessionOccurrence] = []
        private var taken = 0
        /// Messages that came while the program had no data handler.
        var keptMessages: [Message] = []
        /// Whether the main queue will look here.
        var isScheduled = false

        mutating func append(_ occurrence: SessionOccurrence) { occurrences.append(occurrence) }

        mutating func popFirst() -> SessionOccurrence? {
            guard taken < occurrences.count else {
                occurrences.removeAll(keepingCapacity: occurrences.capacity < 1_024)
                taken = 0
                return nil
            }
            taken += 1
            return occurrences[taken - 1]
        }
    }

    /// How many batches the main queue deals with before it does something else.
    private static let share = 16
    /// How many messages are taken out of the low-level session at once, and of how many bytes, before the program has
    /// handled them.
    private static let batch = (messages: 64, bytes: 64 << 10)

    let low: LowLevelSession
    /// The number of the session's transports.
    let transportCount: Int
    private let loop: UVEventLoop
    private let waiting = Mutex(Waiting())
    /// Read on the main queue only, after it was set in the initialiser.
    nonisolated(unsafe) private weak var session: GKSession?

    /// Makes the session under `session`, and starts it.
    init(
        _ configuration: SessionConfiguration, identity: Identity, transports list: String,
        for session: GKSession
    ) throws(NighError) {
        let transports = try TransportChoice.make(list)
        loop = try UVEventLoop.make()
        low = LowLevelSession(configuration, identity: identity, transports: transports, loop: loop)
        transportCount = transports.count
        self.session = session
        low.start(
            onEvent: { [weak self] in self?.handle($0) },
            onWaitingMessages: { [weak self] in self?.wakeMainQueue() })
    }

    /// Ends all connections in good order, then the loop.
    func close() { low.close { [low, loop] in withExtendedLifetime(low) { loop.shutdown() } } }

    /// Asks a peer for a connection.
    func call(_ peer: PeerID, timeout: Duration) {
        low.invite(peer, timeout: timeout) { [weak self] result in
            if case .failure(let error) = result { self?.pass(.callFailed(peer, error)) }
        }
    }

    // MARK: To the main queue

    private func handle(_ event: SessionEvent) {
        if case .disconnected = event { passMessages() }
        pass(.event(event))
    }

    /// Takes out the messages that wait, so that they stay before the next occurrence.
    private func passMessages() {
        waiting.withLock { waiting in
            while let message = low.session.messages.poll() { waiting.append(.message(message)) }
        }
    }

    private func pass(_ occurrence: SessionOccurrence) {
        waiting.withLock { $0.append(occurrence) }
        wakeMainQueue()
    }

    /// Has the main queue look for work: something has come, or the program has a data handler now.
    func wakeMainQueue() {
        let mustSchedule = waiting.withLock { waiting in
            defer { waiting.isScheduled = true }
            return !waiting.isScheduled
        }
        if mustSchedule { schedule() }
    }

    private func schedule() { DispatchQueue.main.async { [weak self] in self?.work() } }

    // MARK: On the main queue

    private func work() {
        for _ in 0..<Self.share {
            guard let session else { return }
            switch nextPart(receives: session.hasDataReceiver) {
            case .nothing: return
            case .occurrence(let occurrence): deal(with: occurrence, for: session)
            case .messages(let messages): deliver(messages[...], for: session)
            }
        }
        schedule()
    }

    /// A piece of work for the main queue.
    private enum Part {
        case nothing
        case occurrence(SessionOccurrence)
        case messages([Message])
    }

    /// Takes the next piece of work. After `.nothing`, the main queue has to be woken up again.
    private func nextPart(receives: Bool) -> Part {
        waiting.withLock { waiting in
            if receives, !waiting.keptMessages.isEmpty {
                defer { waiting.keptMessages = [] }
                return .messages(waiting.keptMessages)
            }
            if let occurrence = waiting.popFirst() { return .occurrence(occurrence) }
            // With the lock held, no event can come between an empty queue and these messages.
            var batch: [Message] = []
            var bytes = 0
            while receives, batch.count < Self.batch.messages, bytes < Self.batch.bytes,
                let message = low.session.messages.poll()
            {
                bytes += message.payload.count
                batch.append(message)
            }
            waiting.isScheduled = !batch.isEmpty
            return batch.isEmpty ? .nothing : .messages(batch)
        }
    }

    private func deliver(_ messages: ArraySlice<Message>, for session: GKSession) {
        let left = session.deliver(messages)
        if !left.isEmpty { waiting.withLock { $0.keptMessages += left } }
    }

    private func deal(with occurrence: SessionOccurrence, for session: GKSession) {
        switch occurrence {
        case .message(let message): deliver([message], for: session)
        case .callFailed(let peer, let error): session.callFailed(peer, error)
        case .event(let event):
            if case .disconnected(let peer, _) = event {
                waiting.withLock { $0.keptMessages.removeAll { $0.sender == peer.id } }
            }
            session.handle(event)
        }
    }
}
