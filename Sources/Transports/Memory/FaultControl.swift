import NighCore

/// Changes the faults of a ``FaultyTransport`` while it runs.
///
/// Use it on the transport's loop once the transport is started; another thread needs the loop's `execute`. A change
/// holds at once for every byte after it. Its effects on others, such as a pipe that breaks, are reported in a later
/// turn.
///
/// Blocks and stalls are standing rules. A rule for all pipes or for an address also holds for pipes that open later.
public final class FaultControl: @unchecked Sendable {
    /// The pipes that a call applies to.
    public enum Target: Hashable, Sendable {
        /// Every pipe.
        case all
        /// The pipes whose other end is at this address.
        case address(TransportAddress)
        /// The pipe with this number; see ``FaultControl/pipes``.
        case pipe(Int)
    }

    /// The outcome of dials to a blocked address.
    public enum BlockedDials: Hashable, Sendable {
        /// Dials get no answer.
        case timeOut
        /// Dials are refused.
        case refuse
    }

    /// A pipe that is open now.
    public struct LivePipe: Hashable, Sendable {
        /// The pipe's number. It counts the pipes of the transport from 1, in the order in which they opened.
        public let number: Int
        /// The address of the other end, if the transport can tell.
        public let remoteAddress: TransportAddress?
        /// Whether the other end dialled.
        public let isInbound: Bool
        /// The moment when the pipe opened.
        public let opened: Moment
        /// How many bytes are held back, outgoing and incoming.
        public let heldBytes: Int
        /// The direction in which bytes vanish now; nil if they vanish in none.
        public let mute: FaultPlan.Direction?
    }

    private struct Rule: Hashable {
        enum Kind: Hashable {
            case block(BlockedDials)
            case stall
        }

        let kind: Kind
        let target: Target
        let direction: FaultPlan.Direction
    }

    /// The faults that happen by themselves to bytes and dials. A new plan holds for open pipes too; its times count
    /// from when a pipe opened. May be set before the start.
    public var plan: FaultPlan {
        didSet {
            if plan.seed != oldValue.seed { random = SeededGenerator(seed: plan.seed) }
            for pipe in livePipes() { pipe.apply(plan) }
        }
    }

    /// The last error that the wrapped transport or one of its pipes reported.
    package internal(set) var lastError: NighError?

    var loop: (any EventLoop)?
    private var random: SeededGenerator
    private var rules: [Rule] = []
    private var pipesByNumber: [Int: FaultyPipe] = [:]
    private var pipeCount = 0

    init(plan: FaultPlan) {
        self.plan = plan
        random = SeededGenerator(seed: plan.seed)
    }

    /// The pipes that are open, the oldest first.
    public var pipes: [LivePipe] {
        livePipes().filter(\.isOpen).map { pipe in
            let mute: FaultPlan.Direction? =
                switch (pipe.outgoing.isMute, pipe.incoming.isMute) {
                case (true, true): .both
                case (true, false): .outgoing
                case (false, true): .incoming
                case (false, false): nil
                }
            return LivePipe(
                number: pipe.number, remoteAddress: pipe.remoteAddress, isInbound: pipe.isInbound,
                opened: pipe.opened, heldBytes: pipe.outgoing.heldBytes + pipe.incoming.heldBytes, mute: mute)
        }
    }

    /// Breaks pipes: this side's handler gets `pipeClosed` with `.linkLost`, and the pipe underneath is closed at once.
    public func cut(_ target: Target = .all) {
        for pipe in livePipes() where matches(pipe, target) { pipe.cut() }
    }

    /// Makes the bytes of open pipes vanish without a report, both ways or one way, and keeps new pipes from opening:
    /// dials time out or are refused, and incoming dials get no answer. Lasts until ``unblock(_:)``.
    ///
    /// A pipe that has lost bytes stays mute in that direction for good, because its stream has a hole. Closing such a
    /// pipe does not reach the other end before the block is lifted.
    public func block(
        _ target: Target = .all, _ direction: FaultPlan.Direction = .both, dials: BlockedDials = .timeOut
    ) {
        add(Rule(kind: .block(dials), target: target, direction: direction))
    }

    /// Ends the block that ``block(_:_:dials:)`` set for `target`; with `.all`, ends every block.
    public func unblock(_ target: Target = .all) {
        rules.removeAll {
            guard case .block = $0.kind else { return false }
            return target == .all || $0.target == target
        }
        applyRules()
    }

    /// Holds bytes back, both ways or one way. Nothing is lost, and writers are slowed. Lasts until ``release(_:)``.
    public func stall(_ target: Target = .all, _ direction: FaultPlan.Direction = .both) {
        add(Rule(kind: .stall, target: target, direction: direction))
    }

    /// Ends the stall that ``stall(_:_:)`` set for `target`; with `.all`, ends every stall.
    public func release(_ target: Target = .all) {
        rules.removeAll { $0.kind == .stall && (target == .all || $0.target == target) }
        applyRules()
    }

    private func add(_ rule: Rule) {
        if !rules.contains(rule) { rules.append(rule) }
        applyRules()
    }

    private func applyRules() {
        loop?.checkIsolated()
        for pipe in livePipes() { applyRules(to: pipe) }
    }

    private func applyRules(to pipe: FaultyPipe) {
        let holding = rules.filter { matches(pipe, $0.target) }
        for queue in [pipe.outgoing, pipe.incoming] {
            let forQueue = holding.filter { $0.direction.covers(queue.direction) }
            queue.setBlocked(forQueue.contains { $0.kind != .stall })
            queue.setStalled(forQueue.contains { $0.kind == .stall })
        }
        pipe.unblock()
    }

    private func matches(_ pipe: FaultyPipe, _ target: Target) -> Bool {
        switch target {
        case .all: true
        case .address(let address): pipe.remoteAddress == address
        case .pipe(let number): pipe.number == number
        }
    }

    private func livePipes() -> [FaultyPipe] { pipesByNumber.keys.sorted().compactMap { pipesByNumber[$0] } }
}

extension FaultControl {
    /// Returns the outcome of a dial to `address` by the rules; nil if no rule blocks it.
    func blockedDials(to address: TransportAddress?) -> BlockedDials? {
        for rule in rules {
            guard case .block(let dials) = rule.kind else { continue }
            if rule.target == .all || (address != nil && rule.target == address.map(Target.address)) {
                return dials
            }
        }
        return nil
    }

    /// Draws whether something with these odds happens now.
    func happens(_ odds: FaultPlan.Odds?) -> Bool {
        odds?.areHit(using: &random) ?? false
    }

    func wrap(_ inner: any Pipe, isInbound: Bool, scheme: String, on loop: any EventLoop) -> FaultyPipe {
        pipeCount += 1
        let pipe = FaultyPipe(
            inner, number: pipeCount, isInbound: isInbound, scheme: scheme, on: loop, random: random.fork())
        pipesByNumber[pipe.number] = pipe
        pipe.didFinish = { [weak self] in self?.pipesByNumber[$0.number] = nil }
        pipe.innerFailed = { [weak self] in self?.lastError = $0 }
        pipe.apply(plan)
        applyRules(to: pipe)
        return pipe
    }

    func abandonAll() {
        for pipe in livePipes() { pipe.abandon() }
        pipesByNumber = [:]
    }
}
