/// Brings the session machine and the world together: pipes, transports, timers and the program's handlers on one
/// side, the machine's inputs and outputs on the other. It decides nothing.
///
/// `@unchecked Sendable`: after `start` everything here is touched on the loop only; `Session` sees to it.
final class SessionDriver: @unchecked Sendable {
    let machine: SessionMachine
    let directory: PortDirectory
    private let attention: Attention
    let loop: any EventLoop
    let transports: [any Transport]
    let inbox: MessageInbox
    let events = Inbox<SessionEvent>()
    private(set) var advertisement: Advertisement
    private let role: SessionRole
    let observer: (any LinkObserver)?

    private(set) var messageDoor: MessageDoor?
    private var onEvent: EventHandler?
    private var hasStarted = false
    private(set) var isClosed = false

    private var calls: [CallToken: @Sendable (Result<PeerID, NighError>) -> Void] = [:]
    private var pings: [CallToken: @Sendable (Result<Duration, NighError>) -> Void] = [:]
    private var whenClosed: [@Sendable () -> Void] = []
    var unansweredCalls: Int { calls.count + pings.count }

    @exclusivity(unchecked) var connections: [UInt64: PipeConnection] = [:]
    /// The one written last: mostly it is the next one, too.
    @exclusivity(unchecked) private var lastWritten: PipeConnection?
    // From here on what every turn touches, on the loop alone and never across a call out: no check at run time.
    @exclusivity(unchecked) private var outgoing = ByteQueue()
    /// How many pipes are closed and not drained yet; of interest when the session closes.
    private var partingPipes = 0
    /// Ends the session, whatever has not left by then. Set once all conversations have ended.
    private var goodbyeTimer: LoopTimer?
    // Touched for each message, on the loop alone and never across a call out, hence without the check at run time.
    @exclusivity(unchecked) var depth = 0
    @exclusivity(unchecked) var flushIsDue = false
    @exclusivity(unchecked) private var armedFor = Moment.never
    var flushWork: @Sendable () -> Void = {}
    private var timerWork: @Sendable () -> Void = {}
    /// How work given to the loop finds the driver.
    let access: Access
    private var attentive: ContiguousArray<PeerPort> = []
    private let trustKeeper: TrustKeeper

    /// The most a link writes before others get their turn.
    private static let writeShare = 1 << 20

    init(
        machine: SessionMachine, loop: any EventLoop, transports: [any Transport],
        advertisement: Advertisement,
        role: SessionRole, observer: (any LinkObserver)?, directory: PortDirectory, access: Access,
        attention: Attention
    ) {
        self.machine = machine
        self.access = access
        self.attention = attention
        inbox = MessageInbox(
            receiveWindow: machine.limits.receiveWindow, owner: machine.hello.peer, attention: attention)
        self.directory = directory
        self.loop = loop
        self.transports = transports
        self.advertisement = advertisement
        self.role = role
        self.observer = observer
        trustKeeper = TrustKeeper(machine.trust, loop: loop) { [access] in
            access.driver?.trustChanged()
        } failed: { [access] in
            access.driver?.tell(.trustNotKept($0))
        } becameIdle: { [access] in
            access.driver?.finishIfAllHasLeft()
        }
        flushWork = { [access] in access.driver?.flush() }
        timerWork = { [access] in access.driver?.timerFired() }
    }

    /// Leads to the driver from its start to its close. The closures that are handed to the loop again and again hold this
    /// and not a weak reference: an object that has one pays for it with every strong reference taken, and the driver is
    /// taken many times a message. The cycle ends with the close.
    final class Access: @unchecked Sendable {
        // Touched on the loop only, hence `@unchecked Sendable`.
        @exclusivity(unchecked) fileprivate(set) var driver: SessionDriver?
    }

    /// The program's handler, in an object of its own to take references to: what the closure has captured may be an object
    /// that somebody holds weakly, the session itself mostly, and pays for that with every reference taken.
    final class MessageDoor {
        let handler: MessageHandler
        init(_ handler: @escaping MessageHandler) { self.handler = handler }
    }

    // MARK: Life

    func start(onEvent: EventHandler?, onMessage: MessageHandler?) {
        guard !hasStarted, !isClosed else { return }
        hasStarted = true
        access.driver = self
        self.onEvent = onEvent
        messageDoor = onMessage.map(MessageDoor.init)
        for transport in transports { transport.start(on: loop, events: self) }
        trustKeeper.start()
        if role.advertises { setAdvertising(true) }
        if role.browses { setBrowsing(true) }
    }

    func setAdvertising(_ isOn: Bool) {
        guard hasStarted, !isClosed else { return }
        for transport in transports {
            if isOn { transport.advertise(advertisement) } else { transport.stopAdvertising() }
        }
    }

    func setBrowsing(_ isOn: Bool) {
        guard hasStarted, !isClosed else { return }
        inTurn {
            for (index, transport) in transports.enumerated() {
                if isOn {
                    transport.browse(advertisement.service)
                } else {
                    transport.stopBrowsing()
                    machine.addressesForgotten(transport: index)
                    machine.routesLost(transport: index)
                }
            }
        }
    }

    func update(_ advertisement: Advertisement) {
        self.advertisement = advertisement
        guard hasStarted, !isClosed else { return }
        for transport in transports { transport.updateAdvertisement(advertisement) }
    }

    func close(whenDone: @escaping @Sendable () -> Void) {
        guard !isClosed else { return whenDone() }
        whenClosed.append(whenDone)
        guard hasStarted else { return finishClosing() }
        for transport in transports {
            transport.stopAdvertising()
            transport.stopBrowsing()
        }
        inTurn { machine.close(now: loop.now) }
    }

    /// All conversations have ended: gives the goodbyes the time to leave this process, then takes everything down.
    private func part() {
        guard goodbyeTimer == nil else { return }
        let deadline = loop.now + Moment.Span(machine.timings.goodbye)
        goodbyeTimer = loop.schedule(at: deadline) { [access] in access.driver?.finishClosing() }
        flush()
        finishIfAllHasLeft()
    }

    /// What a closed link had to say has left this process, or never will.
    func pipeDrained() {
        partingPipes -= 1
        finishIfAllHasLeft()
    }

    private func finishIfAllHasLeft() {
        if goodbyeTimer != nil, partingPipes == 0, !trustKeeper.isBusy { finishClosing() }
    }

    private func finishClosing() {
        guard !isClosed else { return }
        isClosed = true
        trustKeeper.stop()
        if let goodbyeTimer { loop.cancel(goodbyeTimer) }
        for (_, connection) in connections.sorted(by: { $0.key < $1.key }) {
            connection.pipe.close(.now)
            observeEnd(of: connection.link, cause: .closed)
        }
        connections.removeAll()
        lastWritten = nil
        if hasStarted { for transport in transports { transport.shutdown() } }
        tell(.closed)
        onEvent = nil
        messageDoor = nil
        inbox.finish()
        events.finish()
        let error = NighError(.conversing, .closed)
        machine.end(error)
        let (waitingCalls, waitingPings) = (calls, pings)
        calls.removeAll()
        pings.removeAll()
        for (_, call) in waitingCalls.sorted(by: { $0.key.number < $1.key.number }) { call(.failure(error)) }
        for (_, ping) in waitingPings.sorted(by: { $0.key.number < $1.key.number }) { ping(.failure(error)) }
        let finished = whenClosed
        whenClosed.removeAll()
        access.driver = nil
        for done in finished { done() }
    }

    /// Takes everything down in the middle of whatever is going on, telling nobody.
    func die() {
        onEvent = nil
        messageDoor = nil
        finishClosing()
    }

    /// Nobody holds the session any more: it closes as if told to, and tells nobody.
    func abandon() {
        guard !isClosed else { return }
        onEvent = nil
        messageDoor = nil
        // What waits for the end keeps the driver until then.
        close { withExtendedLifetime(self) {} }
    }

    // MARK: Turns

    /// Looks at the ports other threads have done something with: staged messages, read what came.
    func attendNow() {
        guard !isClosed else { return }
        inTurn {
            attention.take(into: &attentive)
            for port in attentive {
                port.unlist()
                machine.attend(to: port)
            }
            attentive.removeAll(keepingCapacity: true)
        }
    }

    /// What has happened so far. What the program has read counts at once, not only when there is enough of it to tell
    /// the peer.
    func statistics() -> SessionStatistics {
        inTurn {
            for peer in machine.sortedPeers {
                if let port = peer.conversation?.port { machine.attend(to: port) }
            }
        }
        return machine.statisticsSnapshot()
    }

    /// Runs an input to the machine, and what follows from it when this is the outermost one.
    @inline(__always)
    func inTurn(_ input: () -> Void) {
        depth &+= 1
        input()
        depth &-= 1
        if depth == 0 { afterInput() }
    }

    private func afterInput() {
        guard !isClosed else { return }
        carryOutDirectives()
        guard !isClosed else { return }
        if machine.hasDirtyLinks { flushSoon() }
        arm()
    }

    /// Has what links have to write written behind all work of this turn, so that it leaves in one go. Within an input to the
    /// machine that is seen to at its end.
    func flushSoon() {
        guard depth == 0, !flushIsDue else { return }
        flushIsDue = true
        loop.execute(flushWork)
    }

    /// Sends unreliably, or drops the message: where the pipe's room is used up it would have to wait.
    func send(unreliable bytes: UnsafeRawBufferPointer, to peer: PeerID) throws(NighError) {
        let isNews = try machine.send(unreliable: bytes, to: peer) { link in
            connections[link.number]?.pipe.writableBytes ?? 0
        }
        if isNews { flushSoon() }
    }

    private func arm() {
        let deadline = machine.deadline
        guard deadline < armedFor else { return }
        armedFor = deadline
        loop.schedule(at: deadline, timerWork)
    }

    /// Whether the timer fires by the machine's deadline; true when there is no deadline.
    var wakesInTime: Bool { armedFor <= machine.deadline }

    private func timerFired() {
        guard !isClosed else { return }
        let now = loop.now
        if armedFor <= now { armedFor = .never }
        inTurn { machine.timeArrived(now: now) }
    }

    /// Writes what the links have gathered in this turn.
    private func flush() {
        flushIsDue = false
        guard !isClosed else { return }
        inTurn {
            while let link = machine.nextDirtyLink() {
                if let lastWritten, lastWritten.link === link {
                    write(lastWritten)
                } else if let connection = connections[link.number] {
                    lastWritten = connection
                    write(connection)
                }
            }
        }
    }

    private func write(_ connection: PipeConnection) {
        let link = connection.link
        var share = Self.writeShare
        while share > 0 {
            let room = min(connection.pipe.writableBytes, share)
            guard room > 0 else {
                if share == Self.writeShare { link.machine.dropUnreliable() }
                break
            }
            link.machine.gather(into: &outgoing, budget: room, from: link.conversation)
            if link.machine.tap != nil { observe(link) }
            let count = outgoing.byteCount
            guard count > 0 else { break }
            share &-= count
            connection.pipe.write(&outgoing)
            outgoing.removeAll()
            // Where there was room for more, there was no more.
            guard count >= room else { break }
        }
        if share <= 0 { machine.markDirty(link) }
        if connection.isPaused, link.machine.wantsToRead, !link.isHeld {
            connection.isPaused = false
            connection.pipe.resumeReading()
        }
        if let end = link.machine.end { machine.linkEnded(link, end, now: loop.now) }
    }

    private func trustChanged() { inTurn { machine.trustChanged(now: loop.now) } }

    // MARK: Directives

    func carryOutDirectives() {
        depth &+= 1
        while let directive = machine.nextDirective() { carryOut(directive) }
        depth &-= 1
    }

    private func carryOut(_ directive: Directive) {
        switch directive {
        case .dial(let dial, let transport, let address, let timeout):
            transports[transport].dial(address, as: dial, timeout: timeout)
        case .cancelDial(let dial, let transport): transports[transport].cancelDial(dial)
        case .findPlaces(let race, let route): findPlaces(behind: route, for: race)
        case .hold(let link): hold(link)
        case .release(let link): loop.execute { [access, link = link.number] in access.driver?.release(link) }
        case .close(let link): close(link)
        case .tell(let event): tell(event)
        case .finish(let token, let result): calls.removeValue(forKey: token)?(result)
        case .answerPing(let token, let result): pings.removeValue(forKey: token)?(result.map(\.duration))
        case .openPort(let port): directory.add(port)
        case .closePort(let port): directory.remove(port)
        case .saveTrust: trustKeeper.save()
        case .allLeft: part()
        }
    }

    private func findPlaces(behind route: RouteRecord, for race: UInt64) {
        transports[route.transport].places(behind: route.address) { [access] result in
            guard let driver = access.driver else { return }
            let places = (try? result.get()) ?? []
            driver.inTurn {
                driver.machine.placesFound(places, behind: route, race: race, now: driver.loop.now)
            }
        }
    }

    /// Forgets the connection of a link that is over.
    func remove(_ link: Link) -> PipeConnection? {
        if lastWritten?.link === link { lastWritten = nil }
        return connections.removeValue(forKey: link.number)
    }

    private func close(_ link: Link) {
        guard let connection = remove(link) else { return }
        link.machine.gather(into: &outgoing, budget: 0)
        if !outgoing.isEmpty { connection.pipe.write(&outgoing) }
        outgoing.removeAll()
        // A pipe that was over while its link was held tells nothing more.
        if connection.endWhileHeld == nil {
            connection.isParting = true
            partingPipes += 1
        }
        connection.pipe.close(.afterWriting)
        observeEnd(of: link)
    }

    func tell(_ event: SessionEvent) {
        if let onEvent { return onEvent(event) }
        events.append(event, droppingOldestBeyond: machine.limits.unreadEvents)
    }

    /// Runs `call` on the machine, which tells the outcome under `token`; `whenDone` gets it.
    func begin(
        _ token: CallToken, _ whenDone: @escaping @Sendable (Result<PeerID, NighError>) -> Void,
        _ call: (SessionMachine, Moment) -> Void
    ) {
        guard hasStarted, !isClosed else { return whenDone(.failure(NighError(.inviting, .closed))) }
        calls[token] = whenDone
        inTurn { call(machine, loop.now) }
    }

    func ping(
        _ peer: PeerID, payload: [UInt8], token: CallToken,
        _ whenDone: @escaping @Sendable (Result<Duration, NighError>) -> Void
    ) {
        guard hasStarted, !isClosed else { return whenDone(.failure(NighError(.pinging, .closed))) }
        pings[token] = whenDone
        inTurn { machine.ping(peer, payload: payload, token: token, now: loop.now) }
    }
}
