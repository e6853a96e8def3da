import Nigh
import NighCalls
import NighCore

extension ActorSystem {
    /// The stream that a value of a peer names.
    func expectStream(_ number: UInt64, of peer: PeerID) -> IncomingStream {
        if let stream = state.withLock({ $0.streams.expect(number, of: peer) }) { return stream }
        let stream = IncomingStream()
        stream.fail(
            NighError(
                .calling, .limit("streams that do not come", IncomingStreams.limit),
                peer: session.peer(peer).label))
        return stream
    }

    package func receive(_ stream: ByteStream) {
        if stream.name == ActorStream.listing { return receive(listing: stream) }
        guard stream.name.first == ActorStream.values else {
            return stream.cancel(because: "a stream for actors with an unknown name")
        }
        let (expected, surplus) = state.withLock { $0.streams.add(stream, now: session.loop.now) }
        expected?.open(stream)
        surplus?.cancel(because: "nobody there reads it")
        scheduleLook()
    }

    /// Cancels, in time, the streams that no value has named.
    private func scheduleLook() {
        guard let moment = state.withLock({ $0.streams.nextLook() }) else { return }
        session.loop.schedule(at: moment) { [weak self] in
            guard let self else { return }
            let expired = state.withLock { $0.streams.takeExpired(now: session.loop.now) }
            for stream in expired { stream.cancel(because: "nobody there reads it") }
            scheduleLook()
        }
    }

    package func handle(_ event: SessionEvent) {
        switch event {
        case .connected(let peer): beginListing(for: peer)
        case .disconnected(let peer, let reason):
            let lost = state.withLock { state in
                state.listings.removeAll(of: peer.id)
                return state.streams.removeAll(of: peer.id)
            }
            for stream in lost { stream.fail(NighError(.calling, reason.cause, peer: peer.label)) }
            notifyListingReaders()
        case .paired(let peer), .peerChanged(let peer):
            if peer.isConnected { refreshListing(for: peer) }
        default: break
        }
    }

    package func sessionDidClose() {
        let (listings, actors) = state.withLock { state in
            state.isClosed = true
            defer {
                state.actors.removeAll()
                state.listings = Listings()
            }
            // The actors end outside of the lock: they resign their IDs.
            return (state.listings, state.actors)
        }
        listings.finish()
        withExtendedLifetime(actors) {}
    }
}
