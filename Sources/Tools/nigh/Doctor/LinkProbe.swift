import NighCore

/// Tests one pipe to a peer stage by stage, without a session: prefaces, secure channel, hellos, version, some pings,
/// datagrams, close.
///
/// For diagnosis. The other side sees a link on which nobody asks for a conversation, which changes nothing for it.
/// Create a probe in the turn in which the pipe was opened, and use it on that pipe's loop only; `report` is called
/// there. The probe keeps itself alive until it has reported its end.
///
/// `@unchecked Sendable`: used on the loop only.
final class LinkProbe: PipeHandler, @unchecked Sendable {
    /// The settings of a probe.
    struct Plan: Sendable {
        /// The identity with which the probe calls. It should be a new one: if a session uses the same identity, the
        /// other side would think that this session has restarted.
        var identity: Identity
        /// The service and the name in the probe's hello.
        var service: ServiceName
        var name: DisplayName
        var isEncrypted = true
        /// The peer that must answer, if known.
        var expected: PeerID?
        var pings = 5
        /// Whether the transport has datagrams.
        var triesPackets = false
        /// The time limit for everything up to the hellos, and for each ping.
        var timeout = Duration.seconds(5)

        init(identity: Identity, service: ServiceName, name: DisplayName) {
            self.identity = identity
            self.service = service
            self.name = name
        }
    }

    /// The progress of a probe. Durations count from the opening of the pipe.
    enum Event: Sendable {
        /// The other side has proven this key. Not reported without encryption.
        case secured(PeerID, after: Duration)
        /// The hellos are exchanged, and both sides speak `version`.
        case greeted(Greeting, after: Duration)
        /// A ping was answered after this time.
        case pongReceived(Duration)
        /// It is known whether datagrams pass. Not reported if the transport has none.
        case packetsTried(PacketOutcome)
        /// The last event. Without an error, everything went well. The stage of an error says where the probe stopped.
        case ended(NighError?)
    }

    /// Whether datagrams pass.
    enum PacketOutcome: Equatable, Sendable {
        /// They pass in both directions. This is the round trip of one.
        case passed(Duration)
        /// Both sides have packets, but none comes back.
        case blocked
        /// The other side has none: its program is of an earlier version, or has them switched off.
        case notOffered
    }

    /// The other side, as its hello describes it.
    struct Greeting: Sendable {
        let peer: PeerID
        /// The identity that the peer acts for, as it has proven; the peer itself without encryption.
        let identity: PeerID
        let name: DisplayName
        let service: ServiceName
        let version: UInt8
    }

    private let pipe: any Pipe
    private let plan: Plan
    private let scheme: String
    private let loop: any EventLoop
    private var machine: LinkMachine
    private let openedAt: Moment
    private let report: (Event) -> Void
    private var outgoing = ByteQueue()
    private var timer: LoopTimer?
    /// The phase of the link before it ended.
    private var phase = LinkMachine.Phase.preface
    private var pongCount = 0
    /// When the ping under way has failed.
    private var answerBy = Moment.never
    /// Whether reading is paused until the link's answers have been written.
    private var isPaused = false
    private var packets: PacketProbe?
    private var isOver = false
    private var selfReference: LinkProbe?

    /// Starts a probe on `pipe`, which a transport with the scheme `scheme` has just opened.
    /// Fails if the identity cannot be used.
    @discardableResult
    init(
        _ pipe: any Pipe, over scheme: String, _ plan: Plan, on loop: any EventLoop,
        report: @escaping (Event) -> Void
    ) throws(NighError) {
        self.pipe = pipe
        self.plan = plan
        self.scheme = scheme
        self.loop = loop
        self.report = report
        openedAt = loop.now
        let timings = LinkTimings(
            handshake: plan.timeout, pingAfter: plan.timeout / 2, loseAfter: plan.timeout)
        var hello = Hello(
            peer: plan.identity.peerID, incarnation: .random(in: .min ... .max), service: plan.service,
            name: plan.name, maximumFrame: Hello.leastMaximumFrame, maximumMessage: Hello.leastMaximumFrame)
        hello.hasDatagrams = plan.triesPackets
        machine = LinkMachine(
            side: .dialling, hello: hello, timings: timings,
            tls: plan.isEncrypted ? try TLSContext(plan.identity) : nil, expected: plan.expected,
            now: openedAt)
        selfReference = self
        pipe.start(handler: self)
        loop.execute { [self] in proceed() }
    }

    /// Stops the probe. Nothing more is reported.
    func stop() {
        guard !isOver else { return }
        cleanUp()
        pipe.close(.now)
    }

    // MARK: The pipe

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        guard !isOver else { return }
        notePhase()
        machine.receive(bytes, now: loop.now)
        proceed()
    }

    func pipeBecameWritable(_ pipe: any Pipe) { proceed() }

    func pipeEnded(_ pipe: any Pipe) { pipeIsOver(.linkLost) }

    func pipeClosed(_ pipe: any Pipe, error: NighError?) { pipeIsOver(error?.cause ?? .linkLost) }

    func pipeDrained(_ pipe: any Pipe) {}

    private func pipeIsOver(_ cause: NighError.Cause) {
        guard !isOver else { return }
        handleSteps()
        guard !isOver else { return }
        notePhase()
        fail(cause)
    }

    private func notePhase() { if machine.phase != .closed { phase = machine.phase } }

    // MARK: The link

    private func proceed() {
        guard !isOver else { return }
        handleSteps()
        guard !isOver else { return }
        tryPackets()
        guard !isOver else { return }
        if pipe.writableBytes > 0 { write() }
        pauseOrResume()
        if let timer { loop.cancel(timer) }
        let deadline = min(machine.deadline, answerBy, packets?.deadline ?? .never)
        timer = loop.schedule(at: deadline) { [weak self] in self?.timeArrived() }
    }

    private func timeArrived() {
        timer = nil
        guard !isOver else { return }
        _ = machine.timeArrived(now: loop.now)
        guard answerBy > loop.now else { return fail(.timedOut) }
        proceed()
    }

    /// Reads no more from a peer that does not read the answers.
    private func pauseOrResume() {
        guard isPaused == machine.wantsToRead else { return }
        isPaused.toggle()
        if isPaused { pipe.pauseReading() } else { pipe.resumeReading() }
    }

    private func write() {
        machine.gather(into: &outgoing, budget: max(pipe.writableBytes, 0))
        if !outgoing.isEmpty { pipe.write(&outgoing) }
        outgoing.removeAll()
    }

    private func handleSteps() {
        notePhase()
        while !isOver, let step = machine.next(now: loop.now) {
            switch step {
            case .secured:
                if let peer = machine.provenPeer { report(.secured(peer, after: elapsed)) }
            case .opened:
                greeted()
            case .pong(let token, let roundTrip) where token < LinkMachine.firstAutomaticPing:
                handlePong(roundTrip.duration)
            case .datagrams(let offer): otherOffered(offer)
            case .closed(let end): fail(end.cause)
            default: break
            }
            notePhase()
        }
    }

    private var elapsed: Duration { (loop.now - openedAt).duration }

    private func greeted() {
        guard let hello = machine.peerHello, let version = machine.version else { return }
        report(
            .greeted(
                Greeting(
                    peer: hello.peer, identity: machine.provenIdentity ?? hello.peer, name: hello.name,
                    service: hello.service, version: version),
                after: elapsed))
        if let expected = plan.expected, hello.peer != expected {
            machine.close(.wrongPeer)
            phase = .greeting
            return fail(.wrongPeer(expected: expected, found: hello.peer))
        }
        ping()
    }

    private func handlePong(_ roundTrip: Duration) {
        pongCount += 1
        report(.pongReceived(roundTrip))
        ping()
    }

    private func ping() {
        guard pongCount < plan.pings else {
            answerBy = .never
            return offerPackets()
        }
        answerBy = loop.now + Moment.Span(plan.timeout)
        machine.ping(token: UInt64(pongCount), payload: [], now: loop.now)
    }

    // MARK: Packets

    private func offerPackets() {
        guard plan.triesPackets else { return finish() }
        guard machine.hasDatagrams else {
            report(.packetsTried(.notOffered))
            return finish()
        }
        guard let port = pipe.openDatagrams() else { return finish() }
        let probe = PacketProbe(port, on: loop) { [weak self] in self?.proceed() }
        packets = probe
        machine.send(probe.offer)
    }

    private func otherOffered(_ offer: DatagramOffer) {
        guard let packets, let ciphers = machine.datagramCiphers(ours: packets.offer, theirs: offer) else {
            return
        }
        packets.accept(offer, ciphers: ciphers)
    }

    private func tryPackets() {
        guard let packets else { return }
        packets.proceed()
        guard let outcome = packets.outcome else { return }
        report(.packetsTried(outcome))
        finish()
    }

    private func finish() {
        machine.close(.cancelled)
        closeAndReport(nil)
    }

    private func fail(_ cause: NighError.Cause) {
        let stage: NighError.Stage =
            switch phase {
            case .preface, .securing: .securing
            case .greeting: .greeting
            case .open, .closed: .pinging
            }
        closeAndReport(NighError(stage, cause, transport: scheme, advice: Self.advice(on: cause, at: stage)))
    }

    /// Returns advice for a failed probe. It is more specific than what can be said about a
    /// link that breaks during a conversation.
    private static func advice(on cause: NighError.Cause, at stage: NighError.Stage) -> String? {
        switch cause {
        case .wrongService(let service): "the program there offers another service: look for \(service)"
        case .noCommonVersion: "update the older of the two programs"
        case .noCommonSecurity(theyEncrypt: false): "turn on encryption there, or turn it off here too"
        case .notPaired: "pair the two devices first"
        case .insecure: "somebody on the way may change the traffic, or another kind of program answers there"
        case .protocolViolation, .linkLost, .reset, .timedOut:
            stage == .securing ? "check that a Nigh program answers there, and not another program" : nil
        case .silent: "the connection is open, but nothing arrives: is that device asleep or out of range?"
        default: nil
        }
    }

    private func closeAndReport(_ error: NighError?) {
        write()
        pipe.close(.afterWriting)
        cleanUp()
        report(.ended(error))
    }

    private func cleanUp() {
        isOver = true
        if let timer { loop.cancel(timer) }
        timer = nil
        packets?.close()
        packets = nil
        selfReference = nil
    }
}
