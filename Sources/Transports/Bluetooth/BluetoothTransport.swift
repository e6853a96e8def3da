import NighCore
import NighUV

/// Opens pipes over Bluetooth's RFCOMM between machines whose adapters are in range of each other. It runs on a
/// `UVEventLoop` and on no other loop.
///
/// The transport asks bluetoothd, over D-Bus, only for the services of bluetoothd itself: the list of adapters, the
/// devices nearby, and keeping a record in this machine's service discovery. For everything else it uses its own
/// sockets: it listens on a random channel, asks devices for their records, and connects. So each failure comes with a
/// plain reason, pipes survive a restart of bluetoothd, and several programs of one service can run on one machine.
///
/// `@unchecked Sendable`: all state is confined to the loop from `start` on.
public final class BluetoothTransport: @unchecked Sendable {
    package static let schemeName = "bluetooth"

    /// The transport's entry for the registry. Specs are `bluetooth`, `bluetooth:adapter=hci1`,
    /// `bluetooth:device=00:11:22:33:44:55`.
    public static let registryEntry = TransportRegistry.Entry(
        scheme: schemeName, summary: "Bluetooth (RFCOMM), found by inquiry and service discovery",
        options: BluetoothOptions.keys,
        make: { spec throws(NighError) in BluetoothTransport(try BluetoothOptions(spec)) })

    /// No datagrams; ranks after networks, because it is slower.
    public let capabilities = TransportCapabilities(
        datagrams: false, typicalMTU: 1_000, typicalLatency: .milliseconds(30),
        expectedConnectTime: .seconds(2), priority: 200)

    struct Running {
        let loop: UVEventLoop
        let events: any TransportEvents
        let bluez: BlueZ
        let search: PeerSearch
        let listening: RetryingListener<RFCOMMListener>
        let dialler: ChannelDialler
        let registration: ProfileRegistration
        let discoverability: Discoverability
        let retention: DeviceRetention
        let agent: PairingAgent?
    }

    let options: BluetoothOptions
    private(set) var running: Running?
    private var isStarted = false
    /// Set if `start` got a loop that this transport cannot run on.
    private var unsupportedLoop: UnsupportedLoop?
    private var advertisement: Advertisement?
    private var reportedFault: BluetoothFault?

    /// The adapter and the generation of bluetoothd through which the current routes were found.
    private struct RouteOrigin: Equatable {
        var path: String?
        var generation = 0
    }

    private var routeOrigin = RouteOrigin()
    private var browsed: ServiceName?
    /// How many times a search has begun or ended.
    private var searchCount = 0
    private(set) var pipes: [ObjectIdentifier: RFCOMMPipe] = [:]

    /// Creates a transport with these options.
    public init(_ options: BluetoothOptions = BluetoothOptions()) { self.options = options }

    private func begin(on loop: UVEventLoop, _ events: any TransportEvents) {
        let bluez = BlueZ(on: loop, adapter: options.adapter, events: self)
        let search = PeerSearch(
            bluez, interval: max(Moment.Span(options.interval), .seconds(1)), on: loop,
            reportChanges: { [weak self] in self?.report($0) },
            failed: { [weak self] in self?.browsingFailed($0) })
        running = Running(
            loop: loop, events: events, bluez: bluez, search: search,
            listening: RetryingListener(of: self, events: events, on: loop) {
                [unowned self] () throws(NighError) in
                try makeListener(bluez, on: loop)
            } addresses: {
                [BluetoothDestination($0.adapter, channel: $0.channel).transportAddress]
            } close: {
                $0.close()
            },
            dialler: ChannelDialler(
                bluez, search, on: loop,
                service: { [weak self] in self?.browsed ?? self?.advertisement?.service },
                ended: { [weak self] in self?.dialEnded($0, $1) }),
            registration: ProfileRegistration(
                bluez, on: loop, registered: { [weak self] in self?.registered() },
                failed: { [weak self] in self?.advertisingFailed($0) }),
            discoverability: Discoverability(bluez, on: loop),
            retention: DeviceRetention(bluez, on: loop),
            agent: options.pairing.map { PairingAgent(bluez, $0, on: loop) })
    }

    // MARK: Listening

    private func listen() {
        guard let running, advertisement != nil, let adapter = running.bluez.availability.adapter else {
            return
        }
        if let listener = running.listening.listener {
            guard listener.adapter != adapter.address else { return publish(listener) }
            running.listening.stop()
        }
        running.listening.begin()
    }

    private func makeListener(_ bluez: BlueZ, on loop: UVEventLoop) throws(NighError) -> RFCOMMListener {
        do throws(BluetoothFault) {
            guard let adapter = bluez.availability.adapter else { throw .noAdapter }
            let listener = try RFCOMMListener(
                on: adapter.address, loop: loop, accepted: { [weak self] in self?.accepted($0) },
                failed: { [weak self] in self?.running?.listening.fail($0.error(.advertising)) })
            publish(listener)
            return listener
        } catch {
            throw error.error(.advertising)
        }
    }

    /// Registers a record with the advertisement and the channel of this side, and makes the adapter discoverable if
    /// the options say so.
    private func publish(_ listener: RFCOMMListener) {
        guard let running, let advertisement else { return }
        running.registration.setWanted(
            SessionRecord(advertisement, channel: listener.channel, adapter: listener.adapter))
        if options.makesDiscoverable { running.discoverability.setWanted(true) }
    }

    private func registered() {
        guard let running, let advertisement else { return }
        running.events.advertised(as: advertisement.name, by: self)
    }

    private func advertisingFailed(_ error: NighError) {
        guard let running, advertisement != nil else { return }
        running.events.advertisingFailed(error, by: self)
    }

    private func accepted(_ socket: BluetoothSocket) {
        guard let running, let pipe = try? pipe(of: socket) else { return }
        running.events.pipeOpened(pipe, dial: nil, by: self)
    }

    // MARK: Pipes

    private func pipe(of socket: BluetoothSocket) throws(BluetoothFault) -> RFCOMMPipe {
        guard let running, let adapter = running.bluez.availability.adapter else { throw .noAdapter }
        let pipe = try RFCOMMPipe(socket, by: adapter, on: running.loop)
        // The end of an earlier pipe to the same device must be reported before the next pipe opens.
        for other in Array(pipes.values) where other.device == pipe.device { other.endIfOver() }
        pipes[ObjectIdentifier(pipe)] = pipe
        running.search.pipeOpened(to: pipe.device)
        running.retention.pipeOpened(to: pipe.device)
        pipe.didFinish = { [weak self] pipe in
            self?.pipes[ObjectIdentifier(pipe)] = nil
            self?.running?.search.pipeEnded(to: pipe.device)
            self?.running?.retention.pipeEnded(to: pipe.device)
        }
        return pipe
    }

    private func dialEnded(_ id: DialID, _ result: Result<BluetoothSocket, NighError>) {
        guard let running else { return }
        switch result {
        case .failure(let error): running.events.dialFailed(id, error: error, by: self)
        case .success(let socket):
            do throws(BluetoothFault) {
                running.events.pipeOpened(try pipe(of: socket), dial: id, by: self)
            } catch {
                running.events.dialFailed(id, error: error.error(.connecting), by: self)
            }
        }
    }

    // MARK: Browsing

    private func report(_ changes: [SightingChange]) {
        let search = searchCount
        for change in changes {
            // The receiver of a report may stop or restart browsing.
            guard let running, search == searchCount else { return }
            running.events.report(change, by: self)
        }
    }

    private func browsingFailed(_ error: NighError) {
        guard let running, browsed != nil else { return }
        running.events.browsingFailed(error, by: self)
    }

    private func reportKnownAddresses() {
        for address in options.knownAddresses {
            guard let running, browsed != nil else { return }
            running.events.addressKnown(address, by: self)
        }
    }
}

extension BluetoothTransport: BlueZEvents {
    func availabilityChanged(from old: BlueZ.Availability) {
        guard let running else { return }
        if let adapter = old.adapter, adapter.path != running.bluez.availability.adapter?.path {
            breakPipes(of: adapter)
        }
        // The adapter's own properties, such as whether it is discoverable, do not affect which devices it has seen.
        let origin = RouteOrigin(
            path: running.bluez.availability.adapter?.path, generation: running.bluez.generation)
        if origin != routeOrigin {
            routeOrigin = origin
            running.search.availabilityChanged()
        }
        running.dialler.availabilityChanged()
        running.registration.availabilityChanged()
        running.discoverability.availabilityChanged()
        running.retention.availabilityChanged()
        running.agent?.availabilityChanged()
        if running.bluez.availability.adapter != nil { listen() } else { running.listening.stop() }
        reportCondition()
    }

    /// Ends the pipes when an adapter is off. They cannot recover, and the kernel reports some of them only after a
    /// while.
    private func breakPipes(of adapter: BlueZObjects.Adapter) {
        guard let index = adapter.index, !RadioSwitch.isUp(index) else { return }
        for pipe in Array(pipes.values) { pipe.fail(with: .switchedOff(adapter.name)) }
    }

    private func reportCondition() {
        guard let running else { return }
        let fault = running.bluez.availability.fault
        guard fault != reportedFault else { return }
        reportedFault = fault
        running.events.transportChanged(fault.map { .down($0.error(.starting)) } ?? .up, by: self)
    }

    func deviceSeen(_ device: BlueZObjects.Device) {
        running?.search.deviceSeen(device)
        running?.retention.deviceSeen(device)
    }

    func deviceGone(_ device: BlueZObjects.Device) {
        running?.search.deviceGone(device)
        running?.retention.deviceGone(device)
    }
}

// Documented by the protocol.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension BluetoothTransport: Transport {
    public var scheme: String { Self.schemeName }

    public func start(on loop: any EventLoop, events: any TransportEvents) {
        loop.checkIsolated()
        precondition(!isStarted, "a transport was started twice")
        isStarted = true
        if let loop = loop as? UVEventLoop { return begin(on: loop, events) }
        unsupportedLoop = UnsupportedLoop(loop, events, for: self)
    }

    public func advertise(_ advertisement: Advertisement) {
        self.advertisement = advertisement
        running?.search.setOwn(advertisement.peer)
        listen()
    }

    public func updateAdvertisement(_ advertisement: Advertisement) {
        guard self.advertisement != nil else { return }
        self.advertisement = advertisement
        if let listener = running?.listening.listener { publish(listener) }
    }

    public func stopAdvertising() {
        advertisement = nil
        running?.registration.setWanted(nil)
        running?.discoverability.setWanted(false)
        running?.listening.stop()
    }

    public func browse(_ service: ServiceName) {
        guard let running else { return }
        browsed = service
        searchCount += 1
        running.search.begin(service)
        guard !options.knownAddresses.isEmpty else { return }
        running.loop.later { [weak self] in self?.reportKnownAddresses() }
    }

    public func stopBrowsing() {
        browsed = nil
        searchCount += 1
        running?.search.stop()
    }

    public func dial(_ address: TransportAddress, as id: DialID, timeout: Duration) {
        if let running { return running.dialler.dial(address, as: id, timeout: timeout) }
        unsupportedLoop?.refuse(id, by: self)
    }

    public func cancelDial(_ id: DialID) {
        running?.dialler.cancel(id)
        unsupportedLoop?.cancel(id)
    }

    public func diagnose() -> [Diagnosis] {
        if let running { return BluetoothDiagnosis.lines(of: self, running) }
        guard unsupportedLoop != nil else { return [Diagnosis("bluetooth", .fail, "not started")] }
        return [UnsupportedLoop.diagnosis(of: Self.schemeName)]
    }

    public func shutdown() {
        unsupportedLoop = nil
        guard let running else { return }
        running.dialler.stop()
        running.search.stop()
        running.registration.setWanted(nil)
        running.discoverability.setWanted(false)
        running.agent?.stop()
        running.listening.stop()
        self.running = nil
        running.bluez.stop()
        let open = pipes.values
        pipes = [:]
        for pipe in open { pipe.finish() }
    }
}
