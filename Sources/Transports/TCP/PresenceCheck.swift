import NighCore

/// Finds out who is gone without a word: knocks at the peers that are announced but not talked to, from time to time, and at once when
/// something made one doubtful.
///
/// An announcement outlives a program that was killed by the time others may remember it, minutes or more. A connection that
/// nobody opens says so at once. Loop only; knocking itself is the transport's.
///
/// `@unchecked Sendable`: confined to its loop.
final class PresenceCheck: @unchecked Sendable {
    /// How often a peer is knocked at.
    static let interval = Moment.Span.seconds(15)
    /// How long it has to open.
    static let patience = Duration.seconds(4)
    /// How soon it is knocked at again when it did not open.
    static let nextKnock = Moment.Span.seconds(2)
    /// So many times it is knocked at again that soon. After the second time it counts as gone, but who is back within the ten
    /// seconds that a conversation waits must be seen in time for that.
    static let nextKnocks = 5
    /// How soon after the cause of a doubt.
    private static let soon = Moment.Span.milliseconds(100)
    /// So many doors at once at most.
    private static let limit = 16

    private struct Visit {
        var due: Moment
        var failures = 0
        var isUnderWay = false
    }

    private let loop: any EventLoop
    private let isTalkedTo: (PeerID) -> Bool
    private let knock: (PeerID, @escaping (Bool) -> Void) -> Void
    private let tell: (PeerID, Bool) -> Void
    private var visits: [PeerID: Visit] = [:]
    private var underWay = 0
    private var timer: (timer: LoopTimer, moment: Moment)?

    /// - Parameters:
    ///   - isTalkedTo: whether a pipe to the peer is open, which proves more than knocking.
    ///   - knock: tries to open a connection and says whether that worked.
    ///   - tell: hears the outcome: the peer opened, or twice did not.
    init(
        on loop: any EventLoop, isTalkedTo: @escaping (PeerID) -> Bool,
        knock: @escaping (PeerID, @escaping (Bool) -> Void) -> Void, tell: @escaping (PeerID, Bool) -> Void
    ) {
        self.loop = loop
        self.isTalkedTo = isTalkedTo
        self.knock = knock
        self.tell = tell
    }

    /// How many peers are knocked at.
    var count: Int { visits.count }

    /// The peer is announced; its turn comes.
    func add(_ peer: PeerID) {
        guard visits[peer] == nil else { return }
        visits[peer] = Visit(due: loop.now + Self.interval)
        arm()
    }

    /// Forgets those who are announced no more.
    func keep(_ isAnnounced: (PeerID) -> Bool) { visits = visits.filter { isAnnounced($0.key) } }

    /// Something speaks against the peer being there.
    func doubt(_ peer: PeerID) {
        guard let visit = visits[peer], !visit.isUnderWay else { return }
        visits[peer]?.due = min(visit.due, loop.now + Self.soon)
        arm()
    }

    /// Forgets everybody; nothing is told any more.
    func stop() {
        visits = [:]
        if let timer { loop.cancel(timer.timer) }
        timer = nil
    }

    private func arm() {
        guard underWay < Self.limit else { return }
        let next = visits.values.lazy.filter { !$0.isUnderWay }.map(\.due).min()
        guard let next, timer == nil || next < timer!.moment else { return }
        if let timer { loop.cancel(timer.timer) }
        let timer = loop.schedule(at: next) { [weak self] in
            self?.timer = nil
            self?.visitThoseDue()
        }
        self.timer = (timer, next)
    }

    private func visitThoseDue() {
        let now = loop.now
        for peer in visits.filter({ !$0.value.isUnderWay && $0.value.due <= now }).keys.sorted() {
            guard underWay < Self.limit else { return }
            guard !isTalkedTo(peer) else {
                visits[peer] = Visit(due: now + Self.interval)
                continue
            }
            visits[peer]?.isUnderWay = true
            underWay += 1
            knock(peer) { [weak self] opened in self?.ended(peer, opened: opened) }
        }
        arm()
    }

    private func ended(_ peer: PeerID, opened: Bool) {
        underWay -= 1
        defer { arm() }
        guard var visit = visits[peer] else { return }
        visit.isUnderWay = false
        visit.failures = opened ? 0 : visit.failures + 1
        visit.due =
            loop.now + ((1...Self.nextKnocks).contains(visit.failures) ? Self.nextKnock : Self.interval)
        visits[peer] = visit
        if opened || visit.failures > 1 { tell(peer, opened) }
    }
}
