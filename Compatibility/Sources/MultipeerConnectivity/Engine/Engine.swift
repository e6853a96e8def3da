import NighCompatibility
import NighCore
import NighLoop

/// One peer of this program's in one service: a session of Nigh, which advertisers, browsers and any number of
/// `MCSession`s use.
///
/// Two engines have at most one conversation. Everything of this module is messages and streams in it; invitations,
/// too, because so they can cross and be repeated, and several sessions of one pair do not get in each other's way. A
/// conversation that nobody needs is ended after a while.
///
/// `@unchecked Sendable`: everything that changes is confined to the control queue, and the numbers of conversations to
/// the loop.
final class Engine: @unchecked Sendable {
    struct Key: Hashable {
        var peer: PeerID
        var service: String
    }

    let key: Key
    let local: KnownPeer
    let low: LowLevelSession
    var session: NighCore.Session { low.session }
    private let loop: UVEventLoop
    /// Engines for connections that programs arrange themselves listen and are not found.
    let isHidden: Bool
    private let transportCount: Int
    /// How long a conversation that nobody needs goes on.
    let idleConversationTime: TimeInterval

    var peers: [PeerID: EnginePeer] = [:]
    var advertisers: [AdvertiserCore] = []
    var browsers: [BrowserCore] = []
    /// The attempts of this program's sessions to connect to peers, by number.
    var attempts: [UInt64: Attempt] = [:]
    /// The invitations of peers to this program.
    var invitations: [InvitationKey: IncomingInvitation] = [:]
    /// Requests of peers to join a session that does not expect them yet.
    var parkedJoins: [ParkedJoin] = []
    var parkedStreams: [ParkedStream] = []
    /// The sessions that have a peer, or want one, here.
    var sessions: [ObjectIdentifier: SessionCore] = [:]
    /// The addresses at which this engine listens.
    private var listening: [String: [String]] = [:]
    private var waitingForAddresses: [(@Sendable ([String]) -> Void)] = []
    private var advertised: [String: String]?
    private var isBrowsing = false
    private var failures: [NighError.Stage: [String: NighError]] = [:]
    private var isClosed = false

    // On the loop.

    /// The numbers of the conversations that there are now.
    private var current: [PeerID: UInt64] = [:]
    private var lastNumber: UInt64 = 0

    /// How long an engine that nobody uses goes on.
    private static let idleTime: TimeInterval = 2
    static let joinTime: TimeInterval = 30

    /// - Parameter list: The transports, as flags take them.
    init(
        _ key: Key, _ local: KnownPeer, identity: Identity, isHidden: Bool, transports list: String
    ) throws(NighError) {
        let settings = NighMultipeer.settings
        guard let service = ServiceName(key.service) else {
            throw NighError(.configuring, .invalid("service type \"\(key.service)\""))
        }
        var configuration = SessionConfiguration(
            service: service, name: DisplayName(fitting: local.name), role: .client)
        configuration.limits.sendBuffer = settings.sendBuffer
        configuration.limits.message = settings.messageLimit + WireMessage.dataHeaderCount
        configuration.limits.peers = 512
        // Programs send as many files at once as they have.
        configuration.limits.streams = 4_096
        configuration.timings.grace = settings.reconnectionTime
        let transports = try TransportChoice.make(list)
        self.key = key
        self.local = local
        self.isHidden = isHidden
        transportCount = transports.count
        idleConversationTime = settings.idleConversationTime / .seconds(1)
        loop = try EngineDirectory.loop()
        low = LowLevelSession(configuration, identity: identity, transports: transports, loop: loop)
    }

    func start() {
        low.start(onEvent: { [weak self] event in self?.received(event) })
        // The session browses at first, because none of its roles does neither.
        session.stopBrowsing()
    }

    // MARK: Events, on the loop

    private func received(_ event: NighCore.SessionEvent) {
        switch event {
        case .invited(let invitation): invitation.accept()
        case .connected(let peer):
            let conversation = conversation(with: peer.id)
            current[peer.id] = conversation?.number
            Control.async { [self] in
                update(peer)
                if let conversation { began(conversation) } else { endedAtOnce(peer.id) }
            }
        case .peerFound(let peer), .peerLost(let peer), .connecting(let peer), .disconnected(let peer, _),
            .available(let peer, _):
            current[peer.id] = nil
            Control.async { self.update(peer) }
        case .reconnecting(let peer, _), .reconnected(let peer): Control.async { self.update(peer) }
        case .peerChanged(let peer): Control.async { self.update(peer) }
        case .streamOpened(let stream): Control.async { self.opened(stream) }
        case .listening(let scheme, let addresses):
            Control.async { self.listens(at: addresses.map { "\($0)" }, by: scheme) }
        case .advertised(let scheme, _):
            Control.async { self.failures[.advertising]?[scheme] = nil }
        case .problem(let error): Control.async { self.failed(error) }
        case .transportDown(let scheme, let error):
            Control.async { self.transportIsDown(scheme, error) }
        case .transportUp(let scheme):
            Control.async { for stage in self.failures.keys { self.failures[stage]?[scheme] = nil } }
        default: break
        }
    }

    /// The conversation with a peer that has just begun; nil if it has ended already.
    private func conversation(with id: PeerID) -> PeerConversation? {
        guard let messages = low.separateMessages(of: id) else { return nil }
        lastNumber += 1
        return PeerConversation(with: id, lastNumber, messages, in: self)
    }

    /// Ends a conversation, and not the one that may have taken its place by now.
    func end(_ conversation: PeerConversation) {
        loop.execute { [self, id = conversation.peer, number = conversation.number] in
            if current[id] == number { low.disconnect(id) }
        }
    }

    // MARK: Peers

    /// Returns the state of a peer, new if it is not known yet.
    ///
    /// - Parameter name: The program's name for a peer that was never seen.
    @discardableResult
    func peer(_ id: PeerID, named name: String? = nil) -> EnginePeer {
        if let peer = peers[id] { return peer }
        let peer = EnginePeer(id, name: name)
        peers[id] = peer
        return peer
    }

    private func update(_ seen: NighCore.Peer) {
        let peer = peer(seen.id)
        let info = Announcement(seen.info)
        peer.name = info.name ?? seen.name
        if !seen.routes.isEmpty { peer.addresses = seen.routes.map(\.address) }
        let isVisible = info.isVisible && !seen.routes.isEmpty && seen.state != .unavailable
        if isVisible, !peer.isVisible {
            peer.isVisible = true
            peer.info = info.pairs
            for browser in browsers { browser.found(peer) }
            resume(peer)
        } else if !isVisible, peer.isVisible {
            peer.isVisible = false
            for browser in browsers { browser.lost(peer) }
        } else if isVisible, peer.info != info.pairs {
            // A program changes its advertisement by another advertiser, so others expect this.
            for browser in browsers { browser.lost(peer) }
            peer.info = info.pairs
            for browser in browsers { browser.found(peer) }
        } else {
            peer.info = info.pairs
        }
        if seen.state == .unavailable, !needs(peer), !peer.isVisible, peer.conversation == nil,
            peer.invitationCount == 0
        {
            peers[seen.id] = nil
        }
    }

    // MARK: Advertising and browsing

    func add(_ advertiser: AdvertiserCore) {
        guard !advertisers.contains(where: { $0 === advertiser }) else { return }
        advertisers.append(advertiser)
        updateAdvertising()
        if let error = failure(of: .advertising) { advertiser.failed(error) }
    }

    func remove(_ advertiser: AdvertiserCore) {
        advertisers.removeAll { $0 === advertiser }
        updateAdvertising()
        considerClosing()
    }

    func add(_ browser: BrowserCore) {
        guard !browsers.contains(where: { $0 === browser }) else { return }
        browsers.append(browser)
        for peer in peers.values.sorted(by: { $0.id < $1.id }) where peer.isVisible { browser.found(peer) }
        updateBrowsing()
        if let error = failure(of: .browsing) { browser.failed(error) }
    }

    func remove(_ browser: BrowserCore) {
        browsers.removeAll { $0 === browser }
        updateBrowsing()
        considerClosing()
    }

    /// Listens while somebody may want to connect: a peer that sees the advertisement, or a member of a session. Only
    /// an advertiser makes the engine visible.
    func updateAdvertising() {
        guard !isClosed else { return }
        let isNeeded = !advertisers.isEmpty || isHidden || sessions.values.contains { $0.hasLinks(in: self) }
        guard isNeeded else {
            if advertised != nil { session.stopAdvertising() }
            advertised = nil
            return
        }
        let pairs = Announcement.pairs(
            advertisers.last.map { .visible($0.info) } ?? .hidden, name: local.name)
        guard pairs != advertised else { return }
        // Checked when the advertiser was started.
        guard let info = try? DiscoveryInfo(pairs) else { return }
        low.update(info: info)
        if advertised == nil { session.startAdvertising() }
        advertised = pairs
    }

    func updateBrowsing() {
        let isNeeded = !browsers.isEmpty || !attempts.isEmpty
        guard isNeeded != isBrowsing, !isClosed else { return }
        isBrowsing = isNeeded
        if isNeeded { session.startBrowsing() } else { session.stopBrowsing() }
    }

    private func failed(_ error: NighError) {
        guard let scheme = error.transport else { return }
        note(error, of: scheme, in: error.stage)
    }

    private func transportIsDown(_ scheme: String, _ error: NighError) {
        note(error, of: scheme, in: .advertising)
        note(error, of: scheme, in: .browsing)
    }

    private func note(_ error: NighError, of scheme: String, in stage: NighError.Stage) {
        failures[stage, default: [:]][scheme] = error
        guard let error = failure(of: stage) else { return }
        if stage == .advertising { for advertiser in advertisers { advertiser.failed(error) } }
        if stage == .browsing { for browser in browsers { browser.failed(error) } }
    }

    /// Why no transport at all can do this; nil if one can.
    private func failure(of stage: NighError.Stage) -> NighError? {
        guard let errors = failures[stage], errors.count == transportCount else { return nil }
        return errors.min { $0.key < $1.key }?.value
    }

    // MARK: Addresses

    private func listens(at addresses: [String], by scheme: String) {
        listening[scheme] = addresses
        let all = ownAddresses
        for id in peers.keys { send(.addresses(all), to: id) }
        guard !all.isEmpty else { return }
        let waiting = waitingForAddresses
        waitingForAddresses = []
        for done in waiting { done(all) }
    }

    /// The addresses at which this engine listens.
    var ownAddresses: [String] { listening.sorted { $0.key < $1.key }.flatMap(\.value) }

    /// Calls `done` on the control queue once an address of the engine is known, or after 2 s.
    func whenListening(_ done: @escaping @Sendable ([String]) -> Void) {
        updateAdvertising()
        guard ownAddresses.isEmpty else { return done(ownAddresses) }
        waitingForAddresses.append(done)
        Control.after(2) { [weak self] in
            guard let self else { return }
            let waiting = waitingForAddresses
            waitingForAddresses = []
            for done in waiting { done(ownAddresses) }
        }
    }

    // MARK: The end

    /// Waits until the loop has written all messages sent before, as far as there is room. Not on the control queue.
    func waitUntilWritten() {
        let isWritten = DispatchSemaphore(value: 0)
        // In its next turn the loop takes the messages, and behind that turn it writes them.
        loop.execute { [loop] in loop.execute { loop.execute { isWritten.signal() } } }
        _ = isWritten.wait(timeout: .now() + 1)
    }

    private var isNeeded: Bool {
        !advertisers.isEmpty || !browsers.isEmpty || !attempts.isEmpty
            || peers.values.contains { $0.waitingInvitationCount > 0 }
            || !sessions.isEmpty
            || !waitingForAddresses.isEmpty
    }

    /// Ends the engine a while after nobody needs it any more.
    func considerClosing() {
        guard !isNeeded else { return }
        Control.after(Self.idleTime) { [weak self] in
            guard let self, !isNeeded, !isClosed else { return }
            isClosed = true
            EngineDirectory.forget(self)
            // The session of Nigh lives until it is closed.
            low.close { [low] in withExtendedLifetime(low) {} }
        }
    }
}
