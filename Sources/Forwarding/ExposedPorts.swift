import NighCore

/// Connects peers to ports of this device that were exposed to them.
///
/// A layer of its session. A peer asks for a connection with a stream. The policy refuses it, or this side connects to
/// the port over loopback; the answer is the first thing that this side writes. Until then, the peer's bytes wait in
/// the stream.
///
/// `@unchecked Sendable`: the constants may be read anywhere, and everything else is confined to the session's loop.
package final class ExposedPorts: ConversationLayer, @unchecked Sendable {
    /// The program's handlers, which are called on the loop.
    package struct Observer {
        /// A peer was connected to a port.
        package var opened: (PeerID, _ port: UInt16) -> Void = { _, _ in }
        /// A peer was refused a connection. The name is the one that it asked for, which need not be a port.
        package var refused: (PeerID, _ name: String, ForwardingRefusal) -> Void = { _, _, _ in }
        /// A connection is over. The bytes are those sent to the peer, and those received from it. The error is the
        /// reason if the connection did not end in good order.
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
    private let connections = CarriedConnections()
    private var isClosing = false

    package init(
        _ policy: ForwardingPolicy, limits: ForwardingLimits = ForwardingLimits(),
        dialling dialler: any LocalDialler
    ) {
        self.policy = policy
        self.limits = limits
        self.dialler = dialler
    }

    package var purposes: [StreamPurpose] { [.forward] }

    /// Begins to follow a session.
    package func attach(to session: Session) { self.session = session }

    /// Reports all events from now on. Call it before the session has started.
    package func report(to observer: Observer) { self.observer = observer }

    /// The connections so far, and the bytes of those that are over. Loop only.
    package var counts: ForwardingCounts { connections.counts }

    /// The bytes that were taken from one side of a connection and not given to the other yet. Loop only.
    package var heldByteCount: Int { connections.heldByteCount }

    /// Answers a stream with which a peer asks for a connection. Loop only.
    package func receive(_ stream: ByteStream) {
        let peer = stream.peer
        let port = ForwardingName.port(stream.name)
        guard let session, !isClosing else { return stream.cancel(because: "the session is closing") }
        let refusal = policy.refusal(
            port: port, isPaired: session.isPaired(with: peer),
            connections: (connections.count, connections.count(of: peer)), limits: limits)
        guard let port, refusal == nil else { return refuse(stream, refusal ?? .notAllowed) }
        connections.takePlace(for: peer)
        dialler.connect(to: port) { [self] result in
            switch result {
            case .success(let local): open(stream, local, port)
            case .failure(let refusal):
                connections.freePlace(of: peer)
                refuse(stream, refusal)
            }
        }
    }

    private func open(_ stream: ByteStream, _ local: any LocalConnection, _ port: UInt16) {
        guard let session, !isClosing, answer(.connected(grace: session.configuration.timings.grace), stream)
        else {
            connections.freePlace(of: stream.peer)
            local.reset()
            return stream.cancel(because: "the connection was given up before it was open")
        }
        let connection = connections.add(stream, local, port: port, on: session.loop) { [self] in
            observer.closed($0.stream.peer, $0.port, $0.sent, $0.received, $1)
        }
        observer.opened(stream.peer, port)
        connection.start()
    }

    private func refuse(_ stream: ByteStream, _ refusal: ForwardingRefusal) {
        connections.noteRefusal()
        observer.refused(stream.peer, stream.name, refusal)
        if answer(.refused(refusal), stream) { stream.finish() }
        stream.cancelReading(because: "the connection was refused")
    }

    /// Writes the answer. Returns false if the peer has given up the stream. A new stream always has room for it.
    private func answer(_ answer: ForwardingAnswer, _ stream: ByteStream) -> Bool {
        (try? stream.tryWrite(ByteSlice(answer.bytes))) == ForwardingAnswer.byteCount
    }

    /// Ends the connections of a peer that is no longer paired with this device.
    package func handle(_ event: SessionEvent) {
        guard policy.peers == .paired, let session, let peer = event.changedPeer,
            connections.count(of: peer.id) > 0, !session.isPaired(with: peer.id)
        else { return }
        connections.end(with: peer.id, because: "the two devices are no longer paired")
    }

    /// Ends all connections, so that the programs at both ends learn of it at once.
    package func sessionWillClose() {
        isClosing = true
        connections.end(because: "the other side closes its session")
    }
}
