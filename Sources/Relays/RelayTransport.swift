import NighCore

/// Opens pipes to peers that this session cannot reach, through peers that can.
///
/// A pipe is a stream of the conversation with the carrier. The two ends speak over it as over any other pipe, with
/// encryption from end to end, so the carrier reads nothing. The carrier needs a conversation with each of them on
/// another transport than this: a pipe has one carrier, and no loop can be built.
///
/// `@unchecked Sendable`: confined to the session's loop from `start` on.
package final class RelayTransport: @unchecked Sendable {
    /// How long a carrier that refused is left alone.
    static let refusalPause = Duration.seconds(30)
    /// The first byte from the far end, once its transport has taken the pipe.
    private static let greeting: UInt8 = 1

    /// The least preferred of all transports, because of the detour.
    package let capabilities = {
        var capabilities = TransportCapabilities(
            datagrams: false, typicalMTU: 16 << 10, typicalLatency: .milliseconds(20),
            expectedConnectTime: .milliseconds(300), priority: 10_000)
        capabilities.isForPeople = false
        return capabilities
    }()

    private struct Running {
        let loop: any EventLoop
        let events: any TransportEvents
    }

    private struct Dial {
        let address: RelayAddress
        var timer: LoopTimer?
        var stream: ByteStream?
    }

    private weak var session: Session?
    private var running: Running?
    private var isAdvertising = false
    private var dials: [DialID: Dial] = [:]
    /// The dials of impossible addresses, which fail in a later turn.
    private var refusedDials: Set<DialID> = []
    private var pipes: [ObjectIdentifier: RelayPipe] = [:]

    /// Creates a transport, which reaches nobody before it is attached.
    package init() {}

    /// Has the transport use the conversations of `session`, which must have it among its transports. Call it on the
    /// loop, or before the session has started.
    package func attach(to session: Session) { self.session = session }

    // MARK: Pipes

    /// Takes a stream that a carrier has opened for another peer. Loop only.
    package func receive(_ stream: ByteStream) {
        do throws(NighError) {
            guard case .from(let peer) = try RelayStreamName(stream.name) else {
                throw NighError(.conversing, .invalid("relay stream: it does not come from a peer"))
            }
            receive(stream, from: peer)
        } catch {
            stream.cancel(because: "\(error.cause)")
        }
    }

    private func receive(_ stream: ByteStream, from peer: PeerID) {
        guard let running, isAdvertising else {
            return stream.cancel(because: "the peer takes no pipes now")
        }
        guard peer != session?.id, peer != stream.peer else {
            return stream.cancel(because: "a peer needs no carrier to itself")
        }
        // The session may be in the middle of a call to this transport.
        running.loop.later { [self] in open(stream, from: peer) }
    }

    private func open(_ stream: ByteStream, from peer: PeerID) {
        guard let running, isAdvertising else {
            return stream.cancel(because: "the peer takes no pipes now")
        }
        // The stream is new, so it has room; it fails if the other side has given up meanwhile.
        guard (try? stream.tryWrite(ByteSlice([Self.greeting]))) == 1 else {
            return stream.cancel(because: RelayPipe.closedReason)
        }
        let pipe = adopt(stream, RelayAddress(carrier: stream.peer, peer: peer), on: running.loop)
        running.events.pipeOpened(pipe, dial: nil, by: self)
    }

    private func adopt(
        _ stream: ByteStream, _ address: RelayAddress, early: ByteSlice = ByteSlice([]),
        on loop: any EventLoop
    ) -> RelayPipe {
        let pipe = RelayPipe(stream, at: address, early: early, on: loop) { [weak self] pipe in
            self?.pipes[ObjectIdentifier(pipe)] = nil
        }
        pipes[ObjectIdentifier(pipe)] = pipe
        return pipe
    }

    /// The peer that carries a pipe to another one now; nil if none does. Loop only.
    package func carrier(of peer: PeerID) -> PeerID? {
        // A pipe that was closed may still have something to write when the next one carries the conversation.
        pipes.values.first { $0.isOpen && $0.address.peer == peer }?.address.carrier
    }

    /// Ends the pipes through a carrier, or only those where `isOver` returns true. Loop only.
    package func endPipes(
        through carrier: PeerID, because cause: NighError.Cause,
        where isOver: (RelayAddress) -> Bool = { _ in true }
    ) {
        for pipe in pipes.values where pipe.address.carrier == carrier && isOver(pipe.address) {
            pipe.breakOff(cause)
        }
    }

    // MARK: Dials

    private func begin(_ dial: DialID, to address: RelayAddress, on loop: any EventLoop) {
        guard let session else {
            return fail(dial, .closed, advice: "attach the transport to a session first")
        }
        guard address.peer != session.id, address.carrier != session.id else { return fail(dial, .selfDial) }
        guard let carrier = session.carriage(of: address.carrier) else {
            return fail(
                dial, .notConnected, advice: "connect to the carrier \(label(of: address.carrier)) first")
        }
        guard carrier.scheme != RelayAddress.scheme else {
            return fail(
                dial, .noRoute, advice: "a pipe has one carrier, and this one is reached through another")
        }
        session.openStream(
            named: "\(RelayStreamName.to(address.peer))", to: address.carrier, for: .relay
        ) { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let stream):
                dials[dial]?.stream = stream
                wait(for: dial, stream, on: loop)
            case .failure(let error): fail(dial, error.cause, advice: error.advice)
            }
        }
    }

    private func wait(for dial: DialID, _ stream: ByteStream, on loop: any EventLoop) {
        stream.notify(bytes: true, room: false, on: loop) { [weak self] in
            self?.answered(dial, stream, on: loop)
        }
    }

    private func answered(_ dial: DialID, _ stream: ByteStream, on loop: any EventLoop) {
        guard let address = dials[dial]?.address, let events = running?.events else { return }
        switch stream.poll() {
        case .nothing: wait(for: dial, stream, on: loop)
        case .bytes(let bytes) where bytes.withUnsafeBytes({ $0.first }) == Self.greeting:
            forget(dial)
            let pipe = adopt(stream, address, early: bytes[1..<bytes.count], on: loop)
            events.pipeOpened(pipe, dial: dial, by: self)
        case .bytes: fail(dial, .protocolViolation("the peer's end of a relayed pipe began with other bytes"))
        case .end: fail(dial, .refused, advice: "the peer closed the pipe before it was open")
        case .failed(let error): refused(dial, error, by: address.carrier)
        }
    }

    /// A carrier's refusal is not final: the other peer may connect to it, or somebody else may need it no longer.
    private func refused(_ dial: DialID, _ error: NighError, by carrier: PeerID) {
        guard case .streamCancelled(let reason) = error.cause else {
            return fail(
                dial, .linkLost, advice: "the conversation with the carrier \(label(of: carrier)) has ended")
        }
        fail(
            dial, .declined(reason, retryAfter: Self.refusalPause), retryAfter: Self.refusalPause,
            advice: "ask another peer to pass things on, or come nearer")
    }

    private func label(of peer: PeerID) -> String { session?.label(of: peer) ?? peer.short }

    private func fail(
        _ dial: DialID, _ cause: NighError.Cause, retryAfter: Duration? = nil, advice: String? = nil
    ) {
        guard let events = running?.events, let address = dials[dial]?.address else { return }
        forget(dial)?.cancel(because: RelayPipe.closedReason)
        var error = NighError(
            .connecting, cause, peer: label(of: address.peer), transport: scheme, advice: advice)
        error.retryAfter = retryAfter
        events.dialFailed(dial, error: error, by: self)
    }

    /// Removes a dial, and returns its stream without a callback.
    @discardableResult
    private func forget(_ dial: DialID) -> ByteStream? {
        guard let running, let record = dials.removeValue(forKey: dial) else { return nil }
        if let timer = record.timer { running.loop.cancel(timer) }
        record.stream?.notify(bytes: false, room: false, on: running.loop) {}
        return record.stream
    }
}

extension RelayTransport: Transport {
    package var scheme: String { RelayAddress.scheme }

    package func start(on loop: any EventLoop, events: any TransportEvents) {
        loop.checkIsolated()
        precondition(running == nil, "a transport was started twice")
        running = Running(loop: loop, events: events)
    }

    package func advertise(_ advertisement: Advertisement) { isAdvertising = true }

    package func updateAdvertisement(_ advertisement: Advertisement) {}

    package func stopAdvertising() { isAdvertising = false }

    /// Peers report the peers that they can reach, so there is nothing to look for.
    package func browse(_ service: ServiceName) {}

    package func stopBrowsing() {}

    package func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        guard let running else { return }
        let loop = running.loop
        do throws(NighError) {
            let address = try RelayAddress(address)
            let timer = loop.schedule(at: loop.now + Moment.Span(timeout)) { [weak self] in
                self?.fail(
                    dial, .timedOut, advice: "the carrier or the peer at its other side does not answer")
            }
            dials[dial] = Dial(address: address, timer: timer)
            loop.later { [weak self] in
                if self?.dials[dial] != nil { self?.begin(dial, to: address, on: loop) }
            }
        } catch {
            refusedDials.insert(dial)
            loop.later { [weak self] in
                guard let self, let events = self.running?.events, refusedDials.remove(dial) != nil else {
                    return
                }
                events.dialFailed(dial, error: error, by: self)
            }
        }
    }

    package func cancelDial(_ dial: DialID) {
        refusedDials.remove(dial)
        forget(dial)?.cancel(because: RelayPipe.closedReason)
    }

    package func diagnose() -> [Diagnosis] {
        guard running != nil, session != nil else { return [Diagnosis("pipes", .fail, "not started")] }
        return [Diagnosis("pipes", .pass, "\(pipes.count) open through other peers")]
    }

    package func shutdown() {
        for dial in dials.keys { forget(dial)?.cancel(because: RelayPipe.closedReason) }
        refusedDials = []
        running = nil
        isAdvertising = false
        for pipe in pipes.values { pipe.finishNow() }
        pipes = [:]
    }
}
