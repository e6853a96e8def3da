import Glibc
import NighCore
import NighMDNS
import NighTCP
import NighUV

/// Lets guests in: people who open an address in a browser, on the same local network and without encryption.
///
/// It serves a page, and the page opens a WebSocket, which is the guest's pipe. It finds nobody and dials nobody.
/// `GuestBook` decides who comes in. It is used only where somebody names it.
///
/// All state is confined to the loop from `start` on; hence `@unchecked Sendable`.
public final class WebTransport: @unchecked Sendable {
    package static let schemeName = "web"
    /// The path of the WebSocket, and the name of the protocol on it.
    static let path = "/nigh"
    static let subprotocol = "nigh.1"
    /// The most connections at a time, and the most from one address: browsers open several for the files of a page.
    static let mostConnections = 64
    static let mostConnectionsOfSource = 16

    /// The entry for a registry: `web`, `web:port=8080`.
    public static let registryEntry = TransportRegistry.Entry(
        scheme: schemeName, summary: "guests with a browser, who scan a code; they have no encryption",
        options: WebOptions.keys,
        make: { spec throws(NighError) in WebTransport(try WebOptions(spec)) })

    /// A browser on the same network. A phone that sleeps comes back after minutes.
    public let capabilities: TransportCapabilities

    struct Running {
        let loop: UVEventLoop
        let events: any TransportEvents
        let network: NetworkWatch
        let discovery: ServiceDiscovery
        let listening: RetryingListener<WebListener>
    }

    /// The page that browsers get. Set it before the session starts.
    public var page = WebPage.none
    package var onInvitationUsed: (() -> Void)?
    let options: WebOptions
    let times: WebTimes
    private(set) var running: Running?
    private var unsupportedLoop: UnsupportedLoop?
    private var advertisement: Advertisement?
    private var publishedPort: UInt16?
    private var drawnPort: UInt16 = 0
    private var book = GuestBook()
    private var connections: [ObjectIdentifier: WebConnection] = [:]
    private var connectionsBySource: [String: Int] = [:]
    /// How many connections there are.
    var connectionCount: Int { connections.count }
    /// How many connections were refused because there were too many.
    private(set) var refusedCount = 0
    /// The dials whose failure was not reported yet.
    private var dials: Set<DialID> = []

    init(_ options: WebOptions, times: WebTimes = WebTimes()) {
        self.options = options
        self.times = times
        var capabilities = TransportCapabilities(
            datagrams: false, typicalMTU: 1_448, typicalLatency: .milliseconds(5),
            expectedConnectTime: .milliseconds(50), priority: 900)
        capabilities.isForPeople = false
        capabilities.suggestedGrace = .seconds(5 * 60)
        self.capabilities = capabilities
    }

    /// How long an invitation waits for a listener, and for the name of this machine, and how often it looks.
    private static let listeningTime = Moment.Span.seconds(3)
    private static let nameTime = Moment.Span.milliseconds(700)
    private static let invitationPause = Moment.Span.milliseconds(20)

    private static let guestsOnly = NighError.Cause.unavailable(
        "guests come by themselves, and cannot be called")

    // MARK: Listening

    private func networkChanged() {
        guard let running else { return }
        running.discovery.addressesChanged()
        guard let listener = running.listening.listener, listener.addresses.map(\.host) != usableHosts else {
            return
        }
        running.listening.stop()
        if advertisement != nil { running.listening.begin() }
    }

    var usableHosts: [SocketAddress.Host] {
        guard let running else { return [] }
        return LocalNetwork.addresses(among: running.network.addresses, interface: options.interface)
            .map(\.address.host)
    }

    private func listen(on loop: UVEventLoop) throws(NighError) -> WebListener {
        let hosts = usableHosts
        guard !hosts.isEmpty else {
            throw NighError(
                .advertising, .unavailable("this machine has no address on a local network"),
                transport: scheme, advice: "`ip address show` lists the addresses")
        }
        func listen(_ port: UInt16) throws(SocketFault) -> WebListener {
            try WebListener(
                hosts, port: port, on: loop, accepted: { [weak self] in self?.accepted($0) },
                failed: { [weak self] in self?.acceptFailed($0) })
        }
        do throws(SocketFault) {
            let wanted = options.port ?? (drawnPort == 0 ? WebOptions.usualPort : drawnPort)
            let listener: WebListener
            do throws(SocketFault) {
                listener = try listen(wanted)
            } catch {
                guard options.port == nil, error.number == EADDRINUSE else { throw error }
                listener = try listen(0)
            }
            drawnPort = listener.port
            publish(listener.port)
            return listener
        } catch {
            throw error.listenError(port: options.port ?? drawnPort)
        }
    }

    /// Publishes the page as a web page of the local network, so that others find the name of this machine.
    private func publish(_ port: UInt16) {
        guard let advertisement, let running else { return }
        publishedPort = port
        running.discovery.publish(
            ServiceRegistration(
                type: ServiceType(tcp: "http"), name: advertisement.name, port: port,
                text: [TextEntry(key: "path", value: Array("/".utf8))].compactMap(\.self)))
    }

    private func accepted(_ descriptor: Int32) {
        guard let running else {
            close(descriptor)
            return
        }
        let (own, other) = TCPSocket.ends(of: descriptor)
        let source = other?.hostDescription ?? "unknown"
        guard makeRoom(for: source),
            let socket = try? SocketPipe(
                descriptor: descriptor, scheme: scheme, localAddress: own.map(transportAddress),
                remoteAddress: other.map(transportAddress), lingerTime: .seconds(2), on: running.loop)
        else {
            refusedCount += 1
            close(descriptor)
            return
        }
        TCPSocket.set(TCP_NODELAY, of: Int32(IPPROTO_TCP), to: 1, on: descriptor)
        let key = ObjectIdentifier(socket)
        connectionsBySource[source, default: 0] += 1
        socket.didFinish = { [weak self] _ in self?.connectionEnded(key, from: source) }
        connections[key] = WebConnection(socket, from: source, of: self, on: running.loop)
    }

    /// Makes room for one more connection. If all are taken, ends one on which nobody was let in, from the address with
    /// the most. Returns false if there is no room.
    private func makeRoom(for source: String) -> Bool {
        guard connectionsBySource[source, default: 0] < Self.mostConnectionsOfSource else { return false }
        guard connections.count >= Self.mostConnections else { return true }
        let idle = connections.values.filter(\.mayMakeRoom)
        let last = idle.max {
            connectionsBySource[$0.source, default: 0] < connectionsBySource[$1.source, default: 0]
        }
        guard let last else { return false }
        last.finish()
        return true
    }

    private func connectionEnded(_ key: ObjectIdentifier, from source: String) {
        guard let connection = connections.removeValue(forKey: key) else { return }
        let left = connectionsBySource[source, default: 1] - 1
        connectionsBySource[source] = left > 0 ? left : nil
        if let visitor = connection.visitor, let running { book.left(visitor, at: running.loop.now) }
    }

    private func acceptFailed(_ fault: SocketFault) {
        running?.listening.fail(fault.listenError(port: drawnPort))
    }

    private func transportAddress(_ address: SocketAddress) -> TransportAddress {
        TransportAddress(scheme: scheme, value: address.description)
    }
}

extension WebTransport: WebHost {
    var names: WebNames {
        WebNames(
            addresses: running?.listening.listener?.addresses ?? [], host: running?.discovery.hostName)
    }

    var rate: Int { options.rate }

    var byteLimit: Int { options.byteLimit }

    func enter(_ entry: GuestEntry, by connection: WebConnection) -> GuestAnswer {
        guard let running, let advertisement else { return .refused(.forgotten) }
        switch book.enter(entry, from: connection.source, at: running.loop.now) {
        case .success(let guest):
            if entry.token != nil { onInvitationUsed?() }
            return .entered(guest, advertisement)
        case .failure(let refused): return .refused(refused.reason)
        }
    }

    func opened(_ pipe: WebPipe) { running?.events.pipeOpened(pipe, dial: nil, by: self) }

    func count(_ bytes: Int, of guest: PeerID) -> Bool { book.count(bytes, of: guest) <= byteLimit }
}

extension WebTransport: GuestTransport {
    package func makeInvitation(_ done: @escaping @Sendable (GuestInvitation?) -> Void) {
        guard let running else { return done(nil) }
        makeInvitation(askedAt: running.loop.now, done)
    }

    /// Makes an invitation now, or soon if that would make it better: there is no listener yet, or the name of this
    /// machine is not known yet.
    private func makeInvitation(
        askedAt begin: Moment, _ done: @escaping @Sendable (GuestInvitation?) -> Void
    ) {
        guard let running else { return done(nil) }
        let waited = running.loop.now - begin
        let isNameKnown = running.discovery.hostName != nil || waited >= Self.nameTime
        if isNameKnown, let invitation = makeInvitationNow() { return done(invitation) }
        guard waited < Self.listeningTime else { return done(nil) }
        running.loop.schedule(at: running.loop.now + Self.invitationPause) { [weak self] in
            guard let self else { return done(nil) }
            makeInvitation(askedAt: begin, done)
        }
    }

    /// Makes an invitation. Nil while nothing listens.
    func makeInvitationNow() -> GuestInvitation? {
        guard let running, running.listening.listener != nil else { return nil }
        var random = SystemRandomNumberGenerator()
        let token = (0..<GuestEntry.tokenLength).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        book.invite(token, at: running.loop.now)
        let urls = names.urls.map { "\($0)#\(Base32.encode(token))" }
        guard let first = urls.first else { return nil }
        return GuestInvitation(
            url: first, alternatives: Array(urls.dropFirst()), validity: GuestBook.invitationTime.duration)
    }

    package var guests: [Guest] { running.map { book.guests(at: $0.loop.now) } ?? [] }

    package func revoke(_ guest: PeerID) {
        guard book.revoke(guest) else { return }
        for connection in connections.values where connection.visitor == guest { connection.sendAway() }
    }
}

// The protocol documents these members.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension WebTransport: ServiceDiscoveryEvents {
    public func serviceFoundOrChanged(_ service: DiscoveredService) {}
    public func serviceLost(_ key: DiscoveredService.Key) {}
    public func published(as name: String) {}
    // Without the name, guests use an address with numbers; `diagnose` says so.
    public func publishingFailed(_ error: NighError) {}
    public func browsingFailed(_ error: NighError) {}
    public func discoveryChanged(_ condition: DiscoveryCondition) {}
}

// The protocol documents these members.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension WebTransport: Transport {
    public var scheme: String { Self.schemeName }

    public func start(on loop: any EventLoop, events: any TransportEvents) {
        loop.checkIsolated()
        precondition(running == nil && unsupportedLoop == nil, "a transport was started twice")
        guard let loop = loop as? UVEventLoop else {
            unsupportedLoop = UnsupportedLoop(loop, events, for: self)
            return
        }
        let network = NetworkWatch(on: loop) { [weak self] in self?.networkChanged() }
        let discovery = ServiceDiscovery(interface: options.interface, on: loop, events: self)
        let listening = RetryingListener(of: self, events: events, on: loop) {
            [unowned self] () throws(NighError) in
            try listen(on: loop)
        } addresses: { [unowned self] in
            $0.addresses.map(transportAddress)
        } close: {
            $0.close()
        }
        running = Running(
            loop: loop, events: events, network: network, discovery: discovery, listening: listening)
    }

    public func advertise(_ advertisement: Advertisement) {
        let isNew = self.advertisement == nil
        self.advertisement = advertisement
        running?.listening.begin()
        guard !isNew || running?.listening.listener != nil else { return }
        running?.loop.later { [weak self] in
            guard let self, let running, let advertisement = self.advertisement else { return }
            running.events.advertised(as: advertisement.name, by: self)
        }
    }

    public func updateAdvertisement(_ advertisement: Advertisement) {
        guard self.advertisement != nil else { return }
        self.advertisement = advertisement
        if let publishedPort { publish(publishedPort) }
    }

    public func stopAdvertising() {
        advertisement = nil
        publishedPort = nil
        running?.discovery.unpublish()
        running?.listening.stop()
        // No more pipes are opened.
        for connection in connections.values where !connection.isOpen { connection.finish() }
    }

    public func browse(_ service: ServiceName) {}

    public func stopBrowsing() {}

    public func dial(_ address: TransportAddress, as id: DialID, timeout: Duration) {
        guard let running else {
            unsupportedLoop?.refuse(id, by: self)
            return
        }
        dials.insert(id)
        running.loop.later { [weak self] in
            guard let self, let running = self.running, dials.remove(id) != nil else { return }
            let error = NighError(
                .connecting, Self.guestsOnly, peer: "\(address)", transport: scheme,
                advice: "show the guest a code to scan")
            running.events.dialFailed(id, error: error, by: self)
        }
    }

    public func cancelDial(_ id: DialID) {
        dials.remove(id)
        unsupportedLoop?.cancel(id)
    }

    public func shutdown() {
        unsupportedLoop = nil
        guard let running else { return }
        self.running = nil
        running.listening.stop()
        running.network.stop()
        running.discovery.shutdown()
        for connection in connections.values { connection.finish() }
        connections = [:]
    }

    public func diagnose() -> [Diagnosis] {
        guard let running else {
            return unsupportedLoop == nil ? [] : [UnsupportedLoop.diagnosis(of: scheme)]
        }
        return diagnose(running)
    }
}
