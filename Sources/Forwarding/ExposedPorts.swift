import NighCore

/// Connects peers to ports of this device that were exposed to them.
///
/// A layer of its session. Each stream for a forwarded connection is answered first: it is refused by the policy, or
/// goes on to the port over loopback. Bytes that come meanwhile wait in the stream.
///
/// `@unchecked Sendable`: confined to the session's loop, but for what does not change.
package final class ExposedPorts: ConversationLayer, @unchecked Sendable {
    /// Gets what happens, for the program. Called on the loop.
    package struct Observer {
        /// A peer is connected to a port.
        package var opened: (PeerID, _ port: UInt16) -> Void = { _, _ in }
        /// A peer was refused a connection to what it called a port.
        package var refused: (PeerID, _ name: String, ForwardingRefusal) -> Void = { _, _, _ in }
        /// A connection is over, after so many bytes to the peer and from it; with the reason if it was broken off.
        package var closed: (PeerID, _ port: UInt16, _ sent: Int, _ received: Int, NighError?) -> Void = {
            _, _, _, _, _ in
        }

        package init() {}
    }

    package let policy: ForwardingPolicy
    package let limits: ForwardingLimits
    private let dialler: any LocalDialler
    private weak var session: Session?
    private var observer = Observer()
    private var connections: [ObjectIdentifier: CarriedConnection] = [:]
    /// The connections of each peer, with those that are being opened.
    private var places: [PeerID: Int] = [:]
    private var isClosing = false
    private var totals = ForwardingCounts()

    package init(
        _ policy: ForwardingPolicy, limits: ForwardingLimits = ForwardingLimits(),
        dialling dialler: any LocalDialler
    ) {
        self.policy = policy
        self.limits = limits
        self.dialler = dialler
    }

    /// Those for forwarded connections.
    package var purposes: [StreamPurpose] { [.forward] }

    /// Begins to follow a session.
    package func attach(to session: Session) { self.session = session }

    /// Reports what happens from now on. Call it before the session has started.
    package func report(to observer: Observer) { self.observer = observer }

    /// The connections so far, and the bytes that passed. Loop only.
    package var counts: ForwardingCounts {
        var counts = totals
        counts.open = connections.count
        return counts
    }

    /// The bytes that were taken from one side of a connection and not given to the other yet. Loop only.
    package var heldByteCount: Int { connections.values.reduce(0) { $0 + $1.heldByteCount } }

    /// Takes a stream with which a peer asks for a connection. Loop only.
    package func receive(_ stream: ByteStream) {
        let peer = stream.peer
        let port = ForwardingName.port(stream.name)
        guard let session, !isClosing else { return stream.cancel(because: "the session is closing") }
        let refusal = policy.refusal(
            port: port, isPaired: session.isPaired(with: peer),
            connections: (places.values.reduce(0, +), places[peer, default: 0]), limits: limits)
        guard let port, refusal == nil else { return refuse(stream, refusal ?? .notAllowed) }
        places[peer, default: 0] += 1
        dialler.connect(to: port) { [self] result in
            switch result {
            case .success(let local): open(stream, local, port)
            case .failure(let refusal):
                freePlace(of: peer)
                refuse(stream, refusal)
            }
        }
    }

    private func open(_ stream: ByteStream, _ local: any LocalConnection, _ port: UInt16) {
        guard let session, !isClosing, answer(.connected(grace: session.configuration.timings.grace), stream)
        else {
            freePlace(of: stream.peer)
            local.reset()
            return stream.cancel(because: "the connection was given up before it was open")
        }
        let connection = CarriedConnection(stream, local, port: port, on: session.loop) { [self] in
            closed($0, $1)
        }
        connections[ObjectIdentifier(connection)] = connection
        totals.openedEver += 1
        observer.opened(stream.peer, port)
        connection.start()
    }

    private func refuse(_ stream: ByteStream, _ refusal: ForwardingRefusal) {
        totals.refused += 1
        observer.refused(stream.peer, stream.name, refusal)
        if answer(.refused(refusal), stream) { stream.finish() }
        stream.cancelReading(because: "the connection was refused")
    }

    /// Returns whether the answer was taken: the stream is new, so it has room, but the peer may have given it up.
    private func answer(_ answer: ForwardingAnswer, _ stream: ByteStream) -> Bool {
        (try? stream.tryWrite(ByteSlice(answer.bytes))) == ForwardingAnswer.byteCount
    }

    private func closed(_ connection: CarriedConnection, _ error: NighError?) {
        connections[ObjectIdentifier(connection)] = nil
        freePlace(of: connection.stream.peer)
        totals.sent += connection.sent
        totals.received += connection.received
        observer.closed(
            connection.stream.peer, connection.port, connection.sent, connection.received, error)
    }

    private func freePlace(of peer: PeerID) {
        places[peer] = places[peer].flatMap { $0 > 1 ? $0 - 1 : nil }
    }

    /// Ends the connections of peers that are no longer paired with this device.
    package func handle(_ event: SessionEvent) {
        guard policy.peers == .paired, let session, let peer = event.changedPeer,
            places[peer.id] != nil, !session.isPaired(with: peer.id)
        else { return }
        for connection in connections.values where connection.stream.peer == peer.id {
            connection.end(because: "the two devices are no longer paired")
        }
    }

    /// Ends all connections, so that their ends hear of it at once.
    package func sessionWillClose() {
        isClosing = true
        for connection in connections.values { connection.end(because: "the other side closes its session") }
    }
}
