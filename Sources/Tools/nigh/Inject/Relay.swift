import Nigh
import NighCore
import NighMemory

/// Passes on whatever comes between those who connect here and one address, through faults. It understands nothing of it: TLS goes
/// through untouched, and both ends still prove their keys to each other.
///
/// What one side sends faster than the other takes is not read: at most one read and what the faults hold is in memory for a direction. All
/// faults are on the side of the target, so that "out" is towards it.
///
/// Loop only. `@unchecked Sendable` for the timers and transports that hold it.
final class Relay: TransportEvents, @unchecked Sendable {
    /// What happens, for whoever shows it.
    enum Event: Sendable {
        case listening([TransportAddress])
        case down(NighError)
        case trouble(NighError)
        /// Somebody has connected; nobody over there has answered yet.
        case opened(Int, from: String?)
        /// The target has answered.
        case connected(Int)
        /// The target could not be reached.
        case failed(Int, NighError)
        /// Both sides are over.
        case closed(Int, Toll, words: String)
        /// There are as many as there may be, and one more was turned away.
        case turnedAway(from: String?)
    }

    /// What has passed over one connection.
    struct Toll: Hashable, Sendable {
        var bytesOut = 0
        var bytesIn = 0
        var lasted = Moment.Span.zero
    }

    /// More connections are turned away.
    static let connectionLimit = 256
    /// For how long the target may take to answer.
    static let patience = Duration.seconds(10)

    let control: FaultControl
    private let listener: any Transport
    private let dialler: FaultyTransport
    private let target: TransportAddress
    private let loop: any EventLoop
    private let tell: (Event) -> Void
    private var connections: [Int: RelayedConnection] = [:]
    private var count = 0
    private var hasStopped = false
    private var isDown = false
    private static let patienceWithGround = Moment.Span.milliseconds(250)

    /// Both transports belong to the relay from here on.
    init(
        from listener: any Transport, through dialler: FaultyTransport, to target: TransportAddress,
        on loop: any EventLoop, tell: @escaping (Event) -> Void
    ) {
        self.listener = listener
        self.dialler = dialler
        self.target = target
        self.loop = loop
        self.tell = tell
        control = dialler.control
    }

    /// Listens. Once.
    func start(service: ServiceName) {
        listener.start(on: loop, events: self)
        dialler.start(on: loop, events: self)
        listener.advertise(
            Advertisement(
                service: service, peer: Identity.ephemeral().peerID, name: .init(fitting: "nigh inject")))
    }

    /// Closes everything; what is still to be told is told before it returns.
    func stop() {
        guard !hasStopped else { return }
        for connection in connections.values.sorted(by: { $0.number < $1.number }) {
            connection.end("the relay has stopped")
        }
        hasStopped = true
        listener.shutdown()
        dialler.shutdown()
    }

    /// The connections there are, the oldest first: number, where they come from, and what has passed.
    var open: [(number: Int, from: String?, toll: Toll, isConnected: Bool)] {
        connections.values.sorted { $0.number < $1.number }.map {
            ($0.number, $0.origin, $0.toll(at: loop.now), $0.isConnected)
        }
    }

    /// Whom a fault is for: the connection of that number, or all. Nil where there is none of that number.
    func target(of number: Int?) -> FaultControl.Target? {
        guard let number else { return .all }
        return connections[number]?.faultNumber.map(FaultControl.Target.pipe)
    }

    func over(_ connection: RelayedConnection, words: String) {
        guard connections.removeValue(forKey: connection.number) != nil else { return }
        if !connection.isConnected { dialler.cancelDial(DialID(number: UInt64(connection.number))) }
        tell(.closed(connection.number, connection.toll(at: loop.now), words: words))
    }

    // MARK: What the transports tell

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        guard !hasStopped else { return pipe.close(.now) }
        if let dial {
            guard let connection = connections[Int(dial.number)] else { return pipe.close(.now) }
            // The faulty transport has just numbered it, so it is the last one.
            connection.connected(to: pipe, faultNumber: control.pipes.last?.number)
            tell(.connected(connection.number))
            return
        }
        let origin = pipe.remoteAddress?.description
        guard connections.count < Self.connectionLimit else {
            pipe.close(.now)
            return tell(.turnedAway(from: origin))
        }
        count += 1
        let connection = RelayedConnection(count, from: pipe, at: loop.now, in: self)
        connections[count] = connection
        tell(.opened(count, from: origin))
        connection.start()
        dialler.dial(target, as: DialID(number: UInt64(count)), timeout: Self.patience)
    }

    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        guard let connection = connections.removeValue(forKey: Int(dial.number)) else { return }
        connection.abandon()
        tell(.failed(connection.number, error))
    }

    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        if transport === listener { tell(.listening(addresses)) }
    }

    /// A transport that lacks its ground tells that as well, sooner or later: the better reason, and what is told then alone.
    func advertisingFailed(_ error: NighError, by transport: any Transport) {
        loop.schedule(at: loop.now + Self.patienceWithGround) { [self] in
            if !isDown, !hasStopped { tell(.trouble(error)) }
        }
    }

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        guard case .down(let error) = condition, !isDown else { return }
        isDown = true
        tell(.down(error))
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) {}
    func routeChanged(_ sighting: Sighting, by transport: any Transport) {}
    func routeLost(_ address: TransportAddress, by transport: any Transport) {}
    func addressKnown(_ address: TransportAddress, by transport: any Transport) {}
    func advertised(as name: DisplayName, by transport: any Transport) {}
    func browsingFailed(_ error: NighError, by transport: any Transport) {}
}

/// One who has connected to a relay, and the pipe to the target that belongs to it. Loop only.
final class RelayedConnection {
    let number: Int
    /// Where it comes from, where the transport can say.
    let origin: String?
    /// The number that the faults know it by.
    private(set) var faultNumber: Int?
    private let client: Side
    private var target: Side?
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

    func toll(at moment: Moment) -> Relay.Toll {
        Relay.Toll(
            bytesOut: client.bytesReceived, bytesIn: target?.bytesReceived ?? 0, lasted: moment - openedAt)
    }

    /// Begins with the client alone, of whom nothing is read before the target is there.
    func start() {
        client.pipe.start(handler: client)
        client.pause()
    }

    /// The target has answered.
    func connected(to pipe: any Pipe, faultNumber: Int?) {
        self.faultNumber = faultNumber
        let target = Side(pipe)
        target.connection = self
        target.other = client
        client.other = target
        self.target = target
        pipe.start(handler: target)
        client.passOnWhatWaits()
    }

    /// One side has finished: so does the other, once it has been sent what is still on its way.
    func end(_ words: String, _ manner: PipeCloseManner = .afterWriting) {
        relay.over(self, words: words)
        abandon(manner)
    }

    /// Closes both sides and says nothing.
    func abandon(_ manner: PipeCloseManner = .now) {
        for side in [client, target] {
            side?.pipe.close(manner)
            side?.other = nil
            side?.connection = nil
        }
    }

    /// One end of a connection: what comes here goes out at the other.
    final class Side: PipeHandler {
        let pipe: any Pipe
        /// Nil once the connection is over.
        var connection: RelayedConnection?
        /// Nil as long as there is none.
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

        /// Sends on what has come, and reads again unless the other side is backed up.
        func passOnWhatWaits() {
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
            passOnWhatWaits()
        }

        func pipeBecameWritable(_ pipe: any Pipe) { other?.passOnWhatWaits() }

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
