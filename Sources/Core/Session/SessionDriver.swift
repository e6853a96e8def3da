/// Brings the session machine and the world together: pipes, transports, timers and the program's handlers on one
/// side, the machine's inputs and outputs on the other. It decides nothing.
///
/// `@unchecked Sendable`: after `start` everything here is touched on the loop only; `Session` sees to it.
final class SessionDriver: @unchecked Sendable {
    let machine: SessionMachine
    let loop: any EventLoop
    let transports: [any Transport]
    let inbox = Inbox<UnreadMessage>()
    let events = Inbox<SessionEvent>()
    private(set) var advertisement: Advertisement
    private let role: SessionRole

    private var onMessage: MessageHandler?
    private var onEvent: EventHandler?
    private var hasStarted = false
    private var isClosed = false
    private var missedEvents = 0

    private var calls: [CallToken: @Sendable (Result<PeerID, NighError>) -> Void] = [:]
    private var pings: [CallToken: @Sendable (Result<Duration, NighError>) -> Void] = [:]
    private var whenClosed: [@Sendable () -> Void] = []

    private var connections: [UInt64: PipeConnection] = [:]
    private var outgoing = ByteQueue()
    private var depth = 0
    private var flushIsDue = false
    private var armedFor = Moment.never
    private var flushWork: @Sendable () -> Void = {}
    private var timerWork: @Sendable () -> Void = {}
    private var attentive: ContiguousArray<PeerPort> = []
    private var lastPeer: PeerRecord?

    /// The most a link writes before others get their turn.
    private static let writeShare = 1 << 20

    init(
        machine: SessionMachine, loop: any EventLoop, transports: [any Transport], advertisement: Advertisement,
        role: SessionRole
    ) {
        self.machine = machine
        self.loop = loop
        self.transports = transports
        self.advertisement = advertisement
        self.role = role
        flushWork = { [weak self] in self?.flush() }
        timerWork = { [weak self] in self?.timerFired() }
    }

    // MARK: Life

    func start(onEvent: EventHandler?, onMessage: MessageHandler?) {
        guard !hasStarted, !isClosed else { return }
        hasStarted = true
        self.onEvent = onEvent
        self.onMessage = onMessage
        for transport in transports { transport.start(on: loop, events: self) }
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

    private func finishClosing() {
        guard !isClosed else { return }
        flush()
        isClosed = true
        for (_, connection) in connections { connection.pipe.close(.afterWriting) }
        connections.removeAll()
        if hasStarted { for transport in transports { transport.shutdown() } }
        tell(.closed)
        onEvent = nil
        onMessage = nil
        inbox.finish()
        events.finish()
        let error = NighError(.conversing, .closed)
        let (waitingCalls, waitingPings) = (calls, pings)
        calls.removeAll()
        pings.removeAll()
        for (_, call) in waitingCalls.sorted(by: { $0.key.number < $1.key.number }) { call(.failure(error)) }
        for (_, ping) in waitingPings.sorted(by: { $0.key.number < $1.key.number }) { ping(.failure(error)) }
        let finished = whenClosed
        whenClosed.removeAll()
        for done in finished { done() }
    }

    // MARK: Turns

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
        if machine.hasDirtyLinks, !flushIsDue {
            flushIsDue = true
            loop.execute(flushWork)
        }
        arm()
    }

    private func arm() {
        let deadline = machine.deadline
        guard deadline < armedFor else { return }
        armedFor = deadline
        loop.schedule(at: deadline, timerWork)
    }

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
                guard let connection = connections[link.number] else { continue }
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
            link.machine.gather(into: &outgoing, budget: room, conversation: link.conversation)
            guard !outgoing.isEmpty else { break }
            share &-= outgoing.byteCount
            connection.pipe.write(&outgoing)
            outgoing.removeAll()
        }
        if share <= 0 { machine.markDirty(link) }
        if connection.isPaused, link.machine.wantsToRead {
            connection.isPaused = false
            connection.pipe.resumeReading()
        }
        if let end = link.machine.end { machine.linkEnded(link, end, now: loop.now) }
    }

    // MARK: Directives

    private func carryOutDirectives() {
        depth &+= 1
        while let directive = machine.nextDirective() { carryOut(directive) }
        depth &-= 1
    }

    private func carryOut(_ directive: Directive) {
        switch directive {
        case .dial(let dial, let transport, let address, let timeout):
            transports[transport].dial(address, as: dial, timeout: timeout)
        case .cancelDial(let dial, let transport): transports[transport].cancelDial(dial)
        case .close(let link): close(link)
        case .tell(let event): tell(event)
        case .finish(let token, let result): calls.removeValue(forKey: token)?(result)
        case .answerPing(let token, let result): pings.removeValue(forKey: token)?(result.map(\.duration))
        case .openPort(let port): ports.withLock { $0[port.peer] = port }
        case .closePort(let port):
            ports.withLock { if $0[port.peer] === port { $0[port.peer] = nil } }
            if lastPeer?.id == port.peer { lastPeer = nil }
        case .allLeft: finishClosing()
        }
    }

    private func close(_ link: Link) {
        guard let connection = connections.removeValue(forKey: link.number) else { return }
        link.machine.gather(into: &outgoing, budget: 0, conversation: nil)
        if !outgoing.isEmpty { connection.pipe.write(&outgoing) }
        outgoing.removeAll()
        connection.pipe.close(.afterWriting)
    }

    private func tell(_ event: SessionEvent) {
        if let onEvent { return onEvent(event) }
        missedEvents += events.append(event, droppingOldestBeyond: machine.limits.unreadEvents)
        guard missedEvents > 0, events.count < machine.limits.unreadEvents else { return }
        _ = events.append(.missed(missedEvents), droppingOldestBeyond: machine.limits.unreadEvents)
        missedEvents = 0
    }

    func newCall(_ whenDone: @escaping @Sendable (Result<PeerID, NighError>) -> Void) -> CallToken? {
        guard hasStarted, !isClosed else {
            whenDone(.failure(NighError(.inviting, .closed)))
            return nil
        }
        let token = CallToken(number: machine.nextNumber())
        calls[token] = whenDone
        return token
    }

    func ping(_ peer: PeerID, payload: [UInt8], _ whenDone: @escaping @Sendable (Result<Duration, NighError>) -> Void) {
        guard hasStarted, !isClosed else { return whenDone(.failure(NighError(.pinging, .closed))) }
        let token = CallToken(number: machine.nextNumber())
        pings[token] = whenDone
        inTurn { machine.ping(peer, payload: payload, token: token, now: loop.now) }
    }
}
