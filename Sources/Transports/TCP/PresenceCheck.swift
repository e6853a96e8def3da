import NighCore

/// Finds out which peers have gone without saying so. It probes the peers that are announced but have no open pipe:
/// from time to time, and at once when something makes one doubtful.
///
/// An announcement outlives a program that was killed for as long as others may remember it: minutes or more. A
/// connection that nobody accepts shows at once that the peer is gone. Loop only; the transport makes the connections.
final class PresenceCheck {
    /// How often a peer is probed.
    static let interval = Moment.Span.seconds(15)
    /// How long a peer has to accept the connection.
    static let probeTimeout = Duration.seconds(4)
    /// How soon a peer is probed again if it did not accept.
    static let retryDelay = Moment.Span.seconds(2)
    /// How many times a peer is probed again that soon. After the second failure it counts as gone. But a conversation
    /// waits for ten seconds, so a peer that is back by then must be seen in time.
    static let retryLimit = 5
    /// How soon after a doubt a peer is probed.
    private static let soon = Moment.Span.milliseconds(100)
    /// The most probes at once.
    private static let limit = 16

    private struct Probe {
        var due: Moment
        var failures = 0
        var isInProgress = false
    }

    private let loop: any EventLoop
    private let hasOpenPipe: (PeerID) -> Bool
    private let probe: (PeerID, @escaping (Bool?) -> Void) -> Void
    private let report: (PeerID, Bool) -> Void
    private var probes: [PeerID: Probe] = [:]
    private var probesInProgress = 0
    private var timer: (timer: LoopTimer, moment: Moment)?

    /// - Parameters:
    ///   - hasOpenPipe: returns whether a pipe to the peer is open, which proves more than a probe.
    ///   - probe: tries to open a connection and reports whether that worked; nil if it could not be tried.
    ///   - report: receives the result: the peer accepted, or twice did not.
    init(
        on loop: any EventLoop, hasOpenPipe: @escaping (PeerID) -> Bool,
        probe: @escaping (PeerID, @escaping (Bool?) -> Void) -> Void, report: @escaping (PeerID, Bool) -> Void
    ) {
        self.loop = loop
        self.hasOpenPipe = hasOpenPipe
        self.probe = probe
        self.report = report
    }

    /// How many peers are probed.
    var count: Int { probes.count }

    /// Adds a peer that is announced. Its first probe comes after `interval`.
    func add(_ peer: PeerID) {
        guard probes[peer] == nil else { return }
        let due = loop.now + Self.interval
        probes[peer] = Probe(due: due)
        schedule(at: due)
    }

    /// Forgets a peer that is no longer announced.
    func remove(_ peer: PeerID) { probes[peer] = nil }

    /// Probes a peer soon, because something suggests that it is gone.
    func probeSoon(_ peer: PeerID) {
        guard let probe = probes[peer], !probe.isInProgress else { return }
        let due = min(probe.due, loop.now + Self.soon)
        probes[peer]?.due = due
        schedule(at: due)
    }

    /// Forgets all peers. Nothing is reported any more.
    func stop() {
        probes = [:]
        if let timer { loop.cancel(timer.timer) }
        timer = nil
    }

    /// Looks for the next probe among all. Where only one has changed, `schedule` is enough.
    private func scheduleNext() {
        guard let next = probes.values.lazy.filter({ !$0.isInProgress }).map(\.due).min() else { return }
        schedule(at: next)
    }

    private func schedule(at next: Moment) {
        guard probesInProgress < Self.limit, timer == nil || next < timer!.moment else { return }
        if let timer { loop.cancel(timer.timer) }
        let timer = loop.schedule(at: next) { [weak self] in
            self?.timer = nil
            self?.probeDuePeers()
        }
        self.timer = (timer, next)
    }

    private func probeDuePeers() {
        let now = loop.now
        // Those that have waited longest come first. Otherwise many silent peers would keep the others from their turn.
        let due = probes.filter { !$0.value.isInProgress && $0.value.due <= now }
            .sorted { ($0.value.due, $0.key) < ($1.value.due, $1.key) }
        for (peer, _) in due {
            guard probesInProgress < Self.limit else { return }
            guard !hasOpenPipe(peer) else {
                probes[peer] = Probe(due: now + Self.interval)
                continue
            }
            probes[peer]?.isInProgress = true
            probesInProgress += 1
            probe(peer) { [weak self] accepted in self?.probeEnded(peer, accepted: accepted) }
        }
        scheduleNext()
    }

    private func probeEnded(_ peer: PeerID, accepted: Bool?) {
        probesInProgress -= 1
        defer { scheduleNext() }
        guard var probe = probes[peer] else { return }
        probe.isInProgress = false
        guard let accepted else {
            probe.due = loop.now + Self.interval
            probes[peer] = probe
            return
        }
        probe.failures = accepted ? 0 : probe.failures + 1
        probe.due =
            loop.now + ((1...Self.retryLimit).contains(probe.failures) ? Self.retryDelay : Self.interval)
        probes[peer] = probe
        if accepted || probe.failures > 1 { report(peer, accepted) }
    }
}
