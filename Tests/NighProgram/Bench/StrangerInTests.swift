import NighLoop
import NighCore

/// A session that is not `nigh` and sends it whatever a test wants.
///
/// `@unchecked Sendable`: the lock guards everything that changes.
final class StrangerInTests: @unchecked Sendable {
    let session: Session
    private let loop: UVEventLoop
    private let lock = Lock()
    private var isConnected = false
    private var received: [[UInt8]] = []
    private var address: TransportAddress?
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var answer: (@Sendable (_ message: [UInt8]) -> [[UInt8]])?

    /// Creates a session that calls, or, with `answering`, one that is called and answers every message of the main
    /// lane with the messages that `answering` returns.
    init(answering: (@Sendable ([UInt8]) -> [[UInt8]])? = nil) throws {
        answer = answering
        loop = try UVEventLoop.make()
        session = Session(
            SessionConfiguration(
                service: "nigh", name: DisplayName(fitting: "Stranger"),
                role: answering == nil ? .client : .server),
            identity: .ephemeral(), transports: try TransportRegistry.standard.makeAll(HostInTests.transport),
            loop: loop)
    }

    func start() {
        session.start(
            onEvent: { [self] event in
                if let peer = event.stateChange?.peer { change { isConnected = peer.state == .connected } }
                switch event {
                case .listening(_, let addresses): change { address = addresses.first }
                case .invited(let invitation): invitation.accept()
                default: break
                }
            },
            onMessage: { [self] bytes, origin in
                let message = bytes.withUnsafeBytes { Array($0) }
                change { received.append(message) }
                for reply in answer?(message) ?? [] { try? session.trySend(reply, to: origin.peer) }
            })
    }

    /// The address of a session that is called. Waits until it listens.
    func reached() async -> String {
        await until { [self] _, _ in address != nil }
        return lock.withLock { address.map { "\($0)" } ?? "" }
    }

    private func change(_ body: () -> Void) {
        let waiting = lock.withLock {
            body()
            defer { self.waiting = [] }
            return self.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func until(_ condition: @Sendable (_ isConnected: Bool, _ received: [[UInt8]]) -> Bool) async {
        while true {
            if lock.withLock({ condition(isConnected, received) }) { return }
            await withCheckedContinuation { continuation in
                let holds = lock.withLock {
                    if condition(isConnected, received) { return true }
                    waiting.append(continuation)
                    return false
                }
                if holds { continuation.resume() }
            }
        }
    }

    /// Asks a peer for a pairing, and withdraws that at once, before either side has digits.
    func abandonPairing(with peer: PeerID) async {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                session.pair(peer) { _ in continuation.resume() }
                session.peer(peer).confirmPairing(digitsAgree: false)
            }
        }
    }

    func end() async {
        await session.close()
        loop.shutdown()
    }
}
