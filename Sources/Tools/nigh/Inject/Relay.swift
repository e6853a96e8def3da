import NighLoop
import NighCore
import NighMemory

/// Passes on all bytes and packets between those that connect here and one address, through faults. It does not
/// interpret them: TLS passes through unchanged, and both ends still prove their keys to each other.
///
/// If one side sends faster than the other accepts, nothing more is read from it: for each direction, at most one read
/// and the bytes that the faults delay are in memory. All faults are on the side of the target, so that "out" is
/// towards it.
///
/// Loop only. `@unchecked Sendable`, because timers and transports hold it.
final class Relay: TransportEvents, @unchecked Sendable {
    /// An event of the relay, for the code that shows it.
    enum Event: Sendable {
        case listening([TransportAddress])
        case down(NighError)
        case advertisingFailed(NighError)
        /// A caller has connected; the target has not answered yet.
        case opened(Int, from: String?)
        /// The target has answered.
        case connected(Int)
        /// The target could not be reached.
        case failed(Int, NighError)
        /// Both sides of the connection are closed.
        case closed(Int, Traffic, reason: String)
        /// One more caller was turned away, because there are as many connections as allowed.
        case rejected(from: String?)
    }

    /// The traffic of one connection.
    struct Traffic: Hashable, Sendable {
        var bytesOut = 0
        var bytesIn = 0
        var packetsOut = PacketCounts()
        var packetsIn = PacketCounts()
        var lasted = Moment.Span.zero
    }

    /// The maximum number of connections; more are turned away.
    static let connectionLimit = 256
    /// How long the target may take to answer.
    static let dialTimeout = Duration.seconds(10)

    let control: FaultControl
    private let listener: any Transport
    private let dialler: FaultyTransport
    private let target: TransportAddress
    private let loop: any EventLoop
    private let report: (Event) -> Void
    private var connections: [Int: RelayedConnection] = [:]
    private var count = 0
    private var hasStopped = false
    /// The transports that do not work now.
    private var down: Set<ObjectIdentifier> = []
    private static let downDelay = Moment.Span.milliseconds(250)

    /// Creates a relay, which owns both transports from now on.
    init(
        from listener: any Transport, through dialler: FaultyTransport, to target: TransportAddress,
        on loop: any EventLoop, report: @escaping (Event) -> Void
    ) {
        self.listener = listener
        self.dialler = dialler
        self.target = target
        self.loop = loop
        self.report = report
        control = dialler.control
    }

    /// Starts listening. Called once.
    func start(service: ServiceName) {
        listener.start(on: loop, events: self)
        dialler.start(on: loop, events: self)
        listener.advertise(
            Advertisement(
                service: service, peer: Identity.ephemeral().peerID, name: .init(fitting: "nigh inject")))
    }

    /// Closes everything. All remaining events are reported before it returns.
    func stop() {
        guard !hasStopped else { return }
        for connection in connections.values.sorted(by: { $0.number < $1.number }) {
            connection.end("the relay has stopped")
        }
        hasStopped = true
        listener.shutdown()
        dialler.shutdown()
    }

    /// The open connections, the oldest first: number, origin, traffic, and whether the target has answered.
    var open: [(number: Int, from: String?, traffic: Traffic, isConnected: Bool)] {
        connections.values.sorted { $0.number < $1.number }.map {
            ($0.number, $0.origin, $0.traffic(at: loop.now), $0.isConnected)
        }
    }

    /// Returns the target of a fault: the connection with that number, or all. Returns nil if there is no such
    /// connection, or if its target has not answered yet.
    func target(of number: Int?) -> FaultControl.Target? {
        guard let number else { return .all }
        return connections[number]?.faultNumber.map(FaultControl.Target.pipe)
    }

    func connectionEnded(_ connection: RelayedConnection, reason: String) {
        guard connections.removeValue(forKey: connection.number) != nil else { return }
        if !connection.isConnected { dialler.cancelDial(DialID(number: UInt64(connection.number))) }
        report(.closed(connection.number, connection.traffic(at: loop.now), reason: reason))
    }

    // MARK: Transport events

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        guard !hasStopped else { return pipe.close(.now) }
        if let dial {
            guard let connection = connections[Int(dial.number)] else { return pipe.close(.now) }
            // The faulty transport has just numbered this pipe, so it is the last one.
            connection.connected(to: pipe, faultNumber: control.pipes.last?.number)
            report(.connected(connection.number))
            return
        }
        let origin = pipe.remoteAddress?.description
        guard connections.count < Self.connectionLimit else {
            pipe.close(.now)
            return report(.rejected(from: origin))
        }
        count += 1
        let connection = RelayedConnection(count, from: pipe, at: loop.now, in: self)
        connections[count] = connection
        report(.opened(count, from: origin))
        connection.start()
        dialler.dial(target, as: DialID(number: UInt64(count)), timeout: Self.dialTimeout)
    }

    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        guard let connection = connections.removeValue(forKey: Int(dial.number)) else { return }
        connection.abandon()
        report(.failed(connection.number, error))
    }

    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        if transport === listener { report(.listening(addresses)) }
    }

    /// A transport that cannot work at all reports that as well, at once or a little later. That is the better reason,
    /// and is then reported alone.
    func advertisingFailed(_ error: NighError, by transport: any Transport) {
        loop.schedule(at: loop.now + Self.downDelay) { [self] in
            if !down.contains(ObjectIdentifier(listener)), !hasStopped { report(.advertisingFailed(error)) }
        }
    }

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        switch condition {
        case .up: down.remove(ObjectIdentifier(transport))
        case .down(let error): if down.insert(ObjectIdentifier(transport)).inserted { report(.down(error)) }
        }
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) {}
    func routeChanged(_ sighting: Sighting, by transport: any Transport) {}
    func routeLost(_ address: TransportAddress, by transport: any Transport) {}
    func addressKnown(_ address: TransportAddress, by transport: any Transport) {}
    func advertised(as name: DisplayName, by transport: any Transport) {}
    func browsingFailed(_ error: NighError, by transport: any Transport) {}
}

/// One connection of a caller to the relay, with the pipe to the target. Loop only.
final class RelayedConnection {
    let number: Int
    /// Where the caller comes from, if the transport can say.
    let origin: String?
    /// The number of the pipe to the target in `FaultControl`.
    private(set) var faultNumber: Int?
    private let client: Side
    private var target: Side?
    private var packets: RelayedPackets?
    private let relay: Relay
    private let openedAt: Moment

    init(_ number: Int, from pipe: any Pipe, at moment: Moment, in relay: Relay) {
        self.number = number
        self.relay = relay
        openedAt = moment
        origin = pipe.remoteAddress?.description
        client = Side(pipe)
        client.connection = self
    }

    var isConnected: Bool { target != nil }

    func traffic(at moment: Moment) -> Relay.Traffic {
        Relay.Traffic(
            bytesOut: client.bytesReceived, bytesIn: target?.bytesReceived ?? 0,
            packetsOut: packets?.out ?? PacketCounts(), packetsIn: packets?.in ?? PacketCounts(),
            lasted: moment - openedAt)
    }

    /// Starts the pipe of the caller. Nothing is read from it before the target has answered.
    func start() {
        client.pipe.start(handler: client)
        client.pause()
    }

    /// Connects both sides after the target has answered.
    func connected(to pipe: any Pipe, faultNumber: Int?) {
        self.faultNumber = faultNumber
        let target = Side(pipe)
        target.connection = self
        target.other = client
        client.other = target
        self.target = target
        pipe.start(handler: target)
        packets = RelayedPackets(between: client.pipe, and: pipe)
        client.forwardWaiting()
    }

    /// Ends the connection because one side has finished. The other side is closed once it was sent the bytes that are
    /// still on their way.
    func end(_ reason: String, _ mode: PipeCloseMode = .afterWriting) {
        relay.connectionEnded(self, reason: reason)
        abandon(mode)
    }

    /// Closes both sides and reports nothing.
    func abandon(_ mode: PipeCloseMode = .now) {
        packets?.close()
        for side in [client, target] {
            side?.pipe.close(mode)
            side?.other = nil
            side?.connection = nil
        }
    }

    /// One end of a connection: bytes that arrive here are sent at the other end.
    final class Side: PipeHandler {
        let pipe: any Pipe
        /// Nil once the connection is over.
        var connection: RelayedConnection?
        /// Nil until both sides are connected, and after the end.
        var other: Side?
        private(set) var bytesReceived = 0
        private var waiting = ByteQueue()
        private var isPaused = false

        init(_ pipe: any Pipe) { self.pipe = pipe }

        func pause() {
            guard !isPaused else { return }
            isPaused = true
            pipe.pauseReading()
        }

        /// Sends on the bytes that have arrived, and reads on unless the other side is backed up.
        func forwardWaiting() {
            guard let other else { return }
            if !waiting.isEmpty { other.pipe.write(&waiting) }
            if other.pipe.writableBytes <= 0 {
                pause()
            } else if isPaused {
                isPaused = false
                pipe.resumeReading()
            }
        }

        func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
            bytesReceived += bytes.count
            waiting.append(bytes)
            forwardWaiting()
        }

        func pipeBecameWritable(_ pipe: any Pipe) { other?.forwardWaiting() }

        func pipeEnded(_ pipe: any Pipe) { connection?.end("\(name) has finished") }

        func pipeClosed(_ pipe: any Pipe, error: NighError?) {
            if let error {
                connection?.end("\(name): \(error.cause)", .now)
            } else {
                connection?.end("\(name) has closed")
            }
        }

        func pipeDrained(_ pipe: any Pipe) {}

        private var name: String { connection?.client === self ? "the caller" : "the target" }
    }
}
