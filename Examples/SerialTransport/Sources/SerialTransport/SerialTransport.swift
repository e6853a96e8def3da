// The transport: what the session calls, and what it is notified of. The other files know the device, the frames and
// the pipe.
import NighTransport

/// Opens one pipe between the two ends of a serial line.
///
/// A wire has no connections. So each end sends its state every half second, and at once when it changes: who it is,
/// and which pipe it has. Everything follows from the last state of the other end: whether somebody is there, who can
/// be dialled, and whether the pipe is still the same at both ends. A lost state is made up for by the next one.
///
/// `@unchecked Sendable`: all state is confined to the loop from `start` on.
final class SerialTransport: Transport, @unchecked Sendable {
    /// How often this end sends its state.
    private static let stateInterval = Moment.Span.milliseconds(500)
    /// How often this end checks what is overdue.
    private static let checkInterval = Moment.Span.milliseconds(250)
    /// After this long without a state, the other end counts as gone. A session alone would notice after 15 s; this way
    /// it has most of the 10 s left for which it keeps a conversation.
    private static let silence = Moment.Span.seconds(3)
    /// The pause before a device that failed is tried again.
    private static let retry = Moment.Span.seconds(2)
    /// How many bytes may wait at the device before a pipe has to wait, so that states are not late.
    private static let portLimit = 4_096

    /// The program at the other end of the wire.
    private struct Other {
        let id: UInt64
        var lastStateAt: Moment
        var advertisement: Advertisement?
        var address: TransportAddress { SerialTransport.address(of: id) }
    }

    private struct Dial {
        let id: DialID
        let address: TransportAddress
        let began: Moment
        let timer: LoopTimer
    }

    let scheme = "serial"
    let capabilities = TransportCapabilities(SerialTransport.costs)
    private let id = UInt64.random(in: 1 ... .max)
    private let makePort: () -> any Port
    private let speed: Int
    private var loop: (any EventLoop)?
    private var events: (any TransportEvents)?
    private var port: (any Port)?
    private var portError: NighError?
    private var reader = FrameReader()
    private var timer: LoopTimer?
    private var stateDue: Moment?
    private var retryDue: Moment?
    private var other: Other?
    private var advertisement: Advertisement?
    private var isListening = false
    private var service: ServiceName?
    private var seen: Advertisement?
    private var seenAddress: TransportAddress?
    /// The dials that wait for the wire, in order. The first one is in progress while `opening` is set.
    private var dials: [Dial] = []
    private var opening: UInt32?
    private var pipe: SerialPipe?
    /// The pipes that the other end has closed and that are not read to the end yet.
    private var ending: [ObjectIdentifier: SerialPipe] = [:]
    private var lastPipe: UInt32 = 0
    private var finished: UInt32 = 0
    private var isAcknowledgementDue = false

    init(speed: Int, makePort: @escaping () -> any Port) {
        self.speed = speed
        self.makePort = makePort
    }

    private static func address(of id: UInt64) -> TransportAddress {
        TransportAddress(scheme: "serial", value: String(id, radix: 16))
    }

    // MARK: The wire

    func start(on loop: any EventLoop, events: any TransportEvents) {
        (self.loop, self.events) = (loop, events)
        later { $0.tick() }
    }

    /// Reports everything in a later turn, and nothing after `shutdown`.
    private func later(_ work: @escaping @Sendable (SerialTransport) -> Void) {
        loop?.execute { [weak self] in if let self, events != nil { work(self) } }
    }

    func shutdown() {
        events = nil
        if let timer { loop?.cancel(timer) }
        for dial in dials { loop?.cancel(dial.timer) }
        dials = []
        let port = port
        self.port = nil  // Nothing is sent after the goodbye.
        for pipe in Array(ending.values) + (pipe.map { [$0] } ?? []) { pipe.finish() }
        port?.close(sending: Frame.state(state(isLeaving: true)).encoded)
    }

    private func tick() {
        guard let loop, events != nil else { return }
        let now = loop.now
        timer = loop.schedule(at: now + Self.checkInterval) { [weak self] in self?.tick() }
        guard port != nil else {
            return openPort()
        }
        if let other, now - other.lastStateAt > Self.silence { otherEndLost() }
        pipe?.resendIfOverdue(now) { Moment.Span(nanoseconds: Int64($0) * 10_000_000_000 / Int64(speed)) }
        if let stateDue, now >= stateDue { sendState() }
        if opening != nil { requestPipe() }
        pump()
    }

    private func openPort() {
        guard let loop, loop.now >= retryDue ?? loop.now else { return }
        retryDue = loop.now + Self.retry
        let new = makePort()
        do throws(NighError) {
            try new.open(
                on: loop, received: { [weak self] in self?.received($0) },
                drained: { [weak self] in self?.pump() }, failed: { [weak self] in self?.portFailed($0) })
        } catch {
            return portFailed(error)
        }
        port = new
        if portError != nil { events?.transportChanged(.up, by: self) }
        portError = nil
        sendState()
        reportListening()
    }

    private func portFailed(_ error: NighError) {
        port = nil
        reader = FrameReader()
        if error != portError { events?.transportChanged(.down(error), by: self) }
        portError = error
        seen = nil  // While the transport is down, no sighting counts.
        otherEndLost()
        reportListening()
        for dial in dials { fail(dial, error.cause, advice: error.advice) }
    }

    private func state(isLeaving: Bool = false) -> Frame.State {
        .init(
            id: id, pipe: pipe?.number ?? opening ?? 0, finished: finished, isLeaving: isLeaving,
            advertisement: advertisement?.bytes ?? [])
    }

    private func sendState() {
        guard let loop, let port else { return }
        stateDue = loop.now + Self.stateInterval
        port.write(Frame.state(state()).encoded)
        // The last acknowledgement may have been lost, and the other end would wait forever.
        if let pipe { port.write(pipe.acknowledgement.encoded) }
    }

    /// Sends what the pipe has, as far as the device takes it.
    func pump() {
        while let port, port.waiting < Self.portLimit, let frame = pipe?.nextFrame() {
            port.write(frame.encoded)
        }
    }

    /// Sends one acknowledgement, in a later turn, for all that arrives and is read on the pipe until then.
    func acknowledgeSoon() {
        guard !isAcknowledgementDue else { return }
        isAcknowledgementDue = true
        later {
            $0.isAcknowledgementDue = false
            if let pipe = $0.pipe { $0.port?.write(pipe.acknowledgement.encoded) }
        }
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        for frame in reader.read(bytes) where events != nil {
            switch frame {
            case .state(let state): handle(state)
            case .open(let number, let id): pipeRequested(number, to: id)
            case .refuse(let number): if number == opening, let dial = dials.first { fail(dial, .refused) }
            case .data(let number, let at, let bytes):
                guard let pipe, pipe.number == number else { break }
                pipe.received(bytes, at: at)
                acknowledgeSoon()
            case .acknowledge(let number, let answer):
                guard let pipe, pipe.number == number else { break }
                pipe.acknowledged(answer)
                pump()
            }
        }
    }

    // MARK: The other end

    private func handle(_ state: Frame.State) {
        guard let loop, state.id != id else { return }  // The wire leads back to this end.
        if state.isLeaving { return other?.id == state.id ? otherEndLost() : () }
        let isNew = other?.id != state.id
        if isNew { otherEndLost() }
        other = Other(
            id: state.id, lastStateAt: loop.now, advertisement: Advertisement(bytes: state.advertisement))
        if isNew { sendState() }
        if let pipe, pipe.number != state.pipe {
            end(pipe, state.finished == pipe.number ? nil : .reset)
        } else if let opening, opening == state.pipe {
            opened(opening)
        }
        reportSighting()
        considerDials()
    }

    private func otherEndLost() {
        other = nil
        if let pipe { end(pipe, .linkLost) }
        opening = nil
        reportSighting()
    }

    // MARK: Advertising and browsing

    func advertise(_ advertisement: Advertisement) {
        self.advertisement = advertisement
        later {
            $0.sendState()
            $0.reportListening()
            if $0.isListening, let new = $0.advertisement { $0.events?.advertised(as: new.name, by: $0) }
        }
    }

    func updateAdvertisement(_ new: Advertisement) { if advertisement != nil { advertise(new) } }

    func stopAdvertising() {
        advertisement = nil
        later {
            $0.sendState()
            $0.reportListening()
        }
    }

    private func reportListening() {
        let listens = advertisement != nil && port != nil
        guard listens != isListening else { return }
        isListening = listens
        events?.listeningChanged(listens ? [Self.address(of: id)] : [], by: self)
    }

    func browse(_ service: ServiceName) {
        (self.service, seen) = (service, nil)
        later { $0.reportSighting() }
    }

    func stopBrowsing() { (service, seen) = (nil, nil) }

    /// Reports what is new about the other end, which is the only possible sighting.
    private func reportSighting() {
        guard let service, let events else { return }
        let now = other?.advertisement.flatMap { $0.service == service ? $0 : nil }
        if seen != nil, let address = seenAddress, now == nil || other?.address != address {
            seen = nil
            events.routeLost(address, by: self)
        }
        guard let now, let address = other?.address, now != seen, self.service == service else { return }
        let report = seen == nil ? events.routeFound : events.routeChanged
        (seen, seenAddress) = (now, address)
        report(Sighting(address: address, advertisement: now), self)
    }

    // MARK: Dialling

    /// Starts a dial. It waits until somebody is there and the wire is free, up to its timeout.
    func dial(_ address: TransportAddress, as id: DialID, timeout: Duration) {
        guard let loop else { return }
        let timer = loop.schedule(at: loop.now + Moment.Span(timeout)) { [weak self] in
            if let dial = self?.dials.first(where: { $0.id == id }) { self?.fail(dial, .timedOut) }
        }
        dials.append(Dial(id: id, address: address, began: loop.now, timer: timer))
        later { $0.considerDials() }
    }

    func cancelDial(_ id: DialID) {
        guard let dial = dials.first(where: { $0.id == id }) else { return }
        remove(dial)
        later { $0.considerDials() }
    }

    private func remove(_ dial: Dial) {
        if dials.first?.id == dial.id, opening != nil {
            opening = nil
            sendState()  // The other end may have opened it meanwhile.
        }
        loop?.cancel(dial.timer)
        dials.removeAll { $0.id == dial.id }
    }

    private func fail(_ dial: Dial, _ cause: NighError.Cause, advice: String? = nil) {
        guard dials.contains(where: { $0.id == dial.id }) else { return }
        remove(dial)
        let error = NighError(
            .connecting, cause, peer: "\(dial.address)", transport: scheme, advice: advice)
        events?.dialFailed(dial.id, error: error, by: self)
        considerDials()
    }

    private func considerDials() {
        while opening == nil, let dial = dials.first {
            if let portError { return fail(dial, portError.cause, advice: portError.advice) }
            if dial.address.scheme != scheme || UInt64(dial.address.value, radix: 16) == nil {
                let advice = "write serial:// and the number that the other end shows"
                return fail(dial, .invalid("address \(dial.address)"), advice: advice)
            }
            // The wire leads only to the other end, so no layer above can find this out.
            if dial.address == Self.address(of: id) { return fail(dial, .selfDial) }
            guard let other else { return }
            if dial.address != other.address {
                // Another program may have started there, and the last state is from the one before. The next state
                // comes soon.
                guard other.lastStateAt - dial.began >= Self.stateInterval else { return }
                return fail(dial, .refused)
            }
            guard pipe == nil else { return }
            opening = UInt32.random(in: 1 ... .max)
            sendState()
            requestPipe()
        }
    }

    private func requestPipe() {
        guard let opening, let other else { return }
        port?.write(Frame.open(pipe: opening, to: other.id).encoded)
    }

    /// Handles a request for a pipe by the other end.
    private func pipeRequested(_ number: UInt32, to id: UInt64) {
        guard let other else { return }
        // If there was such a pipe before, the other end only needs this end's state.
        guard pipe == nil, number != lastPipe else { return sendState() }
        guard id == self.id, isListening else { port?.write(Frame.refuse(pipe: number).encoded); return }
        // Both ends ask at once: the end with the greater ID gets the wire, and the other dial waits for its turn.
        if opening != nil, self.id > other.id { return }
        opening = nil
        begin(number, dial: nil)
        sendState()
    }

    private func opened(_ number: UInt32) {
        guard let dial = dials.first else { return }
        opening = nil
        loop?.cancel(dial.timer)
        dials.removeFirst()
        begin(number, dial: dial.id)
    }

    private func begin(_ number: UInt32, dial: DialID?) {
        guard let loop, let other else { return }
        lastPipe = number
        let new = SerialPipe(number, from: Self.address(of: id), to: other.address, of: self, on: loop)
        pipe = new
        events?.pipeOpened(new, dial: dial, by: self)
    }

    // MARK: The end of pipes

    private func end(_ old: SerialPipe, _ cause: NighError.Cause?) {
        pipe = nil
        ending[ObjectIdentifier(old)] = old
        old.ended(cause.map { NighError(.conversing, $0, transport: scheme, advice: Self.advice(for: $0)) })
        if old.isOver { ending[ObjectIdentifier(old)] = nil }
        later { $0.considerDials() }
    }

    private static func advice(for cause: NighError.Cause) -> String? {
        cause == .linkLost ? "is the cable plugged in at both ends?" : nil
    }

    /// Notes that a pipe has ended at this end. The wire is free for the next one.
    func pipeEnded(_ old: SerialPipe, allArrived: Bool) {
        ending[ObjectIdentifier(old)] = nil
        guard old === pipe else { return }
        pipe = nil
        if allArrived { finished = old.number }
        sendState()
        later { $0.considerDials() }
    }

    func diagnose() -> [Diagnosis] {
        guard port != nil || portError != nil else {
            return [Diagnosis("device", .warn, "not opened yet", isPending: true)]
        }
        if let portError {
            return [Diagnosis("device", .fail, "\(portError.cause)", advice: portError.advice)]
        }
        let there = Diagnosis("other end", .pass, "at \(other.map { "\($0.address)" } ?? "")")
        let nobody = Diagnosis(
            "other end", .warn, "nothing was received for \(Self.silence)",
            advice: "does the same program run there, at the same speed?")
        return [
            Diagnosis("device", .pass, "open, at \(speed) bits/s"), other == nil ? nobody : there,
            Diagnosis("pipe", .pass, pipe == nil ? "none, \(dials.count) wait for one" : "open"),
        ]
    }
}
