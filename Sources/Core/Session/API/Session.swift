/// This program's place among its peers: it sees the sessions of the same service around it, connects to them, and
/// exchanges messages with them.
///
/// A session begins when it is made by its service, and ends with ``close()``. Every method can be called from any
/// thread.
///
/// A reliable message arrives exactly once and in the order of its lane, also when the link breaks and another link
/// takes over. Otherwise the conversation ends, and both sides are notified. `SessionLimits` bounds every resource.
public final class Session: Sendable {
    /// The PeerID by which other sessions tell this one from all others.
    public let id: PeerID
    /// The identity that this session acts for, by which others know and trust it. It is the same in all programs of
    /// this user, which may run at the same time; ``id`` differs between sessions of one service.
    public let identity: PeerID
    /// The settings that the session was made with, except its layers.
    package let configuration: SessionConfiguration
    /// The trust store, which remembers peers' identities.
    package let trust: TrustStore
    /// The messages of all peers, unless the session was given a handler for them.
    public let messages: MessageSequence
    /// The service, which is the same in all programs that are to find each other.
    public var service: String { configuration.service.description }
    /// The name that this session shows to people.
    public var name: String { configuration.name.description }
    /// The event loop on which everything happens.
    package let loop: any EventLoop

    /// The mark of the loop's thread, if it has one of its own.
    private let threadMark: ThreadMark?
    let driver: SessionDriver
    let directory = PortDirectory()
    /// How peers and invitations reach this session.
    package let reference: SessionReference
    private let layers: [any SessionLayer]

    /// Creates a session, as `LowLevelSession` says.
    package convenience init(
        _ configuration: SessionConfiguration, identity: Identity, trust: TrustStore = .ephemeral(),
        transports: [any Transport], loop: any EventLoop
    ) {
        do throws(NighError) {
            try self.init(
                checking: configuration, identity: identity, trust: trust, transports: transports, loop: loop)
        } catch {
            fatalError("\(error)")
        }
    }

    /// Creates a session for callers that report mistakes instead of stopping.
    package init(
        checking configuration: SessionConfiguration, identity: Identity, trust: TrustStore,
        transports: [any Transport], loop: any EventLoop
    ) throws(NighError) {
        var transports = transports + configuration.layers.flatMap(\.transports)
        guard Set(transports.map(\.scheme)).count == transports.count else {
            throw NighError(.configuring, .invalid("list of transports: a session takes one of each scheme"))
        }
        if let name = configuration.limits.invalidLimit {
            throw NighError(
                .configuring, .invalid("value of limits.\(name): the protocol does not allow it"),
                advice: "docs/reference/LIMITS.md has the bounds")
        }
        try Self.checkGuests(of: transports, configuration)
        let layers = try LayerCalls(configuration.layers)
        let offer = try Self.offer(configuration.security, identity)
        for transport in transports { transport.prepare(for: identity.peerID, of: identity.principal) }
        if configuration.checksTransports { transports = transports.map(Self.checked) }
        var seeds = SeededGenerator(seed: configuration.seed ?? .random(in: .min ... .max))
        var hello = Hello(
            peer: identity.peerID, incarnation: seeds.next(), service: configuration.service,
            name: configuration.name,
            maximumFrame: configuration.limits.frame, maximumMessage: configuration.limits.message)
        hello.streams = configuration.limits.streamTerms(for: (layers?.streams ?? [:]).keys)
        hello.acceptsKinds = layers?.receivers.isEmpty == false
        hello.hasDatagrams = configuration.datagrams
        hello.acceptsDelegations = configuration.security != .none
        if configuration.security != .none {
            hello.delegation = identity.delegation(
                service: configuration.service, incarnation: hello.incarnation)
        }
        let driverReference = SessionDriver.DriverReference()
        let portNotifier = PortNotifier(loop: loop) { driverReference.driver?.processListedPorts() }
        let reports = SessionReports(readerLimit: configuration.limits.unreadEvents)
        let reference = SessionReference(
            loop: loop, directory: directory, portNotifier: portNotifier, reports: reports,
            unreliableLimit: configuration.limits.unreliableMessage, driverReference: driverReference,
            layers: configuration.layers)
        var machine = SessionMachine(
            reference: reference, hello: hello, limits: configuration.limits, timings: configuration.timings,
            transports: transports.map {
                .init(
                    scheme: $0.scheme, priority: $0.capabilities.priority,
                    hasDatagrams: $0.capabilities.datagrams, isForPeople: $0.capabilities.isForPeople,
                    suggestedGrace: $0.capabilities.suggestedGrace)
            },
            offer: offer, security: configuration.security,
            trust: trust, identity: hello.delegation == nil ? identity.peerID : identity.principal,
            seed: seeds.next())
        machine.acceptsPairing = configuration.acceptsPairing
        var advertisement = Advertisement(
            service: configuration.service, peer: identity.peerID, name: configuration.name,
            info: configuration.info)
        if hello.delegation != nil {
            advertisement.identity = identity.principal
            advertisement.name = configuration.name.withNextNumber
        }
        let driver = SessionDriver(
            machine: machine, loop: loop, transports: transports, advertisement: advertisement,
            role: configuration.role, layers: layers, directory: directory, reports: reports,
            driverReference: driverReference, portNotifier: portNotifier)
        self.id = identity.peerID
        self.identity = driver.machine.identity
        var withoutLayers = configuration
        withoutLayers.layers = []
        self.configuration = withoutLayers
        self.layers = configuration.layers
        self.trust = trust
        self.loop = loop
        threadMark = reference.threadMark
        self.driver = driver
        self.reference = reference
        messages = MessageSequence(inbox: driver.inbox)
        for layer in configuration.layers { layer.attach(to: self) }
    }

    /// Checks that the program admits unencrypted guests, if one of its transports has only such guests.
    private static func checkGuests(
        of transports: [any Transport], _ configuration: SessionConfiguration
    ) throws(NighError) {
        let withGuests = transports.first {
            CheckedTransport.transport(inside: $0) is any GuestTransport
        }
        guard let scheme = withGuests?.scheme else { return }
        if configuration.security == .paired {
            throw NighError(
                .configuring, .invalid("transport: its guests can never be paired"), transport: scheme,
                advice: "leave out \(scheme), or talk to peers that are not paired as well")
        }
        guard configuration.admitsUnencryptedGuests else {
            throw NighError(
                .configuring,
                .invalid("transport: its guests have no encryption, which this session requires"),
                transport: scheme,
                advice: "set admitsUnencryptedGuests if that is fine for what the guests see")
        }
    }

    private static func checked(_ transport: any Transport) -> any Transport {
        transport is CheckedTransport ? transport : CheckedTransport(transport)
    }

    private static func offer(
        _ security: SessionSecurity, _ identity: Identity
    ) throws(NighError) -> SecureChannelOffer {
        try security == .none ? .plaintext : .tls(TLSContext(identity))
    }

    deinit {
        let driver = driver
        loop.execute { driver.abandon() }
    }

    /// Whether the caller runs on the loop.
    @inline(__always)
    var isOnLoop: Bool { if let threadMark { threadMark.isCurrent } else { loop.isCurrent } }

    /// Runs `work` with the driver on the loop: at once if the caller is on the loop, otherwise soon.
    @inline(__always)
    func onLoop(_ work: @escaping @Sendable (SessionDriver) -> Void) {
        let driver = driver
        if isOnLoop { work(driver) } else { loop.execute { work(driver) } }
    }

    /// Whether the program has ever asked for events.
    package var isReadingEvents: Bool { reference.reports.hasBeenRead }

    /// The layer of this type, if the session was made with one.
    package func layer<Layer: SessionLayer>(_ type: Layer.Type) -> Layer? {
        reference.layer(type)
    }

    /// The clock on which the session's timeouts run. A task that waits by it, as in
    /// `try await session.clock.sleep(for: .seconds(1))`, waits in virtual time where the session is simulated.
    public var clock: any Clock<Duration> { LoopClock(loop) }

    // MARK: Start and close

    /// Waits until the session is closed. If the task is cancelled, closes it first, in good order. For programs that
    /// start and cancel their parts as tasks.
    public nonisolated(nonsending) func run() async {
        for await _ in reference.reports.peerLists() {}
        await close()
    }

    /// Ends all conversations after all messages have arrived, stops advertising, and returns when nothing of the
    /// session runs any more. Its sequences end, and its other calls fail with `closed`. Calling it again does nothing.
    /// Cancelling the task does not cut this short; it takes some seconds at most.
    public nonisolated(nonsending) func close() async {
        await PendingAnswer.wait(otherwise: ()) { answer in close { answer.give(()) } }
    }

    /// Whether the session is closed or closing.
    package var isClosing: Bool { directory.isClosed }

    /// Starts to advertise this session, so that peers find it.
    public func startAdvertising() { onLoop { $0.startAdvertising() } }

    /// Stops advertising. Conversations go on. A game, for example, stops advertising when it begins.
    public func stopAdvertising() { onLoop { $0.stopAdvertising() } }

    /// Starts to look for peers.
    public func startBrowsing() { onLoop { $0.startBrowsing() } }

    /// Stops looking for peers. Conversations go on; other peers are lost.
    public func stopBrowsing() { onLoop { $0.stopBrowsing() } }
}
