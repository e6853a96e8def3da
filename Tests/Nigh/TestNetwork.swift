import Nigh

/// A network in memory on which only the sessions of one test meet.
struct TestNetwork {
    let transports = "memory:hub=test-\(UInt64.random(in: 0 ... .max))"

    func session(
        _ name: String, connects: Bool = true, configure: (inout SessionSettings) -> Void = { _ in }
    ) throws(NighError) -> Session {
        try Session(service: "chat", name: name, transports: transports) { settings in
            settings.identity = .temporary
            settings.connectsAutomatically = connects
            configure(&settings)
        }
    }

    /// Runs `body` with Puma and Lynx, which have connected automatically, and closes both.
    func pair(
        configure: (inout SessionSettings) -> Void = { _ in },
        _ body: (_ puma: Session, _ lynx: Session, _ asLynx: Peer) async throws -> Void
    ) async throws {
        let puma = try session("Puma", configure: configure)
        let lynx = try session("Lynx", configure: configure)
        try await body(puma, lynx, try await puma.connectedPeer())
        await puma.close()
        await lynx.close()
    }
}

extension AsyncSequence {
    /// Waits for the first element.
    func first() async throws -> Element {
        for try await element in self { return element }
        throw NighError(.receiving, .closed)
    }
}

extension Session {
    /// Waits until a peer is connected.
    func connectedPeer() async throws -> Peer {
        for await case .connected(let peer) in events { return peer }
        throw NighError(.conversing, .notConnected)
    }

    /// Waits until a peer is found.
    func foundPeer() async throws -> Peer {
        for await case .peerFound(let peer) in events { return peer }
        throw NighError(.connecting, .timedOut)
    }

    /// Sends to a peer that reads nothing until the send buffer is full.
    func fill(_ peer: Peer) async {
        while true {
            do throws(NighError) {
                try trySend([UInt8](repeating: 0, count: 16 << 10), to: peer.id)
            } catch {
                if case .bufferFull = error.cause { return }
            }
            await Task.yield()
        }
    }
}

extension EventSequence {
    /// Waits until a conversation ends. Returns the peer if it has left; nil if it ended for another reason.
    func peerLeft() async -> Peer? {
        for await case .disconnected(let peer, let error) in self {
            return error.cause == .peerLeft ? peer : nil
        }
        return nil
    }
}

extension Peer {
    /// Pairs with the peer. The people at both ends confirm the digits, about which `events` tell at this end, and
    /// `peersEvents` at the other.
    func pair(_ events: EventSequence, _ peersEvents: EventSequence) async throws {
        async let pairing: Void = pair()
        for await case .pairingCode(let peer, _) in peersEvents {
            peer.confirmPairing(digitsAgree: true)
            break
        }
        for await case .pairingCode in events {
            confirmPairing(digitsAgree: true)
            break
        }
        try await pairing
    }
}
