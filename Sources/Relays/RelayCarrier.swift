import NighCore

/// Carries pipes between peers that are connected to this session and cannot reach each other.
///
/// A peer asks for a pipe by opening a stream that is named after another peer. The carrier opens a stream to that one,
/// and passes bytes on in both directions. It cannot read them: the two peers encrypt everything between them.
///
/// `@unchecked Sendable`: confined to the session's loop, but for its settings, which do not change.
package final class RelayCarrier: @unchecked Sendable {
    /// The peers that this session carries pipes for.
    package let policy: RelayPolicy
    /// The limits on the number of pipes, and on each pipe.
    package let limits: RelayLimits

    /// The most pairs of peers that are remembered because they used up a limit. The oldest one is forgotten first.
    private static let pairLimit = 256

    /// Two peers, in either order.
    private struct Pair: Hashable {
        let first: PeerID
        let second: PeerID

        init(_ a: PeerID, _ b: PeerID) { (first, second) = (min(a, b), max(a, b)) }
    }

    private struct Record {
        let pipe: CarriedPipe
        let timers: [LoopTimer]
    }

    private weak var session: Session?
    private var pipes: [ObjectIdentifier: Record] = [:]
    private var pausedUntil: [Pair: Moment] = [:]
    private var isStopped = false
    private var totals = RelayCounts()

    /// Creates a carrier, which refuses everything before it is attached.
    package init(for policy: RelayPolicy, limits: RelayLimits = RelayLimits()) {
        self.policy = policy
        self.limits = limits
    }

    /// Has the carrier use the conversations of `session`. Call it on the loop, or before the session has started.
    package func attach(to session: Session) { self.session = session }

    /// The counts so far. Loop only.
    package var counts: RelayCounts {
        var counts = totals
        counts.pipes = pipes.count
        return counts
    }

    /// The bytes that were read from one peer and not yet written to the other. Loop only.
    package var heldByteCount: Int { pipes.values.reduce(0) { $0 + $1.pipe.heldByteCount } }

    /// Returns whether it would carry a pipe between two peers now, unless a limit is reached. Loop only.
    package func carries(_ a: PeerID, _ b: PeerID) -> Bool { refusal(of: a, to: b) == nil }

    /// Takes a stream with which a peer asks for a pipe. Loop only.
    package func receive(_ stream: ByteStream) {
        do throws(NighError) {
            guard case .to(let wanted) = try RelayStreamName(stream.name) else {
                throw NighError(.conversing, .invalid("relay stream: it does not lead to a peer"))
            }
            receive(stream, to: wanted)
        } catch {
            refuse(stream, because: "\(error.cause)")
        }
    }

    private func receive(_ stream: ByteStream, to wanted: PeerID) {
        let asking = stream.peer
        if let reason = refusal(of: asking, to: wanted) ?? limitReached(by: asking, to: wanted) {
            return refuse(stream, because: reason)
        }
        session?.openStream(
            named: "\(RelayStreamName.from(asking))", to: wanted, for: .relay
        ) { [self] result in
            switch result {
            case .success(let other): carry(stream, other)
            case .failure(let error): refuse(stream, because: "no pipe to the peer opens: \(error.cause)")
            }
        }
    }

    private func refuse(_ stream: ByteStream, because reason: String) {
        totals.refusals += 1
        stream.cancel(because: reason)
    }

    // MARK: Policy and limits

    /// Returns the reason to refuse a pipe between two peers; nil if it may be carried.
    private func refusal(of asking: PeerID, to wanted: PeerID) -> String? {
        guard let session, !isStopped else { return "the carrier is closing" }
        if wanted == session.id { return "the carrier is the wanted peer itself" }
        if asking == wanted { return "a peer needs no carrier to itself" }
        switch policy {
        case .nobody: return "this peer carries pipes for nobody"
        case .paired where !allows(asking) || !allows(wanted):
            return "this peer carries pipes only between peers that are paired with it"
        case .paired, .everyone: break
        }
        guard let end = session.carriage(of: wanted), !end.isLeaving else {
            return "the wanted peer is not connected to the carrier"
        }
        guard session.accepts(.relay, wanted) else { return "the wanted peer takes no relayed pipes" }
        let isRelayed =
            end.scheme == RelayAddress.scheme || session.carriage(of: asking)?.scheme == RelayAddress.scheme
        return isRelayed ? "a pipe has one carrier, and one of the peers is reached through another" : nil
    }

    /// Whether the policy names the peer. Loop only.
    package func allows(_ peer: PeerID) -> Bool {
        switch policy {
        case .nobody: false
        case .paired: session?.isPaired(with: peer) ?? false
        case .everyone: true
        }
    }

    /// Returns the reason if a limit forbids another pipe; nil if none does. If all places are taken, ends another pipe
    /// where that is fair.
    private func limitReached(by asking: PeerID, to wanted: PeerID) -> String? {
        if count(of: asking) >= limits.pipesPerPeer {
            return "the carrier carries \(limits.pipesPerPeer) pipes for the same peer, its limit"
        }
        if let session, let until = pausedUntil[Pair(asking, wanted)] {
            guard until <= session.loop.now else {
                return "the carrier has passed on as much as it does between these peers for now"
            }
            pausedUntil[Pair(asking, wanted)] = nil
        }
        guard pipes.count >= limits.pipes else { return nil }
        guard let other = dispensablePipe(for: asking) else {
            return "the carrier carries \(limits.pipes) pipes, its limit"
        }
        other.end(because: "the carrier needs the place for another peer")
        return nil
    }

    /// How many pipes a peer has asked for.
    private func count(of asking: PeerID) -> Int { pipes.values.count { $0.pipe.asking == asking } }

    /// Returns the pipe to end in favour of a peer: one of a stranger, if the peer is paired, or one of a peer that has
    /// asked for at least two more. Of that peer's pipes, it is the one with the fewest bytes.
    private func dispensablePipe(for asking: PeerID) -> CarriedPipe? {
        guard let session else { return nil }
        let (own, isPaired) = (count(of: asking), session.isPaired(with: asking))
        let candidates = pipes.values.map(\.pipe).filter { pipe in
            isPaired && !session.isPaired(with: pipe.asking) || count(of: pipe.asking) > own + 1
        }
        func rank(_ pipe: CarriedPipe) -> (Int, Int, Int, PeerID, PeerID) {
            let isStranger = isPaired && !session.isPaired(with: pipe.asking)
            return (isStranger ? 0 : 1, -count(of: pipe.asking), pipe.bytes, pipe.asking, pipe.wanted)
        }
        return candidates.min { rank($0) < rank($1) }
    }

    // MARK: Carrying

    private func carry(_ stream: ByteStream, _ other: ByteStream) {
        guard let loop = session?.loop else { return }
        let pipe = CarriedPipe(
            stream, other, on: loop,
            whenCarried: { [weak self] pipe, count in self?.count(count, of: pipe) },
            whenOver: { [weak self] pipe in self?.forget(pipe) })
        let end = loop.schedule(at: loop.now + Moment.Span(limits.time)) { [weak self, weak pipe] in
            guard let self, let pipe else { return }
            exhaust(pipe, "the carrier's limit of \(Moment.Span(limits.time)) for a pipe is reached")
        }
        let answerTime = Moment.Span(limits.answerTime)
        let answer = loop.schedule(at: loop.now + answerTime) { [weak pipe] in
            guard let pipe, !pipe.isAnswered else { return }
            pipe.end(because: "the wanted peer has not taken the pipe within \(answerTime)")
        }
        pipes[ObjectIdentifier(pipe)] = Record(pipe: pipe, timers: [end, answer])
        totals.pipesEver += 1
        pipe.start()
    }

    private func count(_ bytes: Int, of pipe: CarriedPipe) {
        totals.bytes += bytes
        guard pipe.bytes >= limits.bytes else { return }
        exhaust(pipe, "the carrier's limit of \(limits.bytes) bytes for a pipe is reached")
    }

    /// Ends a pipe that has reached a limit, and leaves its peers alone for a while.
    private func exhaust(_ pipe: CarriedPipe, _ reason: String) {
        if let now = session?.loop.now {
            pausedUntil = pausedUntil.filter { $0.value > now }
            if pausedUntil.count >= Self.pairLimit, let oldest = pausedUntil.min(by: { $0.value < $1.value })
            {
                pausedUntil[oldest.key] = nil
            }
            pausedUntil[Pair(pipe.asking, pipe.wanted)] = now + Moment.Span(limits.pause)
        }
        pipe.end(because: reason)
    }

    private func forget(_ pipe: CarriedPipe) {
        guard let record = pipes.removeValue(forKey: ObjectIdentifier(pipe)) else { return }
        for timer in record.timers { session?.loop.cancel(timer) }
    }

    /// Ends the pipes of a peer whose conversation is now carried by another peer: there is one hop only. Loop only.
    package func endPipes(of peer: PeerID) {
        for record in pipes.values where record.pipe.asking == peer || record.pipe.wanted == peer {
            record.pipe.end(
                because: "the carrier is itself connected to one of the peers through another one now")
        }
    }

    /// Ends all pipes, and carries none any more, because the session is about to close. Loop only.
    package func stop() {
        isStopped = true
        for record in pipes.values { record.pipe.end(because: "the carrier is closing") }
    }
}
