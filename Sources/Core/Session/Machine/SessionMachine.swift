/// Makes all decisions of a session: which peers there are, which peer is asked, which link carries which conversation,
/// and what happens when a link breaks.
///
/// A machine without I/O, clock or threads. Inputs are calls (a route was found, a pipe opened, bytes came, time has
/// passed, the program wants something), each with the time where it matters. Outputs are taken from `nextDirective`,
/// `nextDirtyLink` and `nextDelivery`. The same inputs give the same outputs, because all random decisions come from
/// the seed. `SessionDriver` connects the machine to transports. Loop only.
struct SessionMachine: ~Copyable {
    /// The properties of a transport that the machine uses.
    struct TransportTraits {
        let scheme: String
        let priority: Int
        var hasDatagrams = false
        var isForPeople = true
        var suggestedGrace: Duration?
    }

    var hello: Hello { didSet { forgetLinkSettings() } }
    /// The settings of links over each transport, once there was one.
    private var linkSettings: [LinkMachine.Settings?]
    /// The settings of links to guests, once there was one.
    private var settingsForGuests: LinkMachine.Settings?
    let limits: SessionLimits
    let timings: SessionTimings
    let transports: [TransportTraits]
    private let offer: SecureChannelOffer
    let security: SessionSecurity
    /// The trust store, which remembers peers' identities.
    let trust: TrustStore
    /// The identity that this session acts for.
    let identity: PeerID
    /// Whether others may ask to be paired.
    var acceptsPairing = false
    /// When the next peer that asks for a pairing may get this side's nonce.
    var nextPairingAnswer = Moment(nanoseconds: .min)

    var peers: [PeerID: PeerRecord] = [:]
    /// The peer that discovery last saw at each address.
    var peerByAddress: [TransportAddress: PeerID] = [:]
    /// Addresses that transports were given. The machine dials them to learn which peer is there.
    var knownAddresses: [KnownAddress] = []
    var links = NumberTable<Link>()
    let census = SessionCensus()
    /// The dials under way, and the race of each.
    var dials = NumberTable<DialRace>()
    /// The searches for a link that are under way, by number.
    var races = NumberTable<DialRace>()
    var pings: [UInt64: (token: CallToken, link: Link, payload: [UInt8])] = [:]
    /// The counts that are rarely changed. Two more are kept apart, because each connection changes them.
    var statistics = SessionStatistics()
    private var linksEnded = LabelCounts()
    var conversationsEnded = LabelCounts()
    var generator: SeededGenerator
    var outbox = Outbox()
    /// The chunks in which messages of other threads are encoded.
    let stagingChunks = PeerPort.makeChunks()
    /// The chunks in which large messages are assembled and copied.
    let largeChunks = LargeChunks()
    /// How peers and invitations reach the session.
    let reference: SessionReference
    /// Puts a port on the list of those that the loop looks at.
    let listPort: @Sendable (PeerPort) -> Void
    var watchesLargeChunks = false
    /// Set by `close`: no invitations in either direction any more.
    var isClosing = false
    /// Set by `end`: the machine decides nothing any more.
    private(set) var isOver = false

    private var directives = Ring<Directive>()
    private var events = Ring<SessionEvent>()
    private var dirtyLinks = Ring<Link>()
    /// The conversation whose streams have just received bytes that tasks wait for.
    var conversationToWake: Conversation?
    private var linksWithPackets = Ring<Link>()
    var wakeups = TimerQueue<Wakeup>()
    private var lastNumber: UInt64 = 0
    /// Numbers all requests of this session, regardless of their peer. So a peer can distinguish a late request from
    /// the latest one, even if this session forgot the peer's record in between.
    var requestsMade: UInt64 = 0

    init(
        reference: SessionReference, hello: Hello, limits: SessionLimits, timings: SessionTimings,
        transports: [TransportTraits],
        offer: SecureChannelOffer, security: SessionSecurity, trust: TrustStore, identity: PeerID,
        seed: UInt64
    ) {
        self.reference = reference
        listPort = { [notifier = reference.portNotifier] in notifier.add($0) }
        self.hello = hello
        self.limits = limits
        self.timings = timings
        self.transports = transports
        linkSettings = Array(repeating: nil, count: transports.count)
        self.offer = offer
        self.security = security
        self.trust = trust
        self.identity = identity
        generator = SeededGenerator(seed: seed)
    }

    // MARK: Outputs

    /// The next directive for the driver, or nil if there is none.
    mutating func nextDirective() -> Directive? { directives.popFirst() }

    /// The next link that may have something to write. The driver gathers from it if its pipe has room.
    mutating func nextDirtyLink() -> Link? {
        guard let link = dirtyLinks.popFirst() else { return nil }
        link.isDirty = false
        return link
    }

    var hasDirtyLinks: Bool { !dirtyLinks.isEmpty }

    /// The next link that has datagrams to send.
    mutating func nextLinkWithPackets() -> Link? {
        guard let link = linksWithPackets.popFirst() else { return nil }
        link.hasPackets = false
        return link
    }

    /// When `timeArrived` must be called next. The moment may turn out to be early, but never late.
    var deadline: Moment { wakeups.earliest ?? .never }

    var hasDirectives: Bool { !directives.isEmpty }

    mutating func output(_ directive: Directive) { directives.append(directive) }

    /// Has the driver report an event, after it has carried out all directives before.
    mutating func report(_ event: consuming SessionEvent) {
        events.append(event)
        directives.append(.report)
    }

    /// The event that a directive `report` stands for.
    mutating func nextEvent() -> SessionEvent? { events.popFirst() }

    @inline(__always)
    mutating func markDirty(_ link: Link) {
        guard !link.isDirty else { return }
        link.isDirty = true
        dirtyLinks.append(link)
    }

    /// Puts the link into the queue of those with packets to send, if it has any.
    @inline(__always)
    mutating func notePackets(of link: Link) {
        guard !link.hasPackets, link.datagrams?.output.isEmpty == false else { return }
        link.hasPackets = true
        linksWithPackets.append(link)
    }

    /// Returns a number that this machine has never returned before.
    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    // MARK: Pipes

    /// Takes an opened pipe. Returns the link for its bytes, or nil if the pipe is to be closed at once.
    ///
    /// - Parameters:
    ///   - place: the address of the other end, if it is known.
    ///   - guest: the guest at the other end, if it is one.
    mutating func pipeOpened(
        transport: Int, dial: DialID?, at place: TransportAddress?, guest: PeerID? = nil, now: Moment
    ) -> Link? {
        let race = dial.flatMap { dials[$0.number] }
        if dial != nil {
            guard race != nil else { return nil }
        } else {
            statistics.pipesAccepted += 1
            guard !isClosing, hasRoomForStranger() else {
                statistics.pipesRefused += 1
                return nil
            }
        }
        let expected = guest ?? race?.purpose.peer
        let machine = LinkMachine(
            side: dial == nil ? .accepting : .dialling,
            settings: guest == nil ? linkSettings(over: transport) : guestLinkSettings(),
            expected: expected, ticket: expected.flatMap { peers[$0]?.takeTicket() }, now: now)
        let link = Link(
            number: nextNumber(), machine: machine, transport: transport, dial: dial,
            isGuest: guest != nil, census: census, now: now)
        links[link.number] = link
        markDirty(link)
        watch(link)
        if let race { reached(place, by: link, in: race) }
        return link
    }

    private mutating func forgetLinkSettings() {
        linkSettings = Array(repeating: nil, count: transports.count)
        settingsForGuests = nil
    }

    private mutating func linkSettings(over transport: Int) -> LinkMachine.Settings {
        if let settings = linkSettings[transport] { return settings }
        var hello = hello
        if !transports[transport].hasDatagrams { hello.hasDatagrams = false }
        let settings = LinkMachine.Settings(hello: hello, timings: timings.link, offer: offer)
        linkSettings[transport] = settings
        return settings
    }

    /// The settings of links to guests: without encryption, and with those abilities only that guests may use.
    private mutating func guestLinkSettings() -> LinkMachine.Settings {
        if let settingsForGuests { return settingsForGuests }
        let settings = LinkMachine.Settings(hello: hello.forGuests, timings: timings.link, offer: .plaintext)
        settingsForGuests = settings
        return settings
    }

    /// Takes bytes that the pipe received. Call `nextDelivery` afterwards until it returns nil, then `finishReceiving`.
    func received(_ bytes: ByteSlice, on link: Link, now: Moment) { link.machine.receive(bytes, now: now) }

    /// Takes the end of a pipe: it broke, or the other side closed it.
    mutating func pipeClosed(_ link: Link, error: NighError?, now: Moment) {
        guard link.purpose != .finished else { return }
        link.machine.pipeClosed()
        linkEnded(
            link, LinkMachine.LinkEnd(cause: error?.cause ?? .linkLost, code: nil, isByPeer: false),
            now: now)
    }

    /// Closes a link from this side, with a goodbye that gives the reason.
    ///
    /// - Parameter cause: the cause that this side counts and records, if the code means something else to the peer.
    mutating func close(
        _ link: Link, _ code: LinkClose.Code, _ reason: String = "", because cause: NighError.Cause? = nil
    ) {
        guard link.purpose != .finished else { return }
        link.machine.close(code, reason, because: cause ?? .left)
        count(end: cause ?? Self.ownCause(of: LinkClose(code, reason)))
        discard(link)
        if let peer = link.peer, peer.pairing?.link === link { endPairing(with: peer, .left, saying: nil) }
    }

    /// The cause that this side counts for a goodbye of its own. A code that means "I leave" tells the peer that the
    /// peer has left.
    private static func ownCause(of close: LinkClose) -> NighError.Cause {
        switch close.code {
        case .left, .sessionClosed: .left
        default: close.cause
        }
    }

    /// Ends a link from this side because of something that the peer did or failed to do. The goodbye gives the reason,
    /// and the purpose of the link has failed.
    mutating func end(
        _ link: Link, _ code: LinkClose.Code, _ reason: String = "", because cause: NighError.Cause,
        now: Moment
    ) {
        link.machine.close(code, reason, because: cause)
        if let end = link.machine.end { linkEnded(link, end, now: now) }
    }

    /// Forgets a link whose machine has ended, and has its pipe closed.
    mutating func discard(_ link: Link) {
        guard link.purpose != .finished else { return }
        link.purpose = .finished
        link.conversation = nil
        links[link.number] = nil
        forgetStaleWakeups()
        output(.close(link))
        guard let peer = link.peer else { return }
        peer.keepTicket(of: link)
        failPings(on: link, with: NighError(.pinging, .linkLost, peer: peer.label))
        peer.linkCount -= 1
        if peer.isIdle { peers[peer.id] = nil }
    }

    mutating func count(end cause: NighError.Cause) { linksEnded.add(cause.label) }

    /// Takes the name under which others see this session. It is another than its own if somebody has that name
    /// already. The session's hello has this name from now on, so that a person who found "Puma #2" does not end up
    /// with a second "Puma".
    ///
    /// A session that acts for an identity beside others announces a number from the start, and has its own name in
    /// its hello: the identity says whose it is.
    mutating func setAdvertisedName(_ name: DisplayName) { if hello.delegation == nil { hello.name = name } }

    /// Ends the remaining conversations, after everything else was shut down.
    mutating func end(_ error: NighError) {
        isOver = true
        for peer in sortedPeers { peer.conversation?.end(error) }
        for link in links.values { link.forgetPeer() }
    }

    // MARK: States

    /// Changes the phase of a peer and notifies the program. A change of state that is not in the table of
    /// `PeerState.mayBecome` is a bug of this machine, and stops the program.
    mutating func changePhase(of peer: PeerRecord, to next: PeerPhase, cause: NighError? = nil) {
        let last = peer.state
        precondition(last.mayBecome(next.state), "no change from \(last) to \(next.state)")
        peer.phase = next
        let snapshot = snapshot(of: peer)
        peer.reportedTrust = snapshot.trust
        report(SessionEvent(snapshot, from: last, cause: cause))
        if last.hasConversation != peer.state.hasConversation { output(.conversationCountChanged) }
    }

    /// Makes a peer `available` or `unavailable`, depending on what is known about it now. Forgets a peer that is not
    /// needed.
    mutating func updateState(of peer: PeerRecord) {
        switch peer.phase {
        case .ended: changePhase(of: peer, to: peer.routes.isEmpty ? .unavailable : .available(nil))
        case .available(nil) where peer.routes.isEmpty: changePhase(of: peer, to: .unavailable)
        case .unavailable where !peer.routes.isEmpty: changePhase(of: peer, to: .available(nil))
        default: break
        }
        if peer.isIdle { peers[peer.id] = nil }
    }

    /// Reports that something about a peer has changed, but not its state.
    mutating func reportChange(of peer: PeerRecord) {
        let snapshot = snapshot(of: peer)
        peer.reportedTrust = snapshot.trust
        report(.peerChanged(snapshot))
    }

    func snapshot(of peer: PeerRecord) -> Peer {
        Peer(
            handle: handle(of: peer), state: peer.state, transport: scheme(inUseWith: peer),
            hasDatagrams: peer.link?.datagrams?.isOpen ?? false, trust: trust(in: peer))
    }

    private func handle(of peer: PeerRecord) -> PeerHandle {
        if let handle = peer.handle { return handle }
        let handle = PeerHandle(
            in: reference, id: peer.id, identity: peer.identity.current, name: peer.name, info: peer.info,
            isFull: peer.isFull,
            routes: preferredRoutes(of: peer).map { Peer.Route(address: $0.address, quality: $0.quality) },
            port: peer.conversation?.port)
        peer.handle = handle
        return handle
    }

    /// Returns the scheme of the transport that carries the conversation with the peer.
    func scheme(inUseWith peer: PeerRecord) -> String? { peer.link.map { transports[$0.transport].scheme } }

    /// Returns the record of `id`. Makes it if there is room for one more; returns nil otherwise.
    mutating func record(of id: PeerID, name: DisplayName) -> PeerRecord? {
        if let known = peers[id] { return known }
        guard peers.count < limits.knownPeers else { return nil }
        let record = PeerRecord(id: id, name: name, census: census)
        peers[id] = record
        return record
    }

    /// The number of peers that count against `limits.peers`.
    var engagedPeers: Int { census.engaged }

    /// Whether there are as many conversations as `limits.peers` allows. Invitations under way do not count here: each
    /// of them ends soon, perhaps without a conversation.
    var isFull: Bool { census.conversing >= limits.peers }

    /// Returns all counts: those of the session by cause, and those of each peer together with the counts of its link.
    func statisticsSnapshot() -> SessionStatistics {
        var result = statistics
        result.linksEnded = linksEnded.byLabel
        result.conversationsEnded = conversationsEnded.byLabel
        for peer in peers.values {
            if let conversation = peer.conversation {
                var counts = conversation.snapshot
                counts.link = peer.link?.machine.statistics
                counts.transport = scheme(inUseWith: peer)
                counts.datagrams = peer.link?.datagrams?.statistics
                if let link = counts.link {
                    counts.unreliableSent += link.unreliableSent
                    counts.unreliableDropped += link.unreliableDropped
                }
                result.peers[peer.id] = counts
            } else if let last = peer.lastCounts {
                result.peers[peer.id] = PeerStatistics(last)
                result.peers[peer.id]?.bytesUnread = peer.unreadLeft
            }
        }
        return result
    }
}
