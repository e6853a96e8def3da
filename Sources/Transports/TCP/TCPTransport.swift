import NighCore
import NighUV

/// Pipes over TCP, on Wi-Fi, Ethernet and whatever else carries IP.
///
/// It listens on both families, dials every address of a peer in the manner of Happy Eyeballs, and keeps track of the
/// machine's addresses as they come and go. It runs on a `UVEventLoop` and on no other loop.
///
/// All state is confined to the loop from `start` on; hence `@unchecked Sendable`.
public final class TCPTransport: @unchecked Sendable {
    static let schemeName = "tcp"

    /// For the registry: `tcp`, `tcp:port=4000,interface=wlan0`.
    public static let registryEntry = TransportRegistry.Entry(
        scheme: schemeName, summary: "Wi-Fi, Ethernet and other networks, found by multicast DNS",
        options: TCPOptions.keys,
        make: { spec throws(NighError) in TCPTransport(try TCPOptions(spec)) })

    /// No datagrams; a local network.
    public let capabilities = TransportCapabilities(
        datagrams: false, typicalMTU: 1_448, typicalLatency: .milliseconds(3),
        expectedConnectTime: .milliseconds(20), priority: 100)

    /// How long until listening is tried again after it has failed.
    private static let listenRetry = Moment.Span.seconds(2)

    struct Running {
        let loop: UVEventLoop
        let events: any TransportEvents
        let network: NetworkWatch
    }

    /// A dial that is under way. `@unchecked Sendable`: confined to the loop.
    private final class Dial: @unchecked Sendable {
        var race: ConnectionRace?
        var timer: LoopTimer?
    }

    let options: TCPOptions
    private(set) var running: Running?
    private(set) var advertisement: Advertisement?
    private(set) var listener: TCPListener?

    private var isStarted = false
    /// The loop that was given is none that this transport can run on.
    private var foreign: (loop: any EventLoop, events: any TransportEvents)?
    private let buffer = ReadBuffer()
    private var pipes: [ObjectIdentifier: TCPPipe] = [:]
    private var dials: [DialID: Dial] = [:]
    private var listenTimer: LoopTimer?
    private var listenError: NighError?
    private var toldAddresses: [TransportAddress] = []
    private var tellsAddresses = false
    private var interfaceIsMissing = false

    /// A transport with these options.
    public init(_ options: TCPOptions = TCPOptions()) { self.options = options }

    // MARK: The network

    private func networkChanged() {
        lookForInterface()
        if listener == nil, advertisement != nil { listen() }
        tellListening()
    }

    /// Whether the one interface that was asked for is there is the ground this transport stands on.
    private func lookForInterface() {
        guard let running, let name = options.interface else { return }
        let isMissing = !running.network.addresses.contains { $0.interface == name }
        guard isMissing != interfaceIsMissing else { return }
        interfaceIsMissing = isMissing
        let condition: TransportCondition = isMissing ? .down(Self.missing(name)) : .up
        running.loop.execute { [weak self] in
            guard let self, let running = self.running else { return }
            running.events.transportChanged(condition, by: self)
        }
    }

    private static func missing(_ name: String) -> NighError {
        NighError(
            .starting, .unavailable("the interface \(name) is not up, or has no address"),
            transport: schemeName, advice: "`ip address show` lists those that are there")
    }

    /// The addresses of this machine that the transport uses, with port 0.
    var usableAddresses: [NetworkWatch.Own] {
        guard let running else { return [] }
        let all = running.network.addresses
        guard let name = options.interface else { return all }
        return all.filter { $0.interface == name }
    }

    // MARK: Listening

    private func listen() {
        guard let running, listener == nil else { return }
        if let listenTimer { running.loop.cancel(listenTimer) }
        listenTimer = nil
        do throws(UVError) {
            listener = try TCPListener.listen(
                port: options.port, interface: options.interface, on: running.loop, buffer: buffer,
                accepted: { [weak self] in self?.accepted($0) },
                failed: { [weak self] in self?.acceptFailed($0) })
            listenError = nil
            tellListening()
        } catch {
            listenFailed(error.listenError(port: options.port, interface: options.interface))
        }
    }

    private func listenFailed(_ error: NighError) {
        guard let running else { return }
        let isNew = error != listenError
        listenError = error
        listenTimer = running.loop.schedule(at: running.loop.now + Self.listenRetry) { [weak self] in
            self?.listenTimer = nil
            self?.listen()
        }
        guard isNew else { return }
        running.loop.execute { [weak self] in
            guard let self, let running = self.running, listenError == error else { return }
            running.events.advertisingFailed(error, by: self)
        }
    }

    private func accepted(_ pipe: TCPPipe) {
        guard let running else { return pipe.finish() }
        adopt(pipe)
        running.events.pipeOpened(pipe, dial: nil, by: self)
    }

    /// The kernel keeps who could not be accepted waiting, and libuv asks again; a person should know why nobody comes in.
    private func acceptFailed(_ error: UVError) {
        let error = error.listenError(port: listener?.port ?? options.port, interface: options.interface)
        guard let running, error != listenError else { return }
        listenError = error
        running.events.advertisingFailed(error, by: self)
    }

    private var listeningAddresses: [TransportAddress] {
        guard let listener else { return [] }
        let port = listener.port
        let own = usableAddresses.map { own in
            var address = own.address
            address.port = port
            return address
        }
        let others = own.filter { !$0.isLoopback }
        return (others.isEmpty ? own : others).map(\.transportAddress)
    }

    /// Tells in a later turn where this side listens, if that is not what was told last.
    private func tellListening() {
        guard let running, !tellsAddresses else { return }
        tellsAddresses = true
        running.loop.execute { [weak self] in
            guard let self, let running = self.running else { return }
            tellsAddresses = false
            let addresses = listeningAddresses
            guard addresses != toldAddresses else { return }
            toldAddresses = addresses
            running.events.listeningChanged(addresses, by: self)
        }
    }

    // MARK: Pipes

    private func adopt(_ pipe: TCPPipe) {
        let key = ObjectIdentifier(pipe)
        pipes[key] = pipe
        pipe.didFinish = { [weak self] _ in self?.pipes[key] = nil }
    }

    // MARK: Dialling

    private func begin(_ destination: TCPDestination, as id: DialID, _ dial: Dial) {
        guard let running, dials[id] === dial else { return }
        switch destination {
        case .number(let address): race([address], as: id, dial)
        case .found(let peer):
            fail(
                id,
                NighError(
                    .connecting, .unreachable, peer: peer.short, transport: scheme,
                    advice: "it is not seen on the network any more"))
        case .name(let name, let port):
            NameLookup.start(name, port: port, on: running.loop) { [weak self] result in
                guard let self, dials[id] === dial else { return }
                switch result {
                case .success(let addresses): race(addresses.inOrderOfPromise, as: id, dial)
                case .failure(let error): fail(id, error)
                }
            }
        }
    }

    private func race(_ addresses: [SocketAddress], as id: DialID, _ dial: Dial) {
        guard let running else { return }
        let (loop, buffer, interface) = (running.loop, buffer, options.interface)
        let race = ConnectionRace(addresses, on: loop) { address throws(UVError) in
            try TCPPipe(family: address.family, interface: interface, on: loop, buffer: buffer)
        } whenOver: { [weak self] result in
            self?.over(id, result)
        }
        dial.race = race
        race.start()
    }

    private func over(_ id: DialID, _ result: Result<TCPPipe, NighError>) {
        switch result {
        case .failure(let error): fail(id, error)
        case .success(let pipe):
            guard let running, forget(id) != nil else { return pipe.finish() }
            adopt(pipe)
            running.events.pipeOpened(pipe, dial: id, by: self)
        }
    }

    private func fail(_ id: DialID, _ error: NighError) {
        guard let events = running?.events ?? foreign?.events, forget(id) != nil else { return }
        events.dialFailed(id, error: error, by: self)
    }

    @discardableResult
    private func forget(_ id: DialID) -> Dial? {
        guard let dial = dials.removeValue(forKey: id) else { return nil }
        if let timer = dial.timer { running?.loop.cancel(timer) }
        return dial
    }

    private func ranOutOfTime(_ id: DialID, _ address: TransportAddress) {
        guard let dial = dials[id] else { return }
        dial.timer = nil
        let error =
            dial.race?.failureOfTimeout()
            ?? NighError(
                .connecting, .timedOut, peer: address.description, transport: scheme,
                advice: "no name server has answered; an address in numbers works too")
        dial.race?.stop()
        fail(id, error)
    }
}

// What these do stands with the protocol.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension TCPTransport: Transport {
    public var scheme: String { Self.schemeName }

    public func start(on loop: any EventLoop, events: any TransportEvents) {
        loop.checkIsolated()
        precondition(!isStarted, "a transport was started twice")
        isStarted = true
        guard let loop = loop as? UVEventLoop else {
            foreign = (loop, events)
            return loop.execute { [weak self] in
                guard let self, let foreign else { return }
                foreign.events.transportChanged(.down(Self.foreignLoop(.starting)), by: self)
            }
        }
        let network = NetworkWatch(on: loop) { [weak self] in self?.networkChanged() }
        running = Running(loop: loop, events: events, network: network)
        lookForInterface()
    }

    private static func foreignLoop(_ stage: NighError.Stage) -> NighError {
        NighError(
            stage, .unavailable("the session runs on a loop that knows no sockets"), transport: schemeName,
            advice: "give the session a UVEventLoop")
    }

    public func advertise(_ advertisement: Advertisement) {
        self.advertisement = advertisement
        listen()
    }

    public func updateAdvertisement(_ advertisement: Advertisement) {
        guard self.advertisement != nil else { return }
        self.advertisement = advertisement
    }

    public func stopAdvertising() {
        advertisement = nil
        if let listenTimer { running?.loop.cancel(listenTimer) }
        listenTimer = nil
        listenError = nil
        listener?.close()
        listener = nil
        tellListening()
    }

    public func browse(_ service: ServiceName) {}

    public func stopBrowsing() {}

    public func dial(_ address: TransportAddress, as id: DialID, timeout: Duration) {
        guard let loop = running?.loop ?? foreign?.loop else { return }
        let dial = Dial()
        dials[id] = dial
        guard running != nil else {
            return loop.execute { self.fail(id, Self.foreignLoop(.connecting)) }
        }
        dial.timer = loop.schedule(at: loop.now + Moment.Span(timeout)) { self.ranOutOfTime(id, address) }
        do throws(NighError) {
            guard address.scheme == scheme else {
                throw NighError(
                    .connecting, .invalid("address \(address)"), transport: scheme,
                    advice: "this transport dials \(scheme)://HOST:PORT")
            }
            let destination = try TCPDestination(address.value)
            loop.execute { self.begin(destination, as: id, dial) }
        } catch {
            loop.execute { self.fail(id, error) }
        }
    }

    public func cancelDial(_ id: DialID) { forget(id)?.race?.stop() }

    public func diagnose() -> [Diagnosis] {
        guard running != nil else {
            guard foreign != nil else { return [Diagnosis("tcp", .fail, "not started")] }
            let error = Self.foreignLoop(.starting)
            return [Diagnosis("event loop", .fail, "\(error.cause)", advice: error.advice)]
        }
        var lines: [Diagnosis] = []
        if let name = options.interface, interfaceIsMissing {
            let error = Self.missing(name)
            lines.append(Diagnosis("interface \(name)", .fail, "\(error.cause)", advice: error.advice))
        } else {
            let names = usableAddresses.map { "\($0.address.hostDescription) (\($0.interface))" }
            let isAlone = usableAddresses.allSatisfy(\.isLoopback)
            lines.append(
                Diagnosis(
                    "addresses", isAlone ? .warn : .pass,
                    names.isEmpty ? "none" : names.joined(separator: ", "),
                    advice: isAlone ? "connect this machine to a network to be reached from others" : nil))
        }
        if let listenError {
            lines.append(
                Diagnosis("listening", .fail, "\(listenError.cause)", advice: listenError.advice))
        } else if let listener {
            lines.append(Diagnosis("listening", .pass, "on port \(listener.port)"))
        } else {
            lines.append(Diagnosis("listening", .pass, "not asked for"))
        }
        lines.append(Diagnosis("pipes", .pass, "\(pipes.count) open"))
        return lines
    }

    public func shutdown() {
        foreign = nil
        guard let running else { return }
        for id in dials.keys { forget(id)?.race?.stop() }
        if let listenTimer { running.loop.cancel(listenTimer) }
        listenTimer = nil
        listener?.close()
        listener = nil
        running.network.stop()
        self.running = nil
        let open = pipes.values
        pipes = [:]
        for pipe in open { pipe.finish() }
    }
}
