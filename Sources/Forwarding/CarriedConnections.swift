import NighCore

/// The connections that one side carries now, the places of those that are being opened, and the counts of all.
///
/// Confined to the session's loop.
final class CarriedConnections {
    private var open: [ObjectIdentifier: CarriedConnection] = [:]
    /// The connections of each peer, including those that are being opened.
    private var places: [PeerID: Int] = [:]
    private var totals = ForwardingCounts()

    /// The connections so far, and the bytes of those that are over.
    var counts: ForwardingCounts {
        var counts = totals
        counts.open = open.count
        return counts
    }

    /// The bytes that were taken from one side of a connection and not given to the other yet.
    var heldByteCount: Int { open.values.reduce(0) { $0 + $1.heldByteCount } }

    /// The number of connections, including those that are being opened.
    var count: Int { places.values.reduce(0, +) }

    /// The number of connections with a peer, including those that are being opened.
    func count(of peer: PeerID) -> Int { places[peer, default: 0] }

    /// Takes a place for a connection that is being opened.
    func takePlace(for peer: PeerID) { places[peer, default: 0] += 1 }

    /// Gives back the place of a connection that was not opened.
    func freePlace(of peer: PeerID) { places[peer] = places[peer].flatMap { $0 > 1 ? $0 - 1 : nil } }

    /// Counts a connection that was refused.
    func noteRefusal() { totals.refused += 1 }

    /// Adds a connection that has a place, and returns it for the caller to start. Calls `whenOver` once it is over,
    /// with the reason if it did not end in good order. Its place is free by then.
    func add(
        _ stream: ByteStream, _ local: any LocalConnection, port: UInt16, early: ByteSlice = ByteSlice([]),
        on loop: any EventLoop, whenOver: @escaping (CarriedConnection, NighError?) -> Void
    ) -> CarriedConnection {
        let connection = CarriedConnection(stream, local, port: port, early: early, on: loop) {
            [self] connection, error in
            open[ObjectIdentifier(connection)] = nil
            freePlace(of: connection.stream.peer)
            totals.sent += connection.sent
            totals.received += connection.received
            whenOver(connection, error)
        }
        open[ObjectIdentifier(connection)] = connection
        totals.openedEver += 1
        return connection
    }

    /// Ends all connections for this reason, or only those with one peer.
    func end(with peer: PeerID? = nil, because reason: String) {
        for connection in open.values where peer == nil || connection.stream.peer == peer {
            connection.end(because: reason)
        }
    }
}
