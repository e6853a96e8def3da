import NighCore

/// Finds peers and carries pipes over a message broker, for sessions that are not on one network.
///
/// A session announces itself in the realm of its service, and listens under subjects of its own. A pipe is a
/// `SequencedPipe`: its bytes are numbered, so a packet that the broker loses ends the pipe, and the conversation
/// resumes on the next one. When the connection to the broker breaks, all pipes end at once, and nothing is sent later.
///
/// `@unchecked Sendable`: confined to the session's loop from `start` on; `prepare` comes before that.
/// This file is long because the transport's state is private to it; presence and pipes have files of their own.
package final class BrokerTransport: @unchecked Sendable {
    /// How often a request for a pipe is repeated. The first one may come before the broker knows the other end's
    /// subscription, or be lost.
    private static let openPause = Moment.Span.seconds(1)
    /// How long a dial waits before it asks again an address where nobody was found: servers of a cluster learn of a
    /// new subscription one after the other.
    private static let nobodyPause = Moment.Span.milliseconds(250)

    private struct Running {
        let loop: any EventLoop
        let events: any TransportEvents
    }

    private struct Dial {
        let address: BrokerAddress
        /// The number of the pipe's end here.
        let number: UInt64
        /// The window of that end.
        let window: Int
        let deadline: Moment
        var timer: LoopTimer?
        /// Whether nobody was found at the address.
        var foundNobody = false
    }

    package let scheme: String
    package let capabilities: TransportCapabilities
    private let broker: any Broker
    private let subjects: BrokerSubjects
    private let pipes: BrokerPipes
    private let seed: UInt64
    private let nonce: String

    /// This session in subjects: random until `prepare`.
    private var identity: String
    private var peer: String
    private var replyAddress: BrokerReplyAddress
    private var running: Running?
    private var presence: BrokerPresence?
    private var isConnected = false
    private var problem: NighError?
    private var advertisement: Advertisement?
    private var browsed: ServiceName?
    /// The services whose announcements this session hears.
    private var heard: Set<ServiceName> = []
    private var dials: [DialID: Dial] = [:]
    private var dialByNumber: [UInt64: DialID] = [:]
    /// The dials that fail in a later turn.
    private var failedDials: Set<DialID> = []
    private var timer: (moment: Moment, id: LoopTimer)?
    /// The number of the last end of a pipe.
    private var lastNumber: UInt64 = 0

    /// Creates a transport over `broker`.
    package convenience init(
        _ broker: any Broker, scheme: String, realm: String, capabilities: TransportCapabilities
    ) {
        self.init(
            broker, scheme: scheme, realm: realm, capabilities: capabilities, sizes: BrokerPipes.Sizes(),
            seed: .random(in: .min ... .max), nonce: Self.makeNonce())
    }

    /// Creates a transport whose random decisions come from `seed`, for tests.
    init(
        _ broker: any Broker, scheme: String, realm: String, capabilities: TransportCapabilities,
        sizes: BrokerPipes.Sizes,
        seed: UInt64, nonce: String
    ) {
        self.broker = broker
        self.scheme = scheme
        var capabilities = capabilities
        // A client may need some time to find another server of a cluster.
        capabilities.suggestedGrace = .seconds(30)
        self.capabilities = capabilities
        self.seed = seed
        subjects = BrokerSubjects(realm: realm)
        pipes = BrokerPipes(broker, subjects, scheme: scheme, sizes: sizes)
        identity = nonce
        peer = nonce
        replyAddress = BrokerReplyAddress(identity: nonce, nonce: nonce)
        self.nonce = nonce
    }

    /// 128 random bits, which make a reply address that nobody can guess.
    private static func makeNonce() -> String {
        var random = SystemRandomNumberGenerator()
        return String(random.next(), radix: 36) + String(random.next(), radix: 36)
    }

    /// The address at which others ask this session for pipes.
    private func ownAddress(_ service: ServiceName) -> BrokerAddress {
        BrokerAddress(identity: identity, peer: peer, service: service)
    }

    private func transportAddress(_ address: BrokerAddress) -> TransportAddress {
        TransportAddress(scheme: scheme, value: "\(address)")
    }

    private func publish(_ message: BrokerMessage, to subject: String, answers: String? = nil) {
        broker.publish(message.bytes, to: subject, answers: answers)
    }

    // MARK: Presence

    private func beginAdvertising(_ advertisement: Advertisement) {
        guard let running, isConnected else { return }
        let service = advertisement.service
        let address = ownAddress(service)
        broker.subscribe(to: subjects.to(address))
        broker.subscribe(to: subjects.who(service))
        listen()
        presence?.beginAdvertising(at: running.loop.now)
        watchTime()
        later { transport, running in
            guard transport.isConnected, transport.advertisement?.service == service else { return }
            running.events.listeningChanged([transport.transportAddress(address)], by: transport)
            running.events.advertised(as: advertisement.name, by: transport)
        }
    }

    private func endAdvertising() {
        guard let service = advertisement?.service else { return }
        advertisement = nil
        presence?.endAdvertising()
        guard isConnected else { return }
        publish(.gone(ownAddress(service)), to: subjects.here(service))
        broker.unsubscribe(from: subjects.to(ownAddress(service)))
        broker.unsubscribe(from: subjects.who(service))
        listen()
        later { transport, running in
            guard transport.advertisement == nil else { return }
            running.events.listeningChanged([], by: transport)
        }
    }

    private func beginBrowsing(_ service: ServiceName) {
        guard isConnected else { return }
        listen()
        publish(.who(replyAddress), to: subjects.who(service))
    }

    /// Subscribes to announcements. A session that only advertises counts them, to know how often to announce itself.
    private func listen() {
        guard isConnected else { return }
        let wanted = Set([browsed, advertisement?.service].compactMap(\.self))
        for service in wanted.subtracting(heard) { broker.subscribe(to: subjects.here(service)) }
        for service in heard.subtracting(wanted) { broker.unsubscribe(from: subjects.here(service)) }
        heard = wanted
    }

    private func handle(_ message: BrokerMessage, for number: UInt64, _ running: Running) {
        switch message {
        case .here(let address, let again, let advertisement):
            guard advertisement.service == browsed ?? self.advertisement?.service,
                address != ownAddress(advertisement.service)
            else { return }
            let change = presence?.heard(advertisement, from: address, again: again, at: running.loop.now)
            report(change, running)
            watchTime()
        case .gone(let address): report(presence?.lost(address), running)
        case .who(let replyAddress):
            presence?.asked(by: replyAddress, at: running.loop.now)
            watchTime()
        case .open(let end): requested(end, running)
        case .opened(let end): opened(end, number, running)
        case .refused:
            guard let dial = dialByNumber[number] else { return }
            fail(dial, .refused, advice: "the peer takes no pipes now")
        }
    }

    private func report(_ change: SightingChange?, _ running: Running) {
        guard let change, browsed != nil else { return }
        running.events.report(change, by: self)
    }

    private func takeTime() {
        guard let running, isConnected, let (actions, lost) = presence?.due(at: running.loop.now) else {
            return
        }
        for action in actions {
            switch action {
            case .announce(let again): announce(again) { subjects.here($0) }
            case .answer(let replyAddress, let again):
                announce(again) { _ in subjects.at(replyAddress, "here") }
            case .ask(let address): publish(.who(replyAddress), to: subjects.to(address))
            }
        }
        for change in lost { report(change, running) }
        watchTime()
    }

    /// Publishes this session's announcement under a subject for its service.
    private func announce(_ again: Duration, under subject: (ServiceName) -> String) {
        guard let advertisement else { return }
        let service = advertisement.service
        publish(.here(ownAddress(service), again: again, advertisement), to: subject(service))
    }

    /// Sets the timer for the next action of presence.
    private func watchTime() {
        guard let loop = running?.loop, let moment = presence?.nextMoment else { return }
        if let timer {
            guard moment < timer.moment else { return }
            loop.cancel(timer.id)
        }
        let id = loop.schedule(at: moment) { [weak self] in
            self?.timer = nil
            self?.takeTime()
        }
        timer = (moment, id)
    }

    private func later(_ work: @escaping @Sendable (BrokerTransport, Running) -> Void) {
        running?.loop.later { [weak self] in
            guard let self, let running else { return }
            work(self, running)
        }
    }

    // MARK: Dials

    private func begin(
        _ dial: DialID, to address: BrokerAddress, within timeout: Duration, on loop: any EventLoop
    ) {
        lastNumber += 1
        dials[dial] = Dial(
            address: address, number: lastNumber, window: pipes.nextWindow,
            deadline: loop.now + Moment.Span(timeout))
        dialByNumber[lastNumber] = dial
        ask(dial)
    }

    /// Asks for a pipe, or asks again, and sets the time at which to go on.
    private func ask(_ dial: DialID) {
        guard let running, let record = dials[dial] else { return }
        let now = running.loop.now
        guard now < record.deadline else {
            return fail(dial, problem?.cause ?? .timedOut, advice: problem?.advice)
        }
        var pause = Self.openPause
        if isConnected {
            publish(
                .open(end(record.number, window: record.window)), to: subjects.to(record.address),
                answers: subjects.at(replyAddress, BrokerSubjects.token(of: record.number)))
            if record.foundNobody { pause = Self.nobodyPause }
        }
        wait(dial, until: min(now + pause, record.deadline))
    }

    private func wait(_ dial: DialID, until moment: Moment) {
        guard let loop = running?.loop else { return }
        if let timer = dials[dial]?.timer { loop.cancel(timer) }
        dials[dial]?.timer = loop.schedule(at: moment) { [weak self] in
            self?.dials[dial]?.timer = nil
            self?.ask(dial)
        }
    }

    private func end(_ number: UInt64, window: Int) -> BrokerMessage.PipeEnd {
        BrokerMessage.PipeEnd(
            replyAddress: replyAddress, token: BrokerSubjects.token(of: number), window: UInt32(window),
            longestPacket: UInt32(pipes.longestPacket))
    }

    private func foundNobody(_ dial: DialID, _ running: Running) {
        guard let record = dials[dial] else { return }
        guard record.foundNobody else {
            dials[dial]?.foundNobody = true
            return wait(dial, until: min(running.loop.now + Self.nobodyPause, record.deadline))
        }
        let own = (browsed ?? advertisement?.service).map(ownAddress)
        // The broker delivers nothing to the client that has published it.
        guard record.address != own else { return fail(dial, .selfDial) }
        fail(dial, .refused, advice: "no session of that peer is connected to the broker now")
        report(presence?.missed(record.address, at: running.loop.now), running)
        watchTime()
    }

    private func fail(_ dial: DialID, _ cause: NighError.Cause, advice: String? = nil) {
        guard let running, remove(dial) != nil else { return }
        running.events.dialFailed(
            dial, error: NighError(.connecting, cause, transport: scheme, advice: advice), by: self)
    }

    private func failLater(_ dial: DialID, _ error: NighError) {
        failedDials.insert(dial)
        later { transport, running in
            guard transport.failedDials.remove(dial) != nil else { return }
            running.events.dialFailed(dial, error: error, by: transport)
        }
    }

    private func remove(_ dial: DialID) -> Dial? {
        guard let record = dials.removeValue(forKey: dial) else { return nil }
        dialByNumber[record.number] = nil
        if let timer = record.timer { running?.loop.cancel(timer) }
        return record
    }

    // MARK: Pipes

    /// Handles a request for a pipe.
    private func requested(_ end: BrokerMessage.PipeEnd, _ running: Running) {
        guard !pipes.answerAgain(end) else { return }
        guard let advertisement, !pipes.isFull else {
            return publish(.refused, to: subjects.at(end.replyAddress, end.token))
        }
        lastNumber += 1
        let window = pipes.nextWindow
        let answer = BrokerMessage.opened(self.end(lastNumber, window: window)).bytes
        let pipe = pipes.open(
            lastNumber, to: end, window: window, answer: answer,
            from: transportAddress(ownAddress(advertisement.service)), at: nil, on: running.loop)
        running.events.pipeOpened(pipe, dial: nil, by: self)
    }

    /// Handles the answer to this session's request.
    private func opened(_ end: BrokerMessage.PipeEnd, _ number: UInt64, _ running: Running) {
        guard let dial = dialByNumber[number], let record = remove(dial) else {
            // The dial was given up meanwhile, or this answers a repeated request.
            return pipes.decline(end, number)
        }
        let pipe = pipes.open(
            number, to: end, window: record.window, answer: nil, from: nil,
            at: transportAddress(record.address), on: running.loop)
        running.events.pipeOpened(pipe, dial: dial, by: self)
    }
}

extension BrokerTransport: BrokerEvents {
    package func brokerConnected(_ limits: BrokerLimits) {
        guard let running else { return }
        let wasDown = problem != nil
        isConnected = true
        problem = nil
        pipes.connected(limits)
        // First, so that a session's answer never comes after its goodbye, which would bring it back.
        broker.subscribe(to: subjects.at(replyAddress, "*"))
        if let advertisement { beginAdvertising(advertisement) }
        if let browsed { beginBrowsing(browsed) }
        for dial in dials.keys.sorted(by: { $0.number < $1.number }) { ask(dial) }
        if wasDown { running.events.transportChanged(.up, by: self) }
    }

    package func brokerDisconnected(_ error: NighError) {
        guard let running else { return }
        let wasConnected = isConnected
        isConnected = false
        heard = []
        problem = error
        presence?.forgetAll()
        pipes.disconnected(NighError(.conversing, .linkLost, transport: scheme, advice: error.advice))
        if wasConnected, advertisement != nil { running.events.listeningChanged([], by: self) }
        running.events.transportChanged(.down(error), by: self)
    }

    package func brokerReceived(_ packet: ByteSlice, under subject: String, answers: String?) {
        guard let running else { return }
        let number = BrokerSubjects.number(at: subject)
        if let message = BrokerMessage(packet) { return handle(message, for: number, running) }
        pipes.receive(packet, for: number)
    }

    package func brokerFoundNobody(answeringTo answers: String) {
        guard let running, let dial = dialByNumber[BrokerSubjects.number(at: answers)] else { return }
        foundNobody(dial, running)
    }

    package func brokerHasRoom() { pipes.pump() }

    /// Reports a failure as one of advertising, or else of browsing, if the session does either.
    package func brokerFailed(_ error: NighError) {
        guard let running else { return }
        if advertisement != nil {
            running.events.advertisingFailed(error, by: self)
        } else if browsed != nil {
            running.events.browsingFailed(error, by: self)
        }
    }

    package func brokerHasReceived(mark: UInt64) { pipes.hasReceived(mark: mark) }
}

extension BrokerTransport: Transport {
    package func prepare(for peer: PeerID, of identity: PeerID) {
        self.identity = identity.description
        self.peer = peer.description
        replyAddress = BrokerReplyAddress(identity: self.identity, nonce: nonce)
    }

    package func start(on loop: any EventLoop, events: any TransportEvents) {
        running = Running(loop: loop, events: events)
        presence = BrokerPresence(scheme: scheme, seed: seed, at: loop.now)
        broker.start(on: loop, events: self)
    }

    package func advertise(_ advertisement: Advertisement) {
        if self.advertisement != nil { endAdvertising() }
        self.advertisement = advertisement
        if isConnected { return beginAdvertising(advertisement) }
        guard let problem else { return }
        later { transport, running in
            guard transport.advertisement != nil, !transport.isConnected else { return }
            running.events.advertisingFailed(problem, by: transport)
        }
    }

    package func updateAdvertisement(_ advertisement: Advertisement) {
        guard let running, self.advertisement != nil else { return }
        self.advertisement = advertisement
        presence?.announceAgain(at: running.loop.now)
        watchTime()
    }

    package func stopAdvertising() { endAdvertising() }

    package func browse(_ service: ServiceName) {
        if browsed != nil { stopBrowsing() }
        browsed = service
        presence?.forgetAll()
        if isConnected { return beginBrowsing(service) }
        guard let problem else { return }
        later { transport, running in
            guard transport.browsed != nil, !transport.isConnected else { return }
            running.events.browsingFailed(problem, by: transport)
        }
    }

    package func stopBrowsing() {
        browsed = nil
        listen()
    }

    package func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        guard let running else { return }
        let service = browsed ?? advertisement?.service
        guard address.scheme == scheme, let target = BrokerAddress(address.value, service: service) else {
            return failLater(
                dial,
                NighError(
                    .connecting, .invalid("address \"\(address)\""), transport: scheme,
                    advice: "write \(scheme):// and a PeerID"))
        }
        begin(dial, to: target, within: timeout, on: running.loop)
    }

    package func cancelDial(_ dial: DialID) {
        failedDials.remove(dial)
        _ = remove(dial)
    }

    package func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) {
        guard address.scheme == scheme, BrokerAddress(address.value, service: "any") != nil else {
            return found(
                .failure(NighError(.connecting, .invalid("address \"\(address)\""), transport: scheme)))
        }
        found(.success([address]))
    }

    package func diagnose() -> [Diagnosis] {
        let known = presence?.knownCount ?? 0
        return broker.diagnose() + [
            Diagnosis("sessions seen", .pass, "\(known), and \(pipes.count) pipes open", id: "sessions")
        ]
    }

    package func shutdown() {
        endAdvertising()
        running = nil
        pipes.shutdown()
        dials = [:]
        dialByNumber = [:]
        failedDials = []
        broker.shutdown()
        isConnected = false
    }
}
