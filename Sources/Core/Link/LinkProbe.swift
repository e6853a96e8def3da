/// Tries one pipe to somebody, stage by stage, without a session: prefaces, secure channel, hellos, version, some pings, goodbye.
///
/// For diagnosis. The other side sees a link on which nobody ever asks for a conversation, which changes nothing for it. Made in the
/// turn in which the pipe was opened, and used on that pipe's loop only; `tell` is called there. It holds itself until it has told
/// its end.
///
/// `@unchecked Sendable`: confined to the loop.
package final class LinkProbe: PipeHandler, @unchecked Sendable {
    /// What the probe is made of.
    package struct Plan: Sendable {
        /// As whom it calls: as somebody new is best, since a session that uses the same identity would be taken for started anew.
        package var identity: Identity
        /// What it says of itself.
        package var service: ServiceName
        package var name: DisplayName
        package var isEncrypted = true
        /// Who must be there, where that is known.
        package var expected: PeerID?
        package var pings = 5
        /// For all up to the hellos, and again for each ping.
        package var patience = Duration.seconds(5)

        package init(identity: Identity, service: ServiceName, name: DisplayName) {
            self.identity = identity
            self.service = service
            self.name = name
        }
    }

    /// How far it has got; the spans count from the opening of the pipe.
    package enum Event: Sendable {
        /// The other side has proven this key. Not told without encryption.
        case secured(PeerID, after: Duration)
        /// The hellos are exchanged, and both speak `version`.
        case greeted(Greeting, after: Duration)
        /// A ping came back.
        case ponged(Duration)
        /// It is over: all went well, or why not. The stage of the error says where it stopped. The last event.
        case ended(NighError?)
    }

    /// What the other side says of itself.
    package struct Greeting: Sendable {
        package let peer: PeerID
        package let name: DisplayName
        package let service: ServiceName
        package let version: UInt8
    }

    private let pipe: any Pipe
    private let plan: Plan
    private let scheme: String
    private let loop: any EventLoop
    private let machine: LinkMachine
    private let openedAt: Moment
    private let tell: (Event) -> Void
    private var outgoing = ByteQueue()
    private var timer: LoopTimer?
    /// Where the link was before it ended.
    private var phase = LinkMachine.Phase.preface
    private var pongs = 0
    private var isOver = false
    private var own: LinkProbe?

    /// Begins on `pipe`, which a transport of that scheme has just opened. Fails where the identity cannot be used.
    @discardableResult
    package init(
        _ pipe: any Pipe, over scheme: String, _ plan: Plan, on loop: any EventLoop,
        tell: @escaping (Event) -> Void
    ) throws(NighError) {
        self.pipe = pipe
        self.plan = plan
        self.scheme = scheme
        self.loop = loop
        self.tell = tell
        openedAt = loop.now
        let timings = LinkTimings(
            handshake: plan.patience, askAfter: plan.patience / 2, loseAfter: plan.patience)
        let hello = Hello(
            peer: plan.identity.peerID, incarnation: .random(in: .min ... .max), service: plan.service,
            name: plan.name, maximumFrame: Hello.leastMaximumFrame, maximumMessage: Hello.leastMaximumFrame)
        let offer: SecureChannelOffer = plan.isEncrypted ? .tls(try TLSContext(plan.identity)) : .plaintext
        machine = LinkMachine(
            side: .dialling,
            settings: .init(
                hello: hello, timings: timings, offer: offer, expected: plan.expected),
            now: openedAt)
        own = self
        pipe.start(handler: self)
        loop.execute { [self] in proceed() }
    }

    /// Gives it up; nothing more is told.
    package func stop() {
        guard !isOver else { return }
        finish()
        pipe.close(.now)
    }

    // MARK: The pipe

    package func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        guard !isOver else { return }
        notePhase()
        machine.receive(bytes, now: loop.now)
        proceed()
    }

    package func pipeBecameWritable(_ pipe: any Pipe) { proceed() }

    package func pipeEnded(_ pipe: any Pipe) { pipeIsOver(.linkLost) }

    package func pipeClosed(_ pipe: any Pipe, error: NighError?) { pipeIsOver(error?.cause ?? .linkLost) }

    package func pipeDrained(_ pipe: any Pipe) {}

    private func pipeIsOver(_ cause: NighError.Cause) {
        guard !isOver else { return }
        takeSteps()
        guard !isOver else { return }
        notePhase()
        end(cause)
    }

    private func notePhase() { if machine.phase != .closed { phase = machine.phase } }

    // MARK: The link

    private func proceed() {
        guard !isOver else { return }
        takeSteps()
        guard !isOver else { return }
        write()
        if let timer { loop.cancel(timer) }
        timer = loop.schedule(at: machine.deadline) { [weak self] in self?.timeArrived() }
    }

    private func timeArrived() {
        timer = nil
        guard !isOver else { return }
        _ = machine.timeArrived(now: loop.now)
        proceed()
    }

    private func write() {
        machine.gather(into: &outgoing, budget: max(pipe.writableBytes, 0))
        if !outgoing.isEmpty { pipe.write(&outgoing) }
        outgoing.removeAll()
    }

    private func takeSteps() {
        notePhase()
        while !isOver, let step = machine.next(now: loop.now) {
            switch step {
            case .secured:
                if let peer = machine.provenPeer { tell(.secured(peer, after: elapsed)) }
            case .opened:
                greeted()
            case .pong(let token, let roundTrip) where token < LinkMachine.firstAutomaticPing:
                ponged(roundTrip.duration)
            case .closed(let end): self.end(end.cause)
            default: break
            }
            notePhase()
        }
    }

    private var elapsed: Duration { (loop.now - openedAt).duration }

    private func greeted() {
        guard let hello = machine.peerHello else { return }
        tell(
            .greeted(
                Greeting(
                    peer: hello.peer, name: hello.name, service: hello.service, version: machine.version),
                after: elapsed))
        if let expected = plan.expected, hello.peer != expected {
            machine.close(.wrongPeer)
            phase = .greeting
            return end(.wrongPeer(expected: expected, found: hello.peer))
        }
        ping()
    }

    private func ponged(_ roundTrip: Duration) {
        pongs += 1
        tell(.ponged(roundTrip))
        ping()
    }

    private func ping() {
        guard pongs < plan.pings else {
            machine.close(.cancelled)
            return over(nil)
        }
        machine.ping(token: UInt64(pongs), payload: [], now: loop.now)
    }

    private func end(_ cause: NighError.Cause) {
        let stage: NighError.Stage =
            switch phase {
            case .preface, .securing: .securing
            case .greeting: .greeting
            case .open, .closed: .pinging
            }
        over(NighError(stage, cause, transport: scheme, advice: Self.advice(on: cause, at: stage)))
    }

    /// What helps is known better here than where links break in the midst of a conversation.
    private static func advice(on cause: NighError.Cause, at stage: NighError.Stage) -> String? {
        switch cause {
        case .wrongService(let service): "the program there offers another service: look for \(service)"
        case .noCommonVersion: "update the older of the two programs"
        case .noCommonSecurity(theyEncrypt: false): "have the program there encrypt, or do without here too"
        case .notPaired: "pair the two first"
        case .insecure: "somebody on the way may change what passes, or another kind of program answers there"
        case .protocolViolation, .linkLost, .reset, .timedOut:
            stage == .securing ? "does a program of this kind answer there, and not another?" : nil
        case .silent: "the connection stands, and nothing passes: is that device asleep, or out of range?"
        default: nil
        }
    }

    private func over(_ error: NighError?) {
        write()
        pipe.close(.afterWriting)
        finish()
        tell(.ended(error))
    }

    private func finish() {
        isOver = true
        if let timer { loop.cancel(timer) }
        timer = nil
        own = nil
    }
}
