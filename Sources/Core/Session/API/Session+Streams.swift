extension Session {
    package func openStream(
        named name: String, to peer: PeerID,
        completion: @escaping @Sendable (Result<ByteStream, NighError>) -> Void
    ) {
        openStream(named: name, to: peer, for: .program, completion: completion)
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
                ByteStream(
                    try machine.openStream(named: name, to: peer, for: purpose, now: loop.now))
            }
        }
        completion(opened)
    }
}
