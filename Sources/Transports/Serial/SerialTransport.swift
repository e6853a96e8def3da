import NighCore

/// Opens one pipe between the two ends of a serial line.
///
/// A line has no connections. So each end sends its state every half second, and at once when it changes: its identity,
/// and which pipe it has. Everything follows from the last state of the other end: whether there is a peer, whether it
/// can be dialled, and whether the pipe is still the same at both ends. The next state makes up for a lost one.
///
/// A pipe is a `SequencedPipe` that sends lost bytes again.
///
/// `@unchecked Sendable`: all state is confined to the loop from `start` on.
/// This file is long because the transport's state is private to it.
package final class SerialTransport: @unchecked Sendable {
    static let schemeName = "serial"
    private static let stateInterval = Moment.Span.milliseconds(500)
    /// How often this end checks for overdue actions.
    private static let checkInterval = Moment.Span.milliseconds(250)
    /// After this long without a state, the other end counts as gone. A session alone would notice only after 15 s.
    /// With this value, it has most of the 10 s left for which it keeps a conversation.
    private static let silence = Moment.Span.seconds(3)
    /// States repeat an advertisement so seldom that it takes one part in this many of the line.
    private static let advertisementShare = 8

    /// The entry for a registry: `serial:path=/dev/ttyUSB0,baud=115200`.
    package static let registryEntry = TransportRegistry.Entry(
        scheme: schemeName, summary: "a cable or radio modem between serial ports of two machines",
        options: [
            "path": "the serial port, such as /dev/ttyUSB0",
            "baud": "bits per second, the same at both ends, 115200 by default",
        ], needsOptions: true
    ) { spec throws(NighError) in
        func invalid(_ what: String, _ advice: String) -> NighError {
            NighError(.configuring, .invalid(what), transport: schemeName, advice: advice)
        }
        guard let path = spec.options["path"], path.hasPrefix("/") else {
            throw invalid("path", "write serial:path=/dev/ttyUSB0")
        }
        guard let baud = Int(spec.options["baud"] ?? "115200"), SerialRate.known.contains(baud) else {
            let known = SerialRate.known.map(String.init).joined(separator: ", ")
            throw invalid("baud", "choose one of \(known)")
        }
        return SerialTransport(baud: baud) { TerminalDevice(path, baud: baud) }
    }

    private struct Running {
        let loop: any EventLoop
        let events: any TransportEvents
        let line: SerialLine
    }

    /// The transport at the other end of the line.
    private struct OtherEnd {
        let id: UInt64
        var lastState: Moment
        var advertisement: Advertisement?
        var address: TransportAddress { SerialTransport.address(of: id) }
    }

    private struct Dial {
        let id: DialID
        let address: TransportAddress
        let began: Moment
        let timer: LoopTimer
    }

    package let capabilities: TransportCapabilities
    private let rate: SerialRate
    private let makeDevice: () -> any SerialDevice
    private let id = UInt64.random(in: 1 ... .max)
    private var running: Running?

    private var openedAt = Moment(nanoseconds: 0)
    private var stateDue = Moment(nanoseconds: 0)
    private var advertisementDue = Moment(nanoseconds: 0)
    private var checkTimer: LoopTimer?
    private var isPacketTurnDue = false
    /// Why the transport was last reported as down.
    private var lastError: NighError?

    private var other: OtherEnd?
    private var advertisement: Advertisement?
    private var isListening = false
    private var browsed: ServiceName?
    private var reported: Sighting?

    /// The dials that wait for the line, in order. The first one is under way while `opening` is set.
    private var dials: [Dial] = []
    private var opening: UInt32?
    private var pipe: SequencedPipe?
    /// Pipes that are over at the other end and not yet at this one: a reader has paused.
    private var endingPipes: [SequencedPipe] = []
    private var lastPipe: UInt32 = 0
    private var lastFinished: UInt32 = 0

    init(baud: Int, makeDevice: @escaping () -> any SerialDevice) {
        rate = SerialRate(baud: baud)
        capabilities = rate.capabilities
        self.makeDevice = makeDevice
    }

    private static func address(of id: UInt64) -> TransportAddress {
        TransportAddress(scheme: schemeName, value: String(id, radix: 16))
    }

    /// Works in a later turn, unless the transport is shut down by then.
    private func later(_ work: @escaping (SerialTransport) -> Void) {
        running?.loop.later { [weak self] in if let self, running != nil { work(self) } }
    }

    private func check() {
        guard let loop = running?.loop else { return }
        checkTimer = loop.schedule(at: loop.now + Self.checkInterval) { [weak self] in self?.check() }
        if let other, loop.now - other.lastState > Self.silence { otherEndLost(.linkLost) }
        if opening != nil { requestPipe() }
        running?.line.open()
        pump()
    }

    // MARK: The line

    private func handle(_ event: SerialLine.Event) {
        guard let events = running?.events else { return }
        switch event {
        case .opened:
            stateChanged()
            openedAt = stateDue
            if lastError != nil { events.transportChanged(.up, by: self) }
            lastError = nil
            reportListening()
        case .failed(let error):
            reported = nil  // While the transport is down, no sighting counts.
            if error != lastError { events.transportChanged(.down(error), by: self) }
            lastError = error
            otherEndLost(.linkLost)
            reportListening()
            considerDials()
        case .received(.state(let state)): handle(state)
        case .received(.open(let number, let id)): pipeRequested(number, to: id)
        case .received(.refuse(let number)):
            if number == opening, let dial = dials.first { fail(dial, .refused) }
        case .received(.packet(let number, let packet)):
            if let pipe, pipe.number == number { pipe.receive(ByteSlice(packet)) }
        case .isFree: pump()
        }
    }

    private func stateChanged() {
        guard let loop = running?.loop else { return }
        stateDue = loop.now
        pump()
    }

    /// Sends everything due: a state, and packets as far as the line takes them.
    private func pump() {
        while let running, running.line.isFree {
            if running.loop.now >= stateDue {
                writeState(at: running.loop.now)
            } else {
                guard let pipe, running.line.takesPacket(), let packet = pipe.nextPacket() else { return }
                running.line.write(.packet(pipe: UInt32(pipe.number), packet))
            }
        }
    }

    private func writeState(at now: Moment) {
        stateDue = now + Self.stateInterval
        var state = state
        if now >= advertisementDue {
            let bytes = advertisement?.bytes ?? []
            state.advertisement = bytes
            advertisementDue = now + rate.time(of: Self.advertisementShare * bytes.count)
        }
        running?.line.write(.state(state))
    }

    private var state: SerialFrame.State {
        SerialFrame.State(
            id: id, pipe: pipe.map { UInt32($0.number) } ?? opening ?? 0, finished: lastFinished)
    }

    // MARK: The other end

    private func handle(_ state: SerialFrame.State) {
        // A state with the ID of this end means that the line leads back to it.
        guard let loop = running?.loop, state.id != id else { return }
        if other?.id != state.id {
            guard !state.isLeaving else { return }
            otherEndLost(.linkLost)
            other = OtherEnd(id: state.id, lastState: loop.now)
            advertisementDue = loop.now
            stateChanged()
        }
        other?.lastState = loop.now
        if let bytes = state.advertisement { other?.advertisement = Advertisement(bytes: bytes) }
        if let pipe, UInt32(pipe.number) != state.pipe {
            end(pipe, state.finished == UInt32(pipe.number) ? nil : .reset)
        } else if let opening, opening == state.pipe {
            pipeAccepted(opening)
        }
        if state.isLeaving { return otherEndLost(.reset) }
        reportSighting()
        considerDials()
    }

    private func otherEndLost(_ cause: NighError.Cause) {
        other = nil
        if let pipe { end(pipe, cause) }
        opening = nil
        reportSighting()
    }

    private func advertisementChanged() {
        guard let loop = running?.loop else { return }
        advertisementDue = loop.now
        stateChanged()
        reportListening()
    }

    private func reportListening() {
        let listens = advertisement != nil && running?.line.isOpen == true
        guard listens != isListening else { return }
        isListening = listens
        running?.events.listeningChanged(listens ? [Self.address(of: id)] : [], by: self)
    }

    /// Reports news of the other end, which is the only possible sighting.
    private func reportSighting() {
        guard let service = browsed else { return }
        var now: Sighting?
        if let other, let advertisement = other.advertisement, advertisement.service == service {
            now = Sighting(address: other.address, advertisement: advertisement)
        }
        guard now != reported else { return }
        let last = reported
        if let last, last.address != now?.address {
            reported = nil
            running?.events.routeLost(last.address, by: self)
            return reportSighting()
        }
        reported = now
        guard let now else { return }
        if last == nil {
            running?.events.routeFound(now, by: self)
        } else {
            running?.events.routeChanged(now, by: self)
        }
    }

    // MARK: Dials

    /// Begins the first dial, once somebody is there and the line has no pipe.
    private func considerDials() {
        while opening == nil, let dial = dials.first {
            if let lastError {
                fail(dial, lastError.cause, advice: lastError.advice)
                continue
            }
            guard dial.address.scheme == Self.schemeName, let id = UInt64(dial.address.value, radix: 16)
            else {
                let advice = "write serial:// and the number that the other end shows"
                fail(dial, .invalid("address \(dial.address)"), advice: advice)
                continue
            }
            // The line leads only to the other end, so no layer above can find this out.
            if id == self.id {
                fail(dial, .selfDial)
                continue
            }
            guard let other else { return }
            if id != other.id {
                // Another program may have started there, and the last state be from the one before.
                guard other.lastState - dial.began >= Self.stateInterval else { return }
                fail(dial, .refused)
                continue
            }
            guard pipe == nil else { return }
            opening = UInt32.random(in: 1 ... .max)
            stateChanged()
            requestPipe()
        }
    }

    private func requestPipe() {
        guard let opening, let other, let line = running?.line, line.isFree else { return }
        line.write(.open(pipe: opening, to: other.id))
    }

    private func remove(_ dial: Dial) {
        let wasUnderWay = opening != nil && dials.first?.id == dial.id
        running?.loop.cancel(dial.timer)
        dials.removeAll { $0.id == dial.id }
        guard wasUnderWay else { return }
        opening = nil
        stateChanged()  // The other end may have opened it meanwhile.
    }

    private func fail(_ dial: Dial, _ cause: NighError.Cause, advice: String? = nil) {
        remove(dial)
        let error = NighError(
            .connecting, cause, peer: "\(dial.address)", transport: scheme, advice: advice)
        running?.events.dialFailed(dial.id, error: error, by: self)
        later { $0.considerDials() }
    }

    // MARK: Pipes

    /// Answers the other end's request for a pipe.
    private func pipeRequested(_ number: UInt32, to id: UInt64) {
        guard let other else { return }
        // If there was such a pipe before, the other end only needs this end's state.
        guard pipe == nil, number != lastPipe else { return stateChanged() }
        guard id == self.id, isListening else {
            running?.line.write(.refuse(pipe: number))
            return
        }
        // Both ends ask at once: the end with the greater ID gets the line, and the other dial waits for its turn.
        if opening != nil, self.id > other.id { return }
        opening = nil
        begin(number, dial: nil)
    }

    private func pipeAccepted(_ number: UInt32) {
        guard let dial = dials.first else { return }
        opening = nil
        running?.loop.cancel(dial.timer)
        dials.removeFirst()
        begin(number, dial: dial.id)
    }

    private func begin(_ number: UInt32, dial: DialID?) {
        guard let running, let other else { return }
        lastPipe = number
        let stream = SequencedStream(
            rate.sizes, theirWindow: SerialRate.firstWindow, patience: rate.patience, at: running.loop.now)
        let new = SequencedPipe(
            stream, number: UInt64(number), from: Self.address(of: id), to: other.address, scheme: scheme,
            on: running.loop, channel: self)
        pipe = new
        if dial == nil { stateChanged() }
        running.events.pipeOpened(new, dial: dial, by: self)
    }

    /// Ends the pipe at this end, because it is over at the other one. Without a cause it is over in good order.
    private func end(_ old: SequencedPipe, _ cause: NighError.Cause?) {
        pipe = nil
        endingPipes.append(old)
        if let cause {
            let advice = cause == .linkLost ? "is the cable plugged in at both ends?" : nil
            old.fail(with: NighError(.conversing, cause, transport: scheme, advice: advice))
        } else {
            // If it is closed here, too, nobody is left to read its remaining bytes.
            old.confirmSent()
        }
        later { $0.considerDials() }
    }
}

extension SerialTransport: PacketChannel {
    package func hasPackets(_ pipe: SequencedPipe) {
        guard pipe === self.pipe else { return later { _ in pipe.confirmSent() } }
        // In a later turn, so that a packet has all that is written in this one.
        guard !isPacketTurnDue else { return }
        isPacketTurnDue = true
        later {
            $0.isPacketTurnDue = false
            $0.pump()
        }
    }

    package func hasSentAll(_ pipe: SequencedPipe) { later { _ in pipe.confirmSent() } }

    package func isOver(_ old: SequencedPipe, abort: [UInt8]?) {
        endingPipes.removeAll { $0 === old }
        guard old === pipe else { return }
        pipe = nil
        // The state ends the pipe at the other end, also if it was aborted.
        if abort == nil { lastFinished = UInt32(old.number) }
        stateChanged()
        later { $0.considerDials() }
    }
}

extension SerialTransport: Transport {
    package var scheme: String { Self.schemeName }

    package func start(on loop: any EventLoop, events: any TransportEvents) {
        loop.checkIsolated()
        precondition(running == nil, "a transport was started twice")
        let line = SerialLine(rate, on: loop, makeDevice: makeDevice) { [weak self] in self?.handle($0) }
        running = Running(loop: loop, events: events, line: line)
        later { $0.check() }
    }

    package func advertise(_ advertisement: Advertisement) {
        self.advertisement = advertisement
        later {
            $0.advertisementChanged()
            if $0.isListening, let new = $0.advertisement {
                $0.running?.events.advertised(as: new.name, by: $0)
            }
        }
    }

    package func updateAdvertisement(_ new: Advertisement) { if advertisement != nil { advertise(new) } }

    package func stopAdvertising() {
        advertisement = nil
        later { $0.advertisementChanged() }
    }

    package func browse(_ service: ServiceName) {
        (browsed, reported) = (service, nil)
        later { $0.reportSighting() }
    }

    package func stopBrowsing() { (browsed, reported) = (nil, nil) }

    package func dial(_ address: TransportAddress, as id: DialID, timeout: Duration) {
        guard let loop = running?.loop else { return }
        let timer = loop.schedule(at: loop.now + Moment.Span(timeout)) { [weak self] in
            if let dial = self?.dials.first(where: { $0.id == id }) { self?.fail(dial, .timedOut) }
        }
        dials.append(Dial(id: id, address: address, began: loop.now, timer: timer))
        later { $0.considerDials() }
    }

    package func cancelDial(_ id: DialID) {
        guard let dial = dials.first(where: { $0.id == id }) else { return }
        remove(dial)
        later { $0.considerDials() }
    }

    package func diagnose() -> [Diagnosis] {
        if let lastError {
            return [Diagnosis("device", .fail, "\(lastError.cause)", advice: lastError.advice)]
        }
        guard let running, running.line.isOpen else {
            return [Diagnosis("device", .warn, "not opened yet", isPending: true)]
        }
        let otherEnd =
            other.map { Diagnosis("other end", .pass, "at \($0.address)") }
            ?? Diagnosis(
                "other end", .warn, "nothing that makes sense was received for \(Self.silence)",
                advice: "does a program with this transport run there, with the same baud?",
                isPending: running.loop.now - openedAt < Self.silence)
        return [Diagnosis("device", .pass, "open, at \(rate.baud) bits per second"), otherEnd]
    }

    package func shutdown() {
        guard let running else { return }
        self.running = nil
        for timer in dials.map(\.timer) + [checkTimer].compactMap(\.self) { running.loop.cancel(timer) }
        dials = []
        for old in endingPipes + [pipe].compactMap(\.self) { old.end(abort: SequencedStream.abort) }
        var last = state
        last.isLeaving = true
        running.line.close(sending: .state(last))
    }
}
