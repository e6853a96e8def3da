import Distributed
import Nigh
import NighCalls
import NighCore

/// An actor that a connected peer has published.
public struct ListedActor<Contract: DistributedActor>: Sendable {
    /// The peer.
    public let peer: Peer
    /// The name under which the actor is published.
    public let name: String
    /// The version of its contract there; see ``VersionedContract``.
    public let version: UInt32
    /// A reference to it.
    public let actor: Contract
}

extension ActorSystem {
    /// The actors of connected peers that this program may call under a contract: those that there are now, and again
    /// after each change. A slow reader gets the newest list only. Ends when the session has closed.
    ///
    ///     for await boards in actors.listing(of: $Board.self, named: "board") { … }
    ///
    /// - Parameter name: The name under which they are published; nil is any name.
    public func listing<Contract: DistributedActor>(
        of contract: Contract.Type, named name: String? = nil
    ) -> some AsyncSequence<[ListedActor<Contract>], Never> & Sendable
    where Contract.ActorSystem == ActorSystem {
        let filter = Listings.Filter(contract: ActorContract(contract)?.name ?? "", name: name)
        let lists = state.withLock { state in
            state.isClosed
                ? ListReaders.only([])
                : state.listings.read(filter) { [weak self] number in
                    self?.state.withLock { $0.listings.stopReading(filter, number) }
                }
        }
        return lists.map { [self] entries in
            entries.compactMap { entry in
                let peer = session.peer(entry.peer)
                guard let actor = try? actor(contract, named: entry.name, on: peer) else { return nil }
                return ListedActor(peer: peer, name: entry.name, version: entry.version, actor: actor)
            }
        }
    }

    // MARK: The peers' actors

    /// Reads which actors a peer has published. Loop only.
    func receive(listing stream: ByteStream) {
        let input = ListingInput(stream, on: session.loop, of: self)
        state.withLock { $0.listings.setInput(input, of: stream.peer) }
        input.proceed()
    }

    func note(_ record: ListingRecord, of peer: PeerID) throws(WireError) {
        try state.withLock { state throws(WireError) in try state.listings.note(record, of: peer) }
    }

    func listingEnded(_ input: ListingInput, of peer: PeerID) {
        state.withLock { $0.listings.inputEnded(input, of: peer) }
        notifyListingReaders()
    }

    func notifyListingReaders() { state.withLock { $0.listings.notifyReaders() } }

    // MARK: This program's actors

    /// Begins to list this side's actors to a peer. Loop only.
    func beginListing(for peer: Peer) {
        // A peer of an earlier version has no actors.
        guard let stream = try? session.openStream(named: ActorStream.listing, to: peer.id, for: .actors)
        else { return }
        let output = ListingOutput(stream, on: session.loop)
        state.withLock { $0.listings.outputs[peer.id] = output }
        refreshListing(for: peer)
    }

    /// Tells all peers which actors there are now, from any thread.
    func refreshListings() {
        session.loop.execute { [self] in
            for peer in session.connectedPeers { refreshListing(for: peer) }
        }
    }

    /// Sends changes of the list to a peer. Loop only.
    func refreshListing(for peer: Peer) {
        let (output, published) = state.withLock { ($0.listings.outputs[peer.id], $0.actors.published) }
        output?.show(
            published.filter { $0.value.exposure.access.reason(peer) == nil }.mapValues(\.exposure.contract))
    }
}
