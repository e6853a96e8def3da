// The calls behind `LowLevelSession`, which documents them, for it and for layers.

extension Session {
    package func start(onEvent: EventHandler? = nil, onMessage: MessageHandler? = nil) {
        onLoop { $0.start(onEvent: onEvent, onMessage: onMessage) }
    }

    package func start(onEvent: EventHandler? = nil, onWaitingMessages: @escaping @Sendable () -> Void) {
        onLoop { $0.start(onEvent: onEvent, onWaitingMessages: onWaitingMessages) }
    }

    package func close(completion: @escaping @Sendable () -> Void) {
        onLoop { $0.close(completion: completion) }
    }

    package func update(info: DiscoveryInfo) {
        onLoop { driver in
            var advertisement = driver.advertisement
            advertisement.info = info
            driver.update(advertisement)
        }
    }

    package func invite(
        _ peer: PeerID, context: [UInt8] = [], timeout: Duration = .seconds(30),
        completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        invite(peer, context: context, introduction: [], timeout: timeout, completion: completion)
    }

    package func invite(
        at address: TransportAddress, context: [UInt8] = [], timeout: Duration = .seconds(30),
        completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        let token = reference.newToken()
        onLoop { driver in
            driver.begin(.inviting, token, completion) { machine, now in
                machine.call(address, context: context, timeout: timeout, token: token, now: now)
            }
        }
    }

    package nonisolated(nonsending) func invite(
        at address: TransportAddress, context: [UInt8] = [], timeout: Duration = .seconds(30)
    ) async throws(NighError) -> PeerID {
        let token = reference.newToken()
        return try await reference.outcome(.inviting, cancelledBy: { $0.cancel(token) }) {
            driver, completion in
            driver.begin(.inviting, token, completion) { machine, now in
                machine.call(address, context: context, timeout: timeout, token: token, now: now)
            }
        }
    }

    /// Invites an introduced peer, with the introducer's token.
    package func invite(
        _ peer: PeerID, introduction: [UInt8], timeout: Duration,
        completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        invite(peer, context: [], introduction: introduction, timeout: timeout, completion: completion)
    }

    private func invite(
        _ peer: PeerID, context: [UInt8], introduction: [UInt8], timeout: Duration,
        completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void
    ) {
        let token = reference.newToken()
        onLoop { driver in
            driver.begin(.inviting, token, completion) { machine, now in
                machine.invite(
                    peer, context: context, introduction: introduction, timeout: timeout, token: token,
                    now: now)
            }
        }
    }

    package func cancelInvitation(of peer: PeerID) {
        onLoop { driver in driver.inTurn { driver.machine.cancelInvitation(of: peer, now: driver.loop.now) } }
    }

    package func disconnect(
        _ peer: PeerID, completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void = { _ in }
    ) {
        let token = reference.newToken()
        onLoop { driver in
            driver.begin(.conversing, token, completion) { machine, now in
                machine.leave(peer, token: token, now: now)
            }
        }
    }

    package func disconnectAll() {
        onLoop { driver in
            driver.inTurn {
                for peer in driver.machine.sortedPeers {
                    driver.machine.leave(peer.id, token: nil, now: driver.loop.now)
                }
            }
        }
    }

    package func ping(
        _ peer: PeerID, over path: PingPath = .link, payload: [UInt8] = [],
        completion: @escaping @Sendable (Result<Duration, NighError>) -> Void
    ) {
        let token = reference.newToken()
        onLoop { $0.ping(peer, over: path, payload: payload, token: token, completion) }
    }

    package nonisolated(nonsending) func ping(
        _ peer: PeerID, over path: PingPath = .link, payload: [UInt8] = []
    ) async throws(NighError) -> Duration {
        let token = reference.newToken()
        return try await reference.outcome(.pinging, cancelledBy: { $0.abandonPing(token, peer) }) {
            $0.ping(peer, over: path, payload: payload, token: token, $1)
        }
    }

    package var connectedPeerIDs: [PeerID] { directory.peers }

    package func statistics(completion: @escaping @Sendable (SessionStatistics) -> Void) {
        onLoop { completion($0.statistics()) }
    }

    package nonisolated(nonsending) func statistics() async -> SessionStatistics {
        await PendingAnswer.wait(otherwise: SessionStatistics()) { answer in statistics { answer.give($0) } }
    }
}
