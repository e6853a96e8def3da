import NighCore
import NighLoop

/// The conversation with the peer that `--through` names.
extension CommandSession {
    /// The pause before the peer is called again after its conversation has ended.
    private static let pause = Duration.seconds(1)
    /// After this time without a conversation, the command says that it waits for one.
    private static let throughPatience = Moment.Span.seconds(3)

    /// Says after a while that there is no conversation with the peer yet.
    func remarkIfNotConnected(through choice: PeerChoice) {
        loop.execute { [self] in
            loop.schedule(at: loop.now + Self.throughPatience) { [weak self] in
                guard let self, throughPeer == nil, !isClosing else { return }
                let why = lastThroughError.map { ": \($0.cause)" } ?? ", which is not visible"
                onRemark("--through \(choice): still looking for a way to it\(why)")
            }
        }
    }

    /// Connects to the peer, and returns when the conversation has ended, or why there was none.
    func connectOnce(through choice: PeerChoice) async -> String? {
        var remark: String?
        do {
            let peer = try await reach(choice)
            await withCheckedContinuation { continuation in
                loop.execute { [self] in
                    guard !isClosing, peers[peer]?.state.hasConversation == true else {
                        return continuation.resume()
                    }
                    throughPeer = peer
                    whenThroughEnds = { continuation.resume() }
                }
            }
        } catch {
            remark = "--through \(choice): \(error)"
        }
        try? await Task.sleep(for: Self.pause)
        return remark
    }

    /// Calls the peer until it answers, whichever `nigh` command or other program runs there.
    private func reach(_ choice: PeerChoice) async throws -> PeerID {
        let limits = CallLimits(timeLimit: nil, retriesAddresses: true, isAnnounced: false)
        let note: @Sendable (NighError) -> Void = { [weak self] error in
            self?.loop.execute { [weak self] in self?.lastThroughError = error }
        }
        return try await call(choice, for: nil, limits, whenFailed: note) { [self] target, timeout in
            var purposes = await onLoop { InvitationPurpose.toJoin($0.peer(at: target)) }
            while true {
                let context = purposes.removeFirst().context
                do throws(NighError) {
                    switch target {
                    case .peer(let id):
                        try await session.peer(id).invite(context: context, timeout: timeout)
                        return id
                    case .address(let address):
                        return try await session.invite(at: address, context: context, timeout: timeout)
                    }
                } catch {
                    guard case .declined = error.cause, !purposes.isEmpty else { throw error }
                }
            }
        }
    }

    /// The peer to call; nil for an address, which does not name a peer. Loop only.
    private func peer(at target: CallTarget) -> Peer? {
        if case .peer(let id) = target { peers[id] } else { nil }
    }

    /// The conversation has ended. Loop only.
    func endThrough() {
        throughPeer = nil
        let done = whenThroughEnds
        whenThroughEnds = nil
        done?()
    }
}
