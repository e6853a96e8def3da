import Glibc
import NighCore
import NighUV

/// Opens pipes over TCP, on Wi-Fi, Ethernet and any other network that carries IP.
///
/// It listens on both IP versions, dials every address of a peer in the manner of Happy Eyeballs, and follows the
/// machine's addresses as they come and go. It runs on a `UVEventLoop` and on no other loop.
///
/// All state is confined to the loop from `start` on; hence `@unchecked Sendable`.
public final class TCPTransport: @unchecked Sendable {
    static let schemeName = "tcp"

    /// The entry for a registry: `tcp`, `tcp:port=4000,interface=wlan0`, `tcp:host=192.168.1.7,port=4000`.
    public static let registryEntry = TransportRegistry.Entry(
        scheme: schemeName, summary: "Wi-Fi, Ethernet and other networks, found by multicast DNS",
        options: TCPOptions.keys,
        make: { spec throws(NighError) in TCPTransport(try TCPOptions(spec)) })

    /// Datagrams by UDP, and the values of a local network.
    public let capabilities = TransportCapabilities(
        datagrams: true, typicalMTU: 1_448, typicalLatency: .milliseconds(3),
        expectedConnectTime: .milliseconds(20), priority: 100)

    private struct Running {
        let loop: UVEventLoop
        let events: any TransportEvents
        let network: NetworkWatch
        let dialler: TCPDialler
        let finder: PeerFinder?
        let listening: RetryingListener<TCPListener>
        let packetSockets: UDPSockets
    }

    private let options: TCPOptions
    private var running: Running?
    private var isStarted = false
    /// Set if the transport was started on a loop that it cannot run on.
    private var unsupportedLoop: UnsupportedLoop?

    private var advertisement: Advertisement?
    private var isBrowsing = false
    /// How many times a search was begun or ended.
    private var searchCount = 0
    /// The port that the system chose. If listening is given up for a while, the same port is taken again.
    private var drawnPort: UInt16 = 0
    /// The index that the one interface to use had when the listener was bound to it.
    private var listeningIndex: UInt32 = 0
    private var interfaceIsMissing = false
    /// Whether the transport was last reported as down. Then no route counts, so none is reported.
    private var isReportedDown = false
    private var connections: [ObjectIdentifier: TCPConnection] = [:]
    /// The pipes that are closed and wait for the other side's end. The one that has waited longest is first.
    private var lingering: [SocketPipe] = []
    /// How many pipes may linger. Otherwise a peer that opens connections without end, and never closes one, would use
    /// up this machine's descriptors.
    static let lingeringLimit = 256

    /// Creates a transport with these options.
    public init(_ options: TCPOptions = TCPOptions()) { self.options = options }

    // MARK: The network

    private func networkChanged() {
        breakPipesOfLostAddresses()
        checkInterface()
        closeDeafListener()
        if advertisement != nil { running?.listening.begin() }
        running?.finder?.addressesChanged()
        running?.listening.reportAddresses()
    }

    /// Breaks the pipes whose own address this machine no longer has. Nothing arrives for such an address, so they
    /// would otherwise only notice the silence.
    private func breakPipesOfLostAddresses() {
        guard let running else { return }
        let hosts = Set(running.network.assigned.map(\.address.host))
        for connection in connections.values {
            guard let own = connection.own, !own.isLoopback, !hosts.contains(own.host) else { continue }
            connection.pipe.fail(with: NighError(.conversing, .linkLost, transport: Self.schemeName))
        }
    }

    /// Checks whether the one interface that was asked for is there. Reports the transport as down or up when that
    /// changes. Once it is up, all peers that are announced are found again: a short loss of carrier ends no
    /// announcement, so discovery has nothing to report.
    private func checkInterface() {
        guard let running, let name = options.interface else { return }
        let isMissing = !running.network.addresses.contains { $0.interface == name }
        guard isMissing != interfaceIsMissing else { return }
        interfaceIsMissing = isMissing
        let condition: TransportCondition = isMissing ? .down(Self.missing(name)) : .up
        running.loop.later { [weak self] in
            guard let self, let running = self.running else { return }
            isReportedDown = isMissing
            running.events.transportChanged(condition, by: self)
            if !isMissing { self.running?.finder?.reportAgain() }
        }
    }

    /// Closes the listener if its interface was made anew, under another index. The socket stays bound to the old one,
    /// on which nothing arrives any more.
    private func closeDeafListener() {
        guard let running, listener != nil, let name = options.interface,
            let index = running.network.assigned.first(where: { $0.interface == name })?.index,
            index != listeningIndex
        else { return }
        running.listening.stop()
    }

    private static func missing(_ name: String) -> NighError {
        NighError(
            .starting, .unavailable("the interface \(name) is not up, or has no address"),
            transport: schemeName, advice: "`ip address show` lists the interfaces")
    }

    /// The addresses of this machine that the transport uses, with port 0.
    private var usableAddresses: [NetworkWatch.InterfaceAddress] {
        guard let running else { return [] }
        let all = running.network.addresses
        guard let name = options.interface else { return all }
        return all.filter { $0.interface == name }
    }

    // MARK: Listening

    private var listener: TCPListener? { running?.listening.listener }

    /// Listens, and publishes the advertisement.
    private func listen(on loop: UVEventLoop) throws(NighError) -> TCPListener {
        func listen(_ port: UInt16) throws(SocketFault) -> TCPListener {
            try TCPListener.listen(
                port: port, interface: options.interface, on: loop,
                accepted: { [weak self] in self?.accepted($0) },
                failed: { [weak self] in self?.acceptFailed($0) })
        }
        listeningIndex = options.interface.map { if_nametoindex($0) } ?? 0
        do throws(SocketFault) {
            let listener: TCPListener
            do throws(SocketFault) {
                listener = try listen(options.port == 0 ? drawnPort : options.port)
            } catch {
                // Another program now has the port that the system had chosen.
                guard options.port == 0, error.number == EADDRINUSE else { throw error }
                listener = try listen(0)
            }
            drawnPort = listener.port
            publish(listener)
            return listener
        } catch {
            throw error.listenError(port: options.port, interface: options.interface)
        }
    }

    private func publish(_ listener: TCPListener) {
        guard let advertisement else { return }
        running?.finder?.publish(advertisement, port: listener.port)
    }

    private func accepted(_ connection: TCPConnection) {
        guard let running else { return connection.pipe.finish() }
        connection.sharePackets(through: running.packetSockets, on: running.loop)
        adopt(connection, to: nil)
        running.events.pipeOpened(connection.pipe, dial: nil, by: self)
    }

    /// Gives up listening for a while because descriptors or memory have run out. Peers that dial meanwhile are refused
    /// and need not wait.
    private func acceptFailed(_ fault: SocketFault) {
        running?.listening.fail(fault.listenError(port: drawnPort, interface: options.interface))
    }

    private func addresses(of listener: TCPListener) -> [TransportAddress] {
        let port = listener.port
        let own = usableAddresses.map { own in
            var address = own.address
            address.port = port
            return address
        }
        let others = own.filter { !$0.isLoopback }
        return (others.isEmpty ? own : others).map(\.transportAddress)
    }

    // MARK: Pipes

    private func adopt(_ connection: TCPConnection, to peer: PeerID?) {
        let pipe = connection.pipe
        let key = ObjectIdentifier(pipe)
        let host = peer == nil ? connection.other?.host : nil
        connections[key] = connection
        if let peer { running?.finder?.pipeOpened(to: peer) }
        pipe.beganToLinger = { [weak self] in self?.beganToLinger($0) }
        pipe.didFinish = { [weak self] pipe in
            self?.connections[key] = nil
            self?.lingering.removeAll { $0 === pipe }
            self?.running?.finder?.pipeEnded(
                to: peer, host: host, saidSomething: pipe.counters.bytesReceived > 0)
        }
    }

    /// Adds a pipe that has sent everything, and lingers. If there are too many, ends the first.
    private func beganToLinger(_ pipe: SocketPipe) {
        lingering.append(pipe)
        guard lingering.count > Self.lingeringLimit else { return }
        lingering.first?.finish()
    }

    private func dialEnded(_ id: DialID, _ outcome: Result<TCPDialler.Opened, NighError>) {
        guard let running else { return }
        switch outcome {
        case .failure(let error): running.events.dialFailed(id, error: error, by: self)
        case .success((let connection, let peer)):
            adopt(connection, to: peer)
            running.events.pipeOpened(connection.pipe, dial: id, by: self)
        }
    }

    private func reportKnownAddresses() {
        for address in options.knownAddresses {
            guard let running, isBrowsing else { return }
            running.events.addressKnown(address, by: self)
        }
    }

    private func addresses(of peer: PeerID) -> [SocketAddress] {
        guard let running, let finder = running.finder else { return [] }
        let own = Dictionary(grouping: running.network.assigned, by: \.address.host)
        return finder.addresses(
            of: peer, ownHosts: own.mapValues { Set($0.map(\.index)) }, ownPort: listener?.port)
    }
}

extension TCPTransport: PeerFinderEvents {
    func neighboursChanged(_ changes: [SightingChange]) {
        let search = searchCount
        for change in changes {
            // A receiver of the event may stop or restart the search.
            guard let running, search == searchCount, !isReportedDown else { return }
            running.events.report(change, by: self)
        }
    }

    func advertised(as name: DisplayName) { running?.events.advertised(as: name, by: self) }

    func advertisingFailed(_ error: NighError) { running?.events.advertisingFailed(error, by: self) }

    func browsingFailed(_ error: NighError) { running?.events.browsingFailed(error, by: self) }
}

// The protocol documents these members.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension TCPTransport: Transport {
    public var scheme: String { Self.schemeName }

    public func start(on loop: any EventLoop, events: any TransportEvents) {
        loop.checkIsolated()
        precondition(!isStarted, "a transport was started twice")
        isStarted = true
        guard let loop = loop as? UVEventLoop else {
            unsupportedLoop = UnsupportedLoop(loop, events, for: self)
            return
        }
        let dialler = TCPDialler(
            on: loop, interface: options.interface,
            addresses: { [weak self] in self?.addresses(of: $0) ?? [] },
            ended: { [weak self] in self?.dialEnded($0, $1) })
        let network = NetworkWatch(on: loop) { [weak self] in self?.networkChanged() }
        let finder = options.discovery.mode.map { mode in
            PeerFinder(mode: mode, interface: options.interface, on: loop, events: self) {
                dialler.probe($0, timeout: PresenceCheck.probeTimeout, $1)
            }
        }
        let listening = RetryingListener(of: self, events: events, on: loop) {
            [unowned self] () throws(NighError) in
            try listen(on: loop)
        } addresses: { [unowned self] in
            addresses(of: $0)
        } close: {
            $0.close()
        }
        running = Running(
            loop: loop, events: events, network: network, dialler: dialler, finder: finder,
            listening: listening, packetSockets: UDPSockets(interface: options.interface, on: loop))
        checkInterface()
    }

    public func advertise(_ advertisement: Advertisement) {
        self.advertisement = advertisement
        if let listener { publish(listener) } else { running?.listening.begin() }
    }

    public func updateAdvertisement(_ advertisement: Advertisement) {
        guard self.advertisement != nil else { return }
        self.advertisement = advertisement
        if let listener { publish(listener) }
    }

    public func stopAdvertising() {
        advertisement = nil
        running?.finder?.unpublish()
        running?.listening.stop()
    }

    public func browse(_ service: ServiceName) {
        guard let running else { return }
        isBrowsing = true
        searchCount += 1
        running.finder?.browse(service)
        guard !options.knownAddresses.isEmpty else { return }
        running.loop.later { [weak self] in self?.reportKnownAddresses() }
    }

    public func stopBrowsing() {
        isBrowsing = false
        searchCount += 1
        running?.finder?.stopBrowsing()
    }

    public func dial(_ address: TransportAddress, as id: DialID, timeout: Duration) {
        if let running { return running.dialler.dial(address, as: id, timeout: timeout) }
        unsupportedLoop?.refuse(id, by: self)
    }

    public func cancelDial(_ id: DialID) {
        running?.dialler.cancel(id)
        unsupportedLoop?.cancel(id)
    }

    public func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) {
        if let running { return running.dialler.places(behind: address, found: found) }
        found(.success([address]))
    }

    public func mayDial(_ address: TransportAddress, introducedBy introducer: TransportAddress?) -> Bool {
        TCPDestination.mayDial(address, introducedBy: introducer)
    }

    public func diagnose() -> [Diagnosis] {
        guard running != nil else {
            guard unsupportedLoop != nil else { return [Diagnosis("tcp", .fail, "not started")] }
            return [UnsupportedLoop.diagnosis(of: Self.schemeName)]
        }
        var lines: [Diagnosis] = []
        if let name = options.interface, interfaceIsMissing {
            lines.append(TCPDiagnosis.interface(name, isMissing: Self.missing(name)))
        } else {
            lines += TCPDiagnosis.addresses(usableAddresses, isInterfaceNamed: options.interface != nil)
        }
        lines.append(TCPDiagnosis.listening(on: listener?.port, running?.listening.error))
        if let finder = running?.finder {
            lines += finder.diagnose()
        } else {
            lines.append(
                Diagnosis(
                    "mDNS", .pass, "off: peers are dialled by their addresses", id: "mdns"))
        }
        lines.append(Diagnosis("pipes", .pass, "\(connections.count) open"))
        return lines
    }

    public func shutdown() {
        unsupportedLoop = nil
        guard let running else { return }
        running.dialler.stop()
        running.finder?.shutdown()
        running.listening.stop()
        running.network.stop()
        self.running = nil
        let open = connections.values
        connections = [:]
        lingering = []
        for connection in open { connection.pipe.finish() }
    }
}
