import NighCore

/// One direction of a faulty pipe. Bytes go in, are cut, corrupted, delayed, held or lost, and come out in order.
///
/// Loop only.
final class FaultQueue {
    enum Item {
        case bytes(ByteSlice)
        /// The other end finished writing.
        case ended
        /// The other end closed the pipe, or it broke.
        case closed(NighError?)
        /// All that this end wrote before it closed has come out.
        case drained
        /// The plan breaks the pipe here.
        case cut
    }

    let direction: FaultPlan.Direction
    /// Receives the items that come out. Never called from inside `resumeReading` or a change of the rules.
    var emit: (Item) -> Void = { _ in }
    /// Called after held items have come out or were lost.
    var didRelease: () -> Void = {}

    private(set) var heldBytes = 0
    /// Whether bytes have been lost. Then nothing may come out any more, because the stream has a hole.
    private(set) var hasHole = false
    private(set) var isBlocked = false
    /// Whether the reader takes nothing for now.
    var isPaused = false { didSet { if !isPaused { continueLater() } } }

    private let loop: any EventLoop
    private var plan = FaultPlan.none
    private var random: SeededGenerator
    private var items = TimerQueue<Item>()
    private var isStalled = false
    private var isStalledByPlan = false
    private var isTruncated = false
    private var isDone = false
    private var isClear = true
    private var bytesAccepted = 0
    private var bytesUntilFlip = Int.max
    private var rateIsFreeAt = Moment(nanoseconds: .min)
    /// When the last packet that takes its turn at the plan's rate has passed.
    private var packetsPassAt = Moment(nanoseconds: .min)
    private var lastDue = Moment(nanoseconds: .min)
    private var timer: LoopTimer?
    private var wake: () -> Void = {}

    init(_ direction: FaultPlan.Direction, on loop: any EventLoop, random: SeededGenerator) {
        self.direction = direction
        self.loop = loop
        self.random = random
        wake = { [weak self] in
            self?.timer = nil
            self?.release()
        }
    }

    /// Whether nothing comes out, and everything that goes in is lost.
    var isMute: Bool { isBlocked || hasHole }
    /// Whether packets do not pass.
    var dropsPackets: Bool { isMute || isStalled || isStalledByPlan }

    /// Whether bytes may go around the queue, because it would do nothing to them.
    var isTransparent: Bool {
        isClear && items.count == 0 && !isMute && !isStalled && !isStalledByPlan && !isPaused
    }

    /// The number of held bytes from which on the queue counts as full: 1 MiB, or half a second's worth at the plan's
    /// rate (4 to 256 KiB).
    var highWaterMark: Int {
        guard let rate = plan.bytesPerSecond, isAffected else { return 1024 * 1024 }
        return min(max(rate / 2, 4 * 1024), 256 * 1024)
    }

    private var isAffected: Bool { plan.direction.covers(direction) }

    func apply(_ plan: FaultPlan) {
        let flipIsNew = self.plan.flip != plan.flip || self.plan.direction != plan.direction
        self.plan = plan
        if flipIsNew { bytesUntilFlip = plan.flip != nil && isAffected ? drawFlip() : .max }
        isClear =
            !isAffected
            || (plan.delay == .zero && plan.jitter == .zero && plan.bytesPerSecond == nil
                && plan.splitLimit == nil
                && plan.flip == nil && plan.cutAfterBytes == nil)
    }

    func setBlocked(_ blocked: Bool) {
        isBlocked = blocked
        if blocked { loseHeldItems() }
    }

    func setStalled(_ stalled: Bool) {
        guard isStalled != stalled else { return }
        isStalled = stalled
        if !stalled { continueLater() }
    }

    func setStalledByPlan(_ stalled: Bool) {
        guard isStalledByPlan != stalled else { return }
        isStalledByPlan = stalled
        if !stalled { continueLater() }
    }

    /// Loses everything held, and everything from now on.
    func vanish() {
        hasHole = true
        loseHeldItems()
    }

    /// Ends the queue: nothing comes out any more.
    func stop() {
        isDone = true
        items.removeAll()
        heldBytes = 0
        if let timer { loop.cancel(timer) }
        timer = nil
        emit = { _ in }
        didRelease = {}
    }

    func accept(_ bytes: ByteSlice) {
        guard !isMute else {
            hasHole = hasHole || !bytes.isEmpty
            return
        }
        guard isAffected else { return forward(.bytes(bytes)) }
        var rest = bytes
        if let limit = plan.cutAfterBytes {
            guard !isTruncated else { return }
            let left = max(limit - bytesAccepted, 0)
            if rest.count >= left {
                isTruncated = true
                rest = rest[0..<left]
            }
        }
        bytesAccepted += rest.count
        if rest.count >= bytesUntilFlip {
            rest = flipped(rest)
        } else if bytesUntilFlip != .max {
            bytesUntilFlip -= rest.count
        }
        while !rest.isEmpty, !isDone {
            let size = pieceSize(rest.count)
            // A copy, so that no later queue joins the pieces again.
            forward(.bytes(plan.splitLimit == nil ? rest[0..<size] : rest[0..<size].copy()))
            rest = rest[size..<rest.count]
        }
        if isTruncated, !isDone { forward(.cut) }
    }

    /// Takes an item that is not bytes. It comes out behind all bytes that went in before.
    func accept(_ item: Item) {
        guard !isMute, !isDone else { return }
        forward(item)
    }

    /// The longest time that a packet waits for its turn at the plan's rate, as in the queue of a router.
    private static let longestWait = Moment.Span.milliseconds(200)

    /// Returns how long a packet takes at the plan's rate; nil if it is lost because too much waits before it.
    ///
    /// Bytes and packets share the rate. Bytes that would fill the queue count as waiting before it, as with a stream
    /// that is slowed down. So they delay packets, and only packets cause the loss of packets.
    func timeOfPacket(_ count: Int) -> Moment.Span? {
        guard let rate = plan.bytesPerSecond else { return .zero }
        let now = loop.now
        let last = now + Self.longestWait
        let start = max(now, min(rateIsFreeAt, last), packetsPassAt)
        guard start <= last else { return nil }
        let time = Self.time(of: count, at: rate)
        packetsPassAt = start + time
        rateIsFreeAt = max(now, rateIsFreeAt) + time
        return packetsPassAt - now
    }

    /// Returns how long `count` bytes take.
    private static func time(of count: Int, at rate: Int) -> Moment.Span {
        Moment.Span(nanoseconds: Int64(min(Double(count) / Double(rate) * 1e9, 1e18)))
    }

    private func forward(_ item: Item) {
        let now = loop.now
        var due = now
        var size = 0
        if case .bytes(let bytes) = item { size = bytes.count }
        if isAffected {
            if let rate = plan.bytesPerSecond, size > 0 {
                due = max(now, rateIsFreeAt) + Self.time(of: size, at: rate)
                rateIsFreeAt = due
            }
            due = due + Moment.Span(plan.delay)
            if plan.jitter > .zero {
                let longest = Moment.Span(plan.jitter).nanoseconds
                due = due + Moment.Span(nanoseconds: Int64.random(in: 0...longest, using: &random))
            }
        }
        due = max(due, lastDue)
        lastDue = due
        let isHeld = isStalled || isStalledByPlan || (isPaused && size > 0)
        if due <= now, items.count == 0, !isHeld { return emit(item) }
        heldBytes += size
        items.add(item, at: due)
        setTimer()
    }

    private func release() {
        guard !isDone, items.count > 0 else { return }
        var didRelease = false
        while !isStalled, !isStalledByPlan, !isPaused, let item = items.takeDue(at: loop.now) {
            if case .bytes(let bytes) = item { heldBytes -= bytes.count }
            didRelease = true
            emit(item)
        }
        setTimer()
        if didRelease, !isDone { self.didRelease() }
    }

    private func setTimer() {
        guard timer == nil, !isDone, !isStalled, !isStalledByPlan, !isPaused, let next = items.earliest else {
            return
        }
        timer = loop.schedule(at: next, wake)
    }

    private func continueLater() {
        guard items.count > 0, timer == nil, !isDone else { return }
        loop.later(wake)
    }

    private func loseHeldItems() {
        guard items.count > 0 else { return }
        hasHole = true
        items.removeAll()
        heldBytes = 0
        loop.later { [weak self] in self?.didRelease() }
    }

    private func pieceSize(_ count: Int) -> Int {
        var size = count
        // At most a twentieth of a second's worth, so that a slow pipe flows evenly.
        if let rate = plan.bytesPerSecond { size = min(size, max(rate / 20, 1)) }
        guard let limit = plan.splitLimit else { return size }
        return min(size, Int.random(in: 1...limit, using: &random))
    }

    private func flipped(_ slice: ByteSlice) -> ByteSlice {
        var bytes = slice.bytes
        var index = bytesUntilFlip - 1
        while index < bytes.count {
            bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            index += drawFlip()
        }
        bytesUntilFlip = index - bytes.count + 1
        return ByteSlice(bytes)
    }

    private func drawFlip() -> Int {
        guard let flip = plan.flip else { return .max / 2 }
        // Twice the mean, without a product or a sum that could overflow.
        let (mean, rest) = flip.outOf.quotientAndRemainder(dividingBy: flip.hits)
        let twice = 2 * min(mean, .max / 4) + (rest >= flip.hits - rest ? 1 : 0)
        return Int.random(in: 1...max(twice - 1, 1), using: &random)
    }
}
