/// Connects the session machine to the world: pipes, transports, timers and the program's handlers on one side, the
/// machine's inputs and outputs on the other. It decides little; ARCHITECTURE lists it.
///
/// `@unchecked Sendable`: after `start` everything here is touched on the loop only, which `Session` ensures.
/// Properties that each message uses are not checked for exclusive access; see `Conversation`.
/// This file is long because the driver's state is private to it.
final class SessionDriver: @unchecked Sendable {
    @exclusivity(unchecked) var machine: SessionMachine
    let directory: PortDirectory
    private let portNotifier: PortNotifier
    let loop: any EventLoop
    let transports: [any Transport]
    let inbox: MessageInbox
    private let reports: SessionReports
    var advertisement: Advertisement
    /// No change of `advertisement.isFull` is advertised before this moment.
    var nextFullnessChange = Moment(nanoseconds: .min)
    var fullnessTimer: LoopTimer?
    private let role: SessionRole
    /// The observers of the links.
    let observers: [any LinkObserver]

    @exclusivity(unchecked) private(set) var messageHandlerBox: MessageHandlerBox?
    private var onEvent: EventHandler?
    /// The layers; nil without any, and after the end.
    @exclusivity(unchecked) private(set) var layers: LayerCalls?
    private(set) var hasStarted = false
    private(set) var isClosed = false

    private var calls =
        NumberTable<@Sendable (Result<PeerID, NighError>) -> Void>()
    private var pings: [CallToken: @Sendable (Result<Duration, NighError>) -> Void] =
        [:]
    private var whenClosed: [@Sendable () -> Void] = []
    var unansweredCalls: Int { calls.count + pings.count }

    @exclusivity(unchecked) var connections = NumberTable<PipeConnection>()
    /// The connection that was written last. Usually it is the next one, too.
    @exclusivity(unchecked) private var lastWritten: PipeConnection?
    @exclusivity(unchecked) private var outgoing = ByteQueue()
    /// The number of pipes that are closed and not drained yet; used when the session closes.
    private var drainingPipes = 0
    /// Ends the session even if something has not left by then. Set once all conversations have ended.
    private var goodbyeTimer: LoopTimer?
    var depth = 0
    var flushIsDue = false
    private var timerFiresAt = Moment.never
    @exclusivity(unchecked) private var input = InputPattern()
    var flushWork: @Sendable () -> Void = {}
    private var timerWork: @Sendable () -> Void = {}
    /// How work given to the loop finds the driver.
    let driverReference: DriverReference
    private var listedPorts: ContiguousArray<PeerPort> = []
    private let trustSynchronizer: (any TrustSynchronizer)?
    private var trustObservation: TrustObservation?

    /// The most bytes that a link writes before other links get their turn.
    private static let writeShare = 1 << 20
    /// A read of this many bytes counts as part of a flow: more comes in the same turn.
    static let flowByteCount = 3 << 10

    init(
        machine: consuming SessionMachine, loop: any EventLoop, transports: [any Transport],
        advertisement: Advertisement,
        role: SessionRole, layers: LayerCalls?, directory: PortDirectory, reports: SessionReports,
        driverReference: DriverReference, portNotifier: PortNotifier
    ) {
        let trust = machine.trust
        inbox = Self.makeInbox(machine, portNotifier)
        self.machine = machine
        self.layers = layers
        observers = layers?.observers ?? []
        self.driverReference = driverReference
        self.portNotifier = portNotifier
        self.directory = directory
        self.reports = reports
        self.loop = loop
        self.transports = transports
        self.advertisement = advertisement
        self.role = role
        trustSynchronizer = trust.storage?.makeSynchronizer(of: trust, on: loop) {
            [driverReference] in
            driverReference.driver?.report(.problem($0))
        } becameIdle: { [driverReference] in
            driverReference.driver?.finishClosingIfReady()
        }
        flushWork = { [driverReference] in driverReference.driver?.flush() }
        timerWork = { [driverReference] in driverReference.driver?.timerFired() }
    }

    private static func makeInbox(_ machine: borrowing SessionMachine, _ portNotifier: PortNotifier)
        -> MessageInbox
    {
        MessageInbox(
            receiveWindow: machine.limits.receiveWindow, owner: machine.hello.peer, portNotifier: portNotifier
        )
    }

    /// Creates another inbox besides that of the session. Its messages count as unread like the others.
    func makeInbox() -> MessageInbox { Self.makeInbox(machine, portNotifier) }

    /// Refers to the driver from its start to its close. The closures that are given to the loop again and again hold
    /// this object instead of a weak reference. An object with a weak reference pays for it each time that it is
    /// retained, and the driver is retained many times per message. The reference cycle ends with the close.
    final class DriverReference: @unchecked Sendable {
        // Touched on the loop only, hence `@unchecked Sendable`.
        @exclusivity(unchecked) fileprivate(set) var driver: SessionDriver?
    }

    /// Holds the program's handler, in an object of its own that can be retained cheaply. The handler's closure often
    /// captures an object to which somebody has a weak reference, usually the session itself, and such an object pays
    /// for this each time that it is retained.
    final class MessageHandlerBox {
        let handler: MessageHandler
        init(_ handler: @escaping MessageHandler) { self.handler = handler }
    }

    // MARK: Start and close

    func start(
        onEvent: EventHandler?, onMessage: MessageHandler? = nil,
        onWaitingMessages: (@Sendable () -> Void)? = nil
    ) {
        guard !hasStarted, !isClosed else { return }
        hasStarted = true
        driverReference.driver = self
        self.onEvent = onEvent
        messageHandlerBox = onMessage.map(MessageHandlerBox.init)
        inbox.onAppend = onWaitingMessages
        for transport in transports { transport.start(on: loop, events: self) }
        trustObservation = machine.trust.addObserver { [loop, driverReference] in
            loop.execute { driverReference.driver?.trustChanged() }
        }
        trustSynchronizer?.start()
        if role.advertises { startAdvertising() }
        if role.browses { startBrowsing() }
    }

    func close(completion: @escaping @Sendable () -> Void) {
        guard !isClosed else { return completion() }
        if !directory.isClosed { layers?.willClose() }
        directory.close()
        whenClosed.append(completion)
        guard hasStarted else { return finishClosing() }
        for transport in transports {
            transport.stopAdvertising()
            transport.stopBrowsing()
        }
        inTurn { machine.close(now: loop.now) }
    }

    /// Gives the goodbyes the time to leave this process, after all conversations have ended. Then shuts everything
    /// down.
    private func waitForGoodbyes() {
        guard goodbyeTimer == nil else { return }
        let deadline = loop.now + Moment.Span(machine.timings.goodbye)
        goodbyeTimer = loop.schedule(at: deadline) { [driverReference] in
            driverReference.driver?.finishClosing()
        }
        flush()
        finishClosingIfReady()
    }

    /// Notes that the last bytes of a closed link have left this process, or never will.
    func pipeDrained() {
        drainingPipes -= 1
        finishClosingIfReady()
    }

    private func finishClosingIfReady() {
        if goodbyeTimer != nil, drainingPipes == 0, trustSynchronizer?.isBusy != true { finishClosing() }
    }

    private func finishClosing() {
        guard !isClosed else { return }
        isClosed = true
        directory.close()
        if let trustObservation { machine.trust.removeObserver(trustObservation) }
        trustObservation = nil
        trustSynchronizer?.stop()
        if let goodbyeTimer { loop.cancel(goodbyeTimer) }
        for (_, connection) in connections.sorted {
            connection.closeDatagrams()
            connection.pipe.close(.now)
            observeEnd(of: connection.link, cause: .closed)
        }
        connections.removeAll()
        lastWritten = nil
        if hasStarted { for transport in transports { transport.shutdown() } }
        layers.take()?.didClose()
        report(.closed)
        forgetHandlers()
        inbox.finish()
        reports.finish()
        let error = NighError(.conversing, .closed)
        machine.end(error)
        portNotifier.close()
        let (waitingCalls, waitingPings) = (calls, pings)
        calls.removeAll()
        pings.removeAll()
        for (_, call) in waitingCalls.sorted { call(.failure(error)) }
        for (_, ping) in waitingPings.sorted(by: { $0.key.number < $1.key.number }) { ping(.failure(error)) }
        let finished = whenClosed
        whenClosed.removeAll()
        driverReference.driver = nil
        for done in finished { done() }
    }

    /// Shuts everything down at once, in the middle of whatever is going on, and reports no more events or messages.
    /// Waiting calls fail.
    func crash() {
        layers = nil
        forgetHandlers()
        finishClosing()
    }

    /// Closes a session that nobody holds any more, like `close`, but reports no more events or messages.
    func abandon() {
        if !isClosed { forgetHandlers() }
        // The closure that waits for the end keeps the driver until then.
        close { self.reports.forgetPeers() }
    }

    private func forgetHandlers() {
        onEvent = nil
        inbox.onAppend = nil
        messageHandlerBox = nil
    }

    // MARK: Turns

    /// Looks at the ports that other threads have used: they have staged messages, or read received ones.
    func processListedPorts() {
        guard !isClosed else { return }
        inTurn {
            portNotifier.take(into: &listedPorts)
            for port in listedPorts {
                port.markUnlisted()
                machine.processPort(port)
            }
            listedPorts.removeAll(keepingCapacity: true)
        }
    }

    /// Returns the counts so far. Messages that the program has read count at once, not only when there are enough of
    /// them to notify the peer.
    func statistics() -> SessionStatistics {
        inTurn {
            for peer in machine.sortedPeers {
                if let port = peer.conversation?.port { machine.processPort(port) }
            }
        }
        return machine.statisticsSnapshot()
    }

    /// Runs an input to the machine. If it is the outermost one, also performs the machine's outputs.
    @inline(__always)
    func inTurn(_ input: () -> Void) {
        depth &+= 1
        input()
        depth &-= 1
        if depth == 0 { afterInput() }
    }

    private func afterInput() {
        guard performOutputs() else { return }
        if input.writesAtOnce {
            input.writesAtOnce = false
            depth &+= 1
            writeDirtyLinks()
            depth &-= 1
            // Writing may have ended a link.
            guard performOutputs() else { return }
        }
        if machine.hasDirtyLinks { flushSoon() }
        armTimer()
    }

    /// Carries out the machine's directives, and sends its packets. Returns false if the session is closed.
    private func performOutputs() -> Bool {
        guard !isClosed else { return false }
        carryOutDirectives()
        guard !isClosed else { return false }
        sendPackets()
        return true
    }

    /// Takes note of bytes from a pipe, before the turn with them begins.
    @inline(__always)
    func noteInput(_ byteCount: Int, from link: UInt64, now: Moment) {
        input.note(byteCount, from: link, now: now)
    }

    /// Decides whether messages sent in a turn are written at its end. Otherwise they are gathered until the loop has
    /// looked at all pipes. They are written at once if the pipe has brought a few bytes and no other pipe any at this
    /// moment or the last one: then there is nothing to gather, and waiting would only cost time.
    private struct InputPattern {
        /// The link whose pipe brought bytes last, and when.
        private var last: (link: UInt64, moment: Moment) = (0, .never)
        /// Whether only that pipe has brought bytes at the last two moments with input.
        private var isOnly = false
        /// Whether this turn writes at its end, and does not wait for other turns.
        var writesAtOnce = false

        mutating func note(_ byteCount: Int, from link: UInt64, now: Moment) {
            if link != last.link {
                isOnly = false
                last = (link, now)
            } else if now != last.moment {
                isOnly = true
                last.moment = now
            }
            writesAtOnce = isOnly && byteCount < flowByteCount
        }
    }

    /// Schedules the writing of all links behind all work of this turn, so that the bytes leave in one go. Within an
    /// input to the machine, this happens at its end.
    func flushSoon() {
        guard depth == 0, !flushIsDue else { return }
        flushIsDue = true
        loop.execute(flushWork)
    }

    /// Sends an unreliable message. Drops it if the pipe's room is used up, because it would have to wait. A message
    /// may begin a datagram path, so this is an input like any other.
    func send(
        unreliable bytes: UnsafeRawBufferPointer, _ order: DatagramOrder, to peer: PeerID
    ) throws(NighError) {
        var failure: NighError?
        inTurn {
            do throws(NighError) {
                try machine.send(unreliable: bytes, order, to: peer, now: loop.now) { link in
                    connections[link.number]?.pipe.writableBytes ?? 0
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    private func armTimer() {
        let deadline = machine.deadline
        guard deadline < timerFiresAt else { return }
        timerFiresAt = deadline
        loop.schedule(at: deadline, timerWork)
    }

    /// Whether the timer fires no later than the machine's deadline; true if there is no deadline.
    var wakesInTime: Bool { timerFiresAt <= machine.deadline }

    private func timerFired() {
        guard !isClosed else { return }
        let now = loop.now
        if timerFiresAt <= now { timerFiresAt = .never }
        inTurn { machine.timeArrived(now: now) }
    }

    /// Writes the bytes that the links have gathered in this turn.
    private func flush() {
        flushIsDue = false
        guard !isClosed else { return }
        inTurn { writeDirtyLinks() }
    }

    @inline(__always)
    private func writeDirtyLinks() {
        while let link = machine.nextDirtyLink() {
            if let lastWritten, lastWritten.link === link {
                write(lastWritten)
            } else if let connection = connections[link.number] {
                lastWritten = connection
                write(connection)
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
            link.machine.send(&link.newest, within: room)
            link.machine.gather(into: &outgoing, budget: room, from: link.conversation)
            if link.machine.tap != nil { observe(link) }
            let count = outgoing.byteCount
            guard count > 0 else { break }
            share &-= count
            connection.pipe.write(&outgoing)
            outgoing.removeAll()
            // A link that did not use all the room has nothing more to write, unless a message of a key did not fit.
            guard count >= room || !link.newest.isEmpty else { break }
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
        case .release(let link):
            loop.execute { [driverReference, link = link.number] in driverReference.driver?.release(link) }
        case .close(let link): close(link)
        case .openDatagrams(let link): openDatagrams(of: link)
        case .findDatagramPlace(let link, let offer): findPlace(of: offer, for: link)
        case .report: if let event = machine.nextEvent() { report(event) }
        case .reportStream(let stream): layers?.streams[stream.purpose]?(stream)
        case .finish(let token, let result): calls.remove(token.number)?(result)
        case .answerPing(let token, let result): pings.removeValue(forKey: token)?(result.map(\.duration))
        case .openPort(let port): directory.add(port)
        case .closePort(let port): directory.remove(port)
        case .saveTrust: trustSynchronizer?.save()
        case .conversationCountChanged: advertiseFullness()
        case .conversationsEnded: waitForGoodbyes()
        }
    }

    private func findPlaces(behind route: RouteRecord, for race: UInt64) {
        transports[route.transport].places(behind: route.address) { [driverReference] result in
            guard let driver = driverReference.driver else { return }
            let places = (try? result.get()) ?? []
            driver.inTurn {
                driver.machine.placesFound(places, behind: route, race: race, now: driver.loop.now)
            }
        }
    }

    /// Forgets the connection of a link that is over, and returns it.
    func remove(_ link: Link) -> PipeConnection? {
        if lastWritten?.link === link { lastWritten = nil }
        // Packets sent in the same turn as the goodbye leave before it.
        sendPackets()
        let connection = connections.remove(link.number)
        connection?.closeDatagrams()
        return connection
    }

    private func close(_ link: Link) {
        guard let connection = remove(link) else { return }
        link.machine.gather(into: &outgoing, budget: 0)
        if !outgoing.isEmpty { connection.pipe.write(&outgoing) }
        outgoing.removeAll()
        // A pipe that ended while its link was held reports nothing more.
        if connection.endWhileHeld == nil {
            connection.isDraining = true
            drainingPipes += 1
        }
        connection.pipe.close(.afterWriting)
        observeEnd(of: link)
    }

    /// Reports an event to the layers, and then to the program. An invitation that a layer answers is reported to
    /// nobody.
    func report(_ event: SessionEvent) {
        if let layers, case .invited(let invitation) = event, layers.answers(invitation) { return }
        reports.note(event)
        layers?.handle(event)
        onEvent?(event)
    }

    /// Runs `call` on the machine, which reports the outcome under `token`; `completion` gets it.
    ///
    /// - Parameter stage: the stage of the error if the session is not open.
    func begin(
        _ stage: NighError.Stage, _ token: CallToken,
        _ completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void,
        _ call: (inout SessionMachine, Moment) -> Void
    ) {
        guard hasStarted, !isClosed else { return completion(.failure(NighError(stage, .closed))) }
        calls[token.number] = completion
        inTurn { call(&machine, loop.now) }
    }

    /// Cancels the program's call.
    func cancel(_ token: CallToken) {
        inTurn { if !machine.cancelPairing(token) { machine.cancel(token, now: loop.now) } }
    }

    /// Ends the program's wait for the outcome of a call that goes on.
    func abandonCall(_ token: CallToken, _ stage: NighError.Stage, _ peer: PeerID) {
        calls.remove(token.number)?(.failure(cancelled(stage, peer)))
    }

    /// Ends the program's wait for the answer to a ping, which may still come.
    func abandonPing(_ token: CallToken, _ peer: PeerID) {
        pings.removeValue(forKey: token)?(.failure(cancelled(.pinging, peer)))
    }

    private func cancelled(_ stage: NighError.Stage, _ peer: PeerID) -> NighError {
        NighError(stage, .cancelled, peer: machine.peers[peer]?.label ?? peer.short)
    }

    func ping(
        _ peer: PeerID, over path: PingPath, payload: [UInt8], token: CallToken,
        _ completion: @escaping @Sendable (Result<Duration, NighError>) -> Void
    ) {
        guard hasStarted, !isClosed else { return completion(.failure(NighError(.pinging, .closed))) }
        pings[token] = completion
        inTurn { machine.ping(peer, over: path, payload: payload, token: token, now: loop.now) }
    }
}
