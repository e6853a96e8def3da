import NighCore

/// Wraps the datagrams of a `FaultyPipe`: loses them, doubles them, delays them and so changes their order, by the same
/// plan, the same rules and within the same rate.
///
/// Loop only.
package final class FaultyDatagramPort: DatagramPort, DatagramHandler {
    /// The counts of the packets sent here.
    package private(set) var outgoing = PacketCounts()
    /// The counts of the packets from the other end.
    package private(set) var incoming = PacketCounts()

    private let inner: any DatagramPort
    private let pipe: FaultyPipe
    private let loop: any EventLoop
    private var handler: (any DatagramHandler)?
    private var random: SeededGenerator
    private let openedAt: Moment
    /// Whether a burst of losses was under way at the last packet; nil before the first.
    private var losesOutgoing, losesIncoming: Bool?

    init(
        _ inner: any DatagramPort, of pipe: FaultyPipe, on loop: any EventLoop, random: SeededGenerator
    ) {
        self.inner = inner
        self.pipe = pipe
        self.loop = loop
        self.random = random
        openedAt = loop.now
    }

    package var place: [UInt8] { inner.place }
    package var longestPacket: Int { inner.longestPacket }

    package func start(handler: any DatagramHandler, prefix: UInt64?) {
        self.handler = handler
        inner.start(handler: self, prefix: prefix)
    }

    package func source(of place: [UInt8]) -> DatagramSource? { inner.source(of: place) }

    package func send(_ packet: UnsafeRawBufferPointer, to source: DatagramSource) -> DatagramOutcome {
        guard let source = realSource(of: source) else {
            outgoing.lost += 1
            return .sent
        }
        guard let delays = delays(.outgoing, packet.count) else { return inner.send(packet, to: source) }
        for delay in delays {
            let copy = ByteSlice(copying: packet)
            loop.schedule(at: loop.now + delay) {
                _ = copy.withUnsafeBytes { self.inner.send($0, to: source) }
            }
        }
        return .sent
    }

    package func close() {
        handler = nil
        inner.close()
    }

    package func datagramPort(
        _ port: any DatagramPort, received packet: UnsafeMutableRawBufferPointer, from source: DatagramSource
    ) {
        let source = source.moved(by: bindings)
        guard let delays = delays(.incoming, packet.count) else {
            handler?.datagramPort(self, received: packet, from: source)
            return
        }
        for delay in delays {
            let copy = Array(UnsafeRawBufferPointer(packet))
            loop.schedule(at: loop.now + delay) {
                var copy = copy
                copy.withUnsafeMutableBytes {
                    self.handler?.datagramPort(self, received: $0, from: source)
                }
            }
        }
    }

    /// Decides the fate of a packet of `count` bytes, and counts it. Returns when its copies pass; nil if nothing
    /// happens to it.
    private func delays(_ direction: FaultPlan.Direction, _ count: Int) -> [Moment.Span]? {
        let delays = drawDelays(direction, count)
        let counts = direction == .outgoing ? \FaultyDatagramPort.outgoing : \.incoming
        switch delays?.count ?? 1 {
        case 0: self[keyPath: counts].lost += 1
        case 1: self[keyPath: counts].passed += 1
        default:
            self[keyPath: counts].passed += 1
            self[keyPath: counts].doubled += 1
        }
        return delays
    }

    private func drawDelays(_ direction: FaultPlan.Direction, _ count: Int) -> [Moment.Span]? {
        let plan = pipe.plan
        let queue = direction == .outgoing ? pipe.outgoing : pipe.incoming
        if queue.dropsPackets { return [] }
        guard plan.direction.covers(direction) else { return nil }
        if drawLoss(plan, direction) { return [] }
        if let limit = plan.packetLimit, count > limit { return [] }
        guard let time = queue.timeOfPacket(count) else { return [] }
        let isDoubled = plan.duplicate?.areHit(using: &random) ?? false
        let isHeldBack = plan.reorder?.areHit(using: &random) ?? false
        let delay = time + Moment.Span(plan.delay)
        guard isDoubled || isHeldBack || delay > .zero || plan.jitter > .zero else { return nil }
        let extra = isHeldBack ? Int64.random(in: Self.heldBack, using: &random) : 0
        let jitter = Moment.Span(plan.jitter).nanoseconds
        return (0..<(isDoubled ? 2 : 1)).map { _ in
            let more = jitter > 0 ? Int64.random(in: 0...jitter, using: &random) : 0
            return delay + Moment.Span(nanoseconds: extra + more)
        }
    }

    /// How often the other end's address has changed.
    private var bindings: UInt64 {
        guard let time = pipe.plan.rebind, time > .zero else { return 0 }
        return UInt64(max((loop.now - openedAt).nanoseconds / Moment.Span(time).nanoseconds, 0))
    }

    /// Returns the source behind an address that the other end has now; nil if it has another one by now.
    private func realSource(of source: DatagramSource) -> DatagramSource? {
        source.movements == bindings ? source.moved(by: 0) : nil
    }

    /// How many nanoseconds more a packet takes that later ones overtake.
    private static let heldBack: ClosedRange<Int64> = 20_000_000...60_000_000

    /// Draws whether a packet is lost. With bursts, a direction loses all packets or none, and changes with odds that
    /// make the bursts and the share of losses those of the plan (Gilbert's model).
    private func drawLoss(_ plan: FaultPlan, _ direction: FaultPlan.Direction) -> Bool {
        guard let loss = plan.loss else { return false }
        guard let burst = plan.lossBurst, loss != .all else { return loss.areHit(using: &random) }
        let share = loss.share
        // Of a larger share than a half, bursts cannot be arbitrarily short: one packet at the least passes between
        // two.
        let length = max(Double(burst), share / (1 - share))
        let state = direction == .outgoing ? \FaultyDatagramPort.losesOutgoing : \.losesIncoming
        let odds =
            switch self[keyPath: state] {
            case nil: share
            case true?: 1 - 1 / length
            case false?: share / (1 - share) / length
            }
        let isLost = Double.random(in: 0..<1, using: &random) < odds
        self[keyPath: state] = isLost
        return isLost
    }
}

/// An address that has changed is written with a number in bits that the ports of Nigh do not use.
extension DatagramSource {
    private static let bits: UInt64 = 40

    fileprivate var movements: UInt64 { fourth >> Self.bits }

    fileprivate func moved(by count: UInt64) -> DatagramSource {
        DatagramSource(first, second, third, fourth & (1 << Self.bits - 1) | count << Self.bits)
    }
}
