import NighGroups
import NighIntroductions
import NighLoop

/// This program's place among its peers: it sees the sessions of the same service around it, connects to them, and
/// exchanges messages with them.
///
/// A session begins when it is made and ends with ``close()``. ``withSession(service:name:transports:configure:_:)``
/// does both. Every method can be called from any thread.
public final class Session: Sendable {
    let core: SessionCore
    /// The service, which is the same in all programs that are to find each other.
    public let service: String
    /// The name that this session shows to people.
    public let name: String
    /// The messages of all peers.
    public let messages: MessageSequence
    /// The streams that peers open.
    public var streams: Streams { core.streams }

    /// Begins a session: it advertises itself and looks for peers.
    ///
    /// - Parameters:
    ///   - service: 1 to 15 characters of a–z, 0–9 and "-", the same in all programs that are to find each other.
    ///   - name: The name that the session shows to people. Control characters are left out, and it is cut at 63 bytes.
    ///     By default it is the user's name for this device.
    ///   - transports: What carries the session, as a flag takes it: "tcp", "tcp:port=4000,bluetooth", the scheme of a
    ///     plugin. By default everything that this machine has.
    ///   - configure: Changes other settings.
    public init(
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
        let displayName = if let name { DisplayName(fitting: name) } else { try DisplayName.ofThisUser() }
        let advertises = settings.advertises && settings.topology != .guest
        let browses = settings.browses && settings.topology != .host
        var configuration = SessionConfiguration(
            service: serviceName, name: displayName,
            role: !browses ? .server : advertises ? .peer : .client,
            info: try DiscoveryInfo(settings.info))
        configuration.security = settings.security
        configuration.acceptsPairing = settings.acceptsPairing
        configuration.datagrams = settings.datagrams
        configuration.limits = settings.limits
        configuration.timings = settings.timings
        let registry = TransportRegistry.standard
        let made = try PluginCatalog(files: settings.plugins).makeAll(
            transports ?? registry.reachingOtherPrograms, extending: registry)
        let (identity, trust) = try settings.identity.begin(for: serviceName)
        let problems = UnreadProblems(
            transports: made.map(\.scheme), areNamed: transports != nil,
            print: settings.printsProblems ? settings.printProblem : nil)
        core = SessionCore(
            configuration, settings, loop: try UVEventLoop.make(), identity: identity.identity,
            problems: problems)
        configuration.layers = [identity] + core.layers
        do throws(NighError) {
            _ = try NighCore.Session(
                checking: configuration, identity: identity.identity, trust: trust, transports: made,
                loop: core.loop)
        } catch {
            core.loop.shutdown()
            throw error
        }
        self.service = service
        self.name = displayName.description
        messages = core.low.messages
        core.start(onMessage: settings.onMessage)
        if !advertises { core.low.stopAdvertising() }
    }

    /// A session that nobody uses any more ends by itself, in good order.
    deinit { core.close() }

    /// Ends all conversations after what was sent has arrived, stops advertising, and returns when nothing of the
    /// session runs any more. Its sequences end, and its other calls fail with `closed`. Calling it again does nothing.
    /// Cancelling the task does not cut this short; it takes some seconds at most.
    public nonisolated(nonsending) func close() async {
        await withCheckedContinuation { continuation in core.close { continuation.resume() } }
    }

    /// The PeerID by which other sessions tell this one from all others.
    public var id: PeerID { core.low.id }

    /// The identity that this session acts for, by which others know and trust it. It is the same in all programs of
    /// this user, which may run at the same time; ``id`` differs between sessions of one service.
    public var identity: PeerID { core.low.identity }

    /// Saves the identity of the session, which may be temporary, so that later sessions are the same peer: those with
    /// ``SessionIdentity/file(_:)`` and this path, or, without a path, those of the user's own identity. Fails if
    /// another identity is there; no file is replaced.
    public func saveIdentity(to path: String? = nil) throws(NighError) {
        let file = if let path { IdentityFile(path: path) } else { try IdentityFile() }
        try core.saveIdentity(in: file)
    }

    /// The session below this one, for programs that count nanoseconds; `import NighLoop` to use all of it.
    public var lowLevel: NighCore.Session { core.low }

    // MARK: Peers

    /// All peers that can be reached now, or are connected, by PeerID.
    public var peers: [Peer] { core.peers }

    /// The peers that are connected now, by PeerID.
    public var connectedPeers: [Peer] { core.peers.filter(\.isConnected) }

    /// All peers now, and again after each change; for user interfaces. A slow reader gets the newest list only.
    public var peerLists: some AsyncSequence<[Peer], Never> & Sendable { core.peerLists() }

    /// The events from now on. Each call gives a sequence of its own. It begins with the problems that last now, and
    /// with the peers that are known already.
    public var events: SessionEvents { core.events() }

    /// The peer with this ID as the session last saw it.
    public func peer(_ id: PeerID) -> Peer { core.peer(id) }

    /// Whether the session invites every peer that it finds, accepts every invitation, and connects again after a
    /// failure. It leaves a peer alone that declined or that ended the conversation, until that peer is lost and found
    /// again.
    public var connectsAutomatically: Bool {
        get { core.inviter.isOn }
        set { core.inviter.isOn = newValue }
    }

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
        return peer(try await core.low.invite(at: parsed, context: context, timeout: timeout))
    }

    // MARK: Sending and receiving

    /// The messages of all peers as values of one type, which they were sent as with ``send(_:to:)``, ``broadcast(_:)``
    /// or ``Peer/send(_:)``. Each message goes to one reader: for several kinds of messages, use an enum.
    public func messages<Content: Decodable & Sendable>(of type: Content.Type) -> TypedMessages<Content> {
        TypedMessages(session: core, messages: messages)
    }

    /// Sends a value as JSON to these peers. Waits while the send buffer of one is full. The error names the peers that
    /// it was not sent to. If the task is cancelled, these are the peers that were not reached by then.
    public nonisolated(nonsending) func send(_ value: some Encodable, to peers: [Peer]) async throws {
        try await send(bytes: MessageCoding.encode(value), to: peers)
    }

    /// Sends bytes as they are to these peers; see ``send(_:to:)``.
    public nonisolated(nonsending) func send(
        bytes: some Collection<UInt8>, to peers: [Peer]
    ) async throws(PartialSendError) {
        do throws(PartialSendError) {
            try await core.low.send(ByteSlice(bytes), to: peers.map(\.id))
        } catch {
            throw core.named(error)
        }
    }

    /// Sends a value as JSON to all connected peers. Waits while the send buffer of one is full. It is no error if a
    /// peer disconnects in the meantime, or if there is none. If the task is cancelled, the error names the peers that
    /// were not reached by then; the others have the message.
    public nonisolated(nonsending) func broadcast(_ value: some Encodable) async throws {
        try await broadcast(bytes: MessageCoding.encode(value))
    }

    /// Sends bytes as they are to all connected peers; see ``broadcast(_:)``.
    public nonisolated(nonsending) func broadcast(
        bytes: some Collection<UInt8>
    ) async throws(PartialSendError) {
        do throws(PartialSendError) {
            try await core.low.sendToAll(ByteSlice(bytes))
        } catch {
            if error.reason != nil { throw error }
            let failures = error.failures.filter { !$0.value.isDisconnection }
            if !failures.isEmpty { throw core.named(PartialSendError(failures: failures)) }
        }
    }

    // MARK: Being found, and pairing

    /// Starts to advertise this session, so that peers find it.
    public func startAdvertising() { core.low.startAdvertising() }

    /// Stops advertising. Conversations go on.
    public func stopAdvertising() { core.low.stopAdvertising() }

    /// Starts to look for peers.
    public func startBrowsing() { core.low.startBrowsing() }

    /// Stops looking for peers. Conversations go on; other peers are lost.
    public func stopBrowsing() { core.low.stopBrowsing() }

    /// Changes what the session advertises about itself: up to 400 bytes of keys and values.
    public func advertise(_ info: [String: String]) throws(NighError) {
        guard !core.isClosing else { throw NighError(.advertising, .closed) }
        let info = try DiscoveryInfo(info)
        core.low.update(info: info)
        core.loop.execute { [core] in core.introductions.infoChanged(info) }
    }

    /// Lets peers ask to be paired from now on; see ``Peer/pair()``.
    public func startAcceptingPairing() { core.low.startAcceptingPairing() }

    /// Refuses requests for pairing from now on.
    public func stopAcceptingPairing() { core.low.stopAcceptingPairing() }
}
