import NighCore
import NighMemory

/// One session that sends and others that receive, connected over memory.
struct SessionGroup {
    let sender: Session
    let receivers: [Session]
    private let loops: [ThreadEventLoop]

    /// Whether both sides share a loop, or the receivers have another.
    enum Loops: String {
        case one
        case two
    }

    struct Handlers {
        var atSender: MessageHandler?
        var atReceivers: MessageHandler?
        /// Called with the loop of the receiver for each stream that it is opened.
        var onStream: @Sendable (ByteStream, any EventLoop) -> Void = { _, _ in }
        /// Called when a conversation was interrupted, which makes the measurement meaningless.
        var onInterruption: @Sendable (NighError) -> Void
    }

    /// Starts the sessions and connects them. Messages of a side without a handler go to its `messages`.
    static func connect(
        on loops: Loops, receivers count: Int = 1, messageSize: Int, security: SessionSecurity,
        handlers: Handlers
    ) async throws -> SessionGroup {
        let first = ThreadEventLoop()
        let second = loops == .one ? first : ThreadEventLoop()
        let hub = MemoryHub()
        let sender = session(
            "sender", .client, security, on: first, hub: hub, messageSize: messageSize,
            handler: handlers.atSender, handlers)
        var receivers: [Session] = []
        for number in 0..<count {
            let receiver = session(
                "receiver-\(number)", .server, security, on: second, hub: hub, messageSize: messageSize,
                handler: handlers.atReceivers, handlers)
            receivers.append(receiver)
            for await event in sender.events {
                if case .peerFound(let peer) = event, peer.id == receiver.id {
                    try await peer.invite(timeout: .seconds(10))
                    break
                }
            }
        }
        return SessionGroup(
            sender: sender, receivers: receivers, loops: loops == .one ? [first] : [first, second])
    }

    private static func session(
        _ name: String, _ role: SessionRole, _ security: SessionSecurity, on loop: ThreadEventLoop,
        hub: MemoryHub, messageSize: Int, handler: MessageHandler?, _ handlers: Handlers
    ) -> Session {
        var configuration = SessionConfiguration(
            service: "bench", name: DisplayName(fitting: name), role: role)
        configuration.security = security
        // Bursts travel as fast as they can, so packets would be dropped. `make bench` measures those.
        configuration.datagrams = false
        // Room for the bursts of the largest messages; for others the default remains.
        configuration.limits.sendBuffer = max(configuration.limits.sendBuffer, 8 * messageSize)
        let session = Session(
            configuration, identity: .ephemeral(),
            transports: [MemoryTransport(hub: hub, address: name)], loop: loop)
        let onEvent: EventHandler = { event in
            switch event {
            case .invited(let invitation): invitation.accept()
            case .reconnecting(_, let cause), .disconnected(_, let cause): handlers.onInterruption(cause)
            case .streamOpened(let stream): handlers.onStream(stream, loop)
            default: break
            }
        }
        session.start(onEvent: role == .server ? onEvent : nil, onMessage: handler)
        return session
    }

    /// Closes the sessions and, once `reader` has read to the end, the loops.
    func close(reader: Task<Void, Never>? = nil) async {
        await sender.close()
        for receiver in receivers { await receiver.close() }
        await reader?.value
        for loop in loops { loop.shutdown() }
    }
}
