import NighCodes
import NighCore
import NighFiles
import NighLoop

/// The visit of a `nigh receive CODE` to the device that shows the code: calls it, proves that the person here knows
/// the code, and calls it again if the conversation ends before the transfer.
actor CodeVisit {
    nonisolated let session: CommandSession
    nonisolated var unownedExecutor: UnownedSerialExecutor { session.loop.asUnownedSerialExecutor() }

    private let code: OneTimeCode
    private let choice: PeerChoice
    private let patience: Duration
    /// The identity that has proven to know the code.
    private var identity: PeerID?
    private var connected: PeerID?
    private var waiting: CheckedContinuation<Void, Never>?

    /// The time for finding and reaching the device if the user did not say how long.
    static let patience = Duration.seconds(60)
    /// The pause before another attempt after one that ended without a guess.
    private static let pause = Duration.milliseconds(500)

    /// - Parameter choice: the device, if the user named it; nil for the one that announces the code's number.
    init(
        _ code: OneTimeCode, at choice: PeerChoice?, within patience: Duration?, over session: CommandSession
    ) {
        self.code = code
        self.choice = choice ?? .code(code.number)
        self.patience = patience ?? Self.patience
        self.session = session
    }

    /// Visits the device until the task is cancelled. Calls `proven` each time that both sides have proven to know the
    /// code. Throws if the device is not found, or if the code is wrong.
    nonisolated func run(proven: @escaping @Sendable (Peer) -> Void) async throws {
        let key = await Task.detached { [code] in CodeKey(code) }.value
        var incomplete: NighError?
        var deadline = ContinuousClock.now + patience
        while true {
            let peer = try await connect()
            switch await CodeProof.prove(key, to: peer, as: session.session.id) {
            case .proven:
                await note(peer)
                proven(peer)
                await waitForEnd()
                deadline = .now + patience
            case .wrong:
                session.session.disconnect(peer.id)
                throw FileFailure(
                    "the code is wrong, or has been used; \(peer.name) shows a new one if it was wrong",
                    .declined)
            case .incomplete(let error):
                incomplete = error
                session.session.disconnect(peer.id)
            }
            try Task.checkCancellation()
            if ContinuousClock.now > deadline, let incomplete { throw incomplete }
            try await Task.sleep(for: Self.pause)
        }
    }

    private func connect() async throws -> Peer {
        let choice: PeerChoice =
            if let identity, case .code = self.choice { .named("\(identity)") } else { self.choice }
        let peer = try await session.connect(
            to: choice, for: .code,
            .init(timeLimit: patience, retriesAddresses: true, identity: identity))
        connected = peer.id
        return peer
    }

    private func note(_ peer: Peer) { identity = peer.identity }

    private func waitForEnd() async {
        guard connected != nil, !Task.isCancelled else { return }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // The visit may have ended before this is called.
                guard connected != nil else { return continuation.resume() }
                waiting = continuation
            }
        } onCancel: {
            session.loop.execute { self.assumeIsolated { $0.ended() } }
        }
    }

    /// Handles an event of the session. Called on its loop.
    nonisolated func handle(_ event: SessionEvent) {
        assumeIsolated { visit in
            switch event {
            case .disconnected(let peer, _), .available(let peer, _), .peerLost(let peer):
                if peer.id == visit.connected { visit.ended() }
            case .closed: visit.ended()
            default: break
            }
        }
    }

    private func ended() {
        connected = nil
        waiting?.resume()
        waiting = nil
    }
}
