extension Session {
    /// Opens a stream to a connected peer, whose program gets it as an event. Waits for nothing but the loop, so
    /// cancelling the task changes nothing.
    ///
    /// Fails if the peer is not connected, has as many streams from this session as it accepts, or speaks an earlier
    /// version of the protocol, which has no streams.
    ///
    /// - Parameter name: the name that the peer's program sees; at most 255 bytes without control characters.
    public nonisolated(nonsending) func openStream(
        named name: String, to peer: PeerID
    ) async throws(NighError) -> ByteStream {
        try await openStream(named: name, to: peer, for: .program)
    }

    /// Opens a stream and passes it to `completion`: at once if called on the loop, otherwise soon, on the loop. See
    /// the first `openStream`.
    public func openStream(
        named name: String, to peer: PeerID,
        completion: @escaping @Sendable (Result<ByteStream, NighError>) -> Void
    ) {
        openStream(named: name, to: peer, for: .program, completion: completion)
    }

    /// Opens a stream for a purpose. Fails also if the peer accepts no streams for it. See the first `openStream`.
    package nonisolated(nonsending) func openStream(
        named name: String, to peer: PeerID, for purpose: StreamPurpose
    ) async throws(NighError) -> ByteStream {
        try await outcome(cancelledBy: { _ in }) { completion in
            openStream(named: name, to: peer, for: purpose, completion: completion)
        }
    }

    /// Opens a stream for a purpose and passes it to `completion`: at once if called on the loop, otherwise soon, on
    /// the loop.
    package func openStream(
        named name: String, to peer: PeerID, for purpose: StreamPurpose,
        completion: @escaping @Sendable (Result<ByteStream, NighError>) -> Void
    ) {
        onLoop { $0.openStream(named: name, to: peer, for: purpose, completion) }
    }
}

extension SessionDriver {
    func openStream(
        named name: String, to peer: PeerID, for purpose: StreamPurpose,
        _ completion: (Result<ByteStream, NighError>) -> Void
    ) {
        var opened: Result<ByteStream, NighError> = .failure(NighError(.sending, .closed))
        inTurn {
            opened = Result { () throws(NighError) in
                ByteStream(try machine.openStream(named: name, to: peer, for: purpose))
            }
        }
        completion(opened)
    }
}
