import NighGroups
import NighIntroductions
import NighLoop

extension Session {
    /// Begins a session: it advertises itself and looks for peers. Reads the user's identity and trusted peers from
    /// files, so do not call this where nothing may block; `withSession` reads them on a thread of its own.
    ///
    /// - Parameters:
    ///   - service: 1 to 15 characters of a–z, 0–9 and "-", the same in all programs that are to find each other.
    ///   - name: The name that the session shows to people. Control characters are left out, and it is cut at 63 bytes.
    ///     By default it is the user's name for this device.
    ///   - transports: The transports of the session, as a flag takes them: "tcp", "tcp:port=4000,bluetooth", the
    ///     scheme of a plugin. By default everything that this machine has.
    ///   - configure: Changes other settings.
    public convenience init(
        service: String, name: String? = nil, transports: String? = nil,
        configure: (inout SessionSettings) -> Void = { _ in }
    ) throws(NighError) {
        var settings = SessionSettings()
        configure(&settings)
        guard let serviceName = ServiceName(service) else {
            throw NighError(
                .configuring, .invalid("service name \"\(service)\""),
                advice: "use 1 to 15 characters of a-z, 0-9 and -")
        }
        let ground =
            if let device = SimulatedDevice.current {
                SessionGround(serviceName, name: name, device)
            } else {
                try SessionGround(serviceName, name: name, transports: transports, settings)
            }
        var configuration = SessionConfiguration(
            service: serviceName, name: ground.name,
            role: !settings.browses ? .server : settings.advertises ? .peer : .client,
            info: try DiscoveryInfo(settings.info))
        configuration.security = settings.security
        configuration.acceptsPairing = settings.acceptsPairing
        configuration.admitsUnencryptedGuests = settings.admitsUnencryptedGuests
        configuration.datagrams = settings.datagrams
        configuration.limits = settings.limits
        configuration.timings = settings.timings
        configuration.seed = ground.seed
        let problems = UnreadProblems(
            transports: ground.transports.map(\.scheme), areNamed: transports != nil,
            print: settings.printsUnreadProblems ? settings.printProblem : nil)
        configuration.layers = [ground.identity, ProblemPrinter(problems)]
        if let owner = ground.loopOwner { configuration.layers.insert(owner, at: 0) }
        configuration.layers += settings.layers(ground.identity.identity, for: configuration)
        do throws(NighError) {
            try self.init(
                checking: configuration, identity: ground.identity.identity, trust: ground.trust,
                transports: ground.transports, loop: ground.loop)
        } catch {
            ground.loopOwner?.end()
            throw error
        }
        start(onEvent: settings.onEvent, onMessage: settings.onMessage)
        if !settings.advertises { stopAdvertising() }
    }

    /// Saves the identity of the session, which may be temporary, so that later sessions are the same peer: those with
    /// ``SessionIdentity/file(_:)`` and this path, or, without a path, those of the user's own identity. Fails if
    /// another identity is there; no file is replaced.
    public func saveIdentity(to path: String? = nil) throws(NighError) {
        let use = try required(IdentityUse.self, "an identity of its own")
        let file = if let path { IdentityFile(path: path) } else { try IdentityFile() }
        try file.save(use.identity.principalIdentity)
    }

    /// The layer of this type. Fails if the session was made without it.
    func required<Layer: SessionLayer>(_ type: Layer.Type, _ what: String) throws(NighError) -> Layer {
        if let layer = layer(type) { return layer }
        throw NighError(
            .configuring, .unsupported("a session that was made without \(what)"),
            advice: "make the session by its service")
    }

    /// Whether the session invites every peer that it finds, accepts every invitation, and connects again after a
    /// failure. It leaves a peer alone that declined or that ended the conversation, until that peer is lost and found
    /// again.
    public var connectsAutomatically: Bool {
        get { layer(AutomaticInviter.self)?.isOn ?? false }
        set { layer(AutomaticInviter.self)?.isOn = newValue }
    }

    /// Changes the info that the session advertises about itself: up to 400 bytes of keys and values.
    public func advertise(_ info: [String: String]) throws(NighError) {
        guard !isClosing else { throw NighError(.advertising, .closed) }
        let info = try DiscoveryInfo(info)
        update(info: info)
        if let introductions = layer(Introductions.self) {
            loop.execute { introductions.infoChanged(info) }
        }
    }

    // MARK: Addresses

    /// Invites the session that answers at an address, without discovery, and waits until it is connected. If the task
    /// is cancelled, the invitation is withdrawn.
    ///
    /// - Parameter address: An address of a transport of this session, for example "tcp://192.168.1.7:4000".
    public nonisolated(nonsending) func invite(
        at address: String, context: [UInt8] = [], timeout: Duration = .seconds(30)
    ) async throws(NighError) -> Peer {
        guard let parsed = TransportAddress(address) else {
            throw NighError(
                .connecting, .invalid("address \"\(address)\""),
                advice: "write the transport first, as in tcp://192.168.1.7:4000")
        }
        return peer(try await invite(at: parsed, context: context, timeout: timeout))
    }

    // MARK: Values

    /// The messages of all peers as values of one type, which they were sent as with ``send(_:to:)``, ``broadcast(_:)``
    /// or ``Peer/send(_:)``. Each message goes to one reader: for several kinds of messages, use an enum.
    public func messages<Content: Decodable & Sendable>(of type: Content.Type) -> TypedMessages<Content> {
        TypedMessages(session: reference, messages: .session(messages))
    }

    /// Sends a value to these peers; see ``send(bytes:to:)``.
    public nonisolated(nonsending) func send(
        _ value: some Encodable, to peers: [Peer]
    ) async throws(PartialSendError) {
        try await send(bytes: reference.encode(value, to: peers), to: peers)
    }

    /// Sends a value to all connected peers; see ``broadcast(bytes:)``.
    public nonisolated(nonsending) func broadcast(_ value: some Encodable) async throws(PartialSendError) {
        try await broadcast(bytes: reference.encode(value, to: reference.connectedPeers))
    }

    /// Sends a value to all connected peers, to arrive soon or not at all; see
    /// ``Peer/sendUnreliably(bytes:replacing:)``.
    public func broadcastUnreliably(_ value: some Encodable, replacing key: UInt8? = nil) throws(NighError) {
        try broadcastUnreliably(bytes: reference.encode(value), replacing: key)
    }
}

/// The streams that peers open, until the program takes them.
final class OpenedStreams: SessionLayer {
    /// The number of streams that wait for a reader.
    private static let limit = 1_024

    let streams = Incoming<ByteStream>()

    func handle(_ event: SessionEvent) {
        if case .streamOpened(let stream) = event {
            streams.inbox.append(stream, droppingOldestBeyond: Self.limit)
        }
    }

    func sessionDidClose() { streams.inbox.finish() }
}

extension Session {
    /// The streams that peers open. A stream that nobody has taken waits, and so does its writer. If more than 1,024
    /// wait, the oldest is cancelled.
    public var streams: Incoming<ByteStream> { layer(OpenedStreams.self)?.streams ?? .ended }
}

extension Incoming {
    /// A sequence that has ended, for a session without the layer that fills it.
    static var ended: Incoming {
        let ended = Incoming()
        ended.inbox.finish()
        return ended
    }
}
