import NighCore
import NighTestKit
import NighMemory

/// A world as its seed decides it before it starts: how rough it is, who its members are, and how they behave.
struct WorldPlan {
    /// How rough the world is, and so what may be demanded of it.
    enum Kind: String, CaseIterable {
        /// There are only delays: no link may ever be lost.
        case calm
        /// Links are cut, but peers can always reconnect: no conversation may end unless somebody leaves.
        case cuts
        /// Every kind of fault happens.
        case storm
    }

    /// How a member reads its messages.
    enum Reading: Equatable {
        /// At once, in the handler.
        case handler
        /// From the inbox: up to `messages` messages every `milliseconds` ms.
        case inbox(messages: Int, milliseconds: Int)
    }

    struct Member {
        var role = SessionRole.peer
        var reading = Reading.handler
        var limits = SessionLimits()
        var timings = SessionTimings()
        var faults = FaultPlan.none
        /// When it joins, in milliseconds after the world's beginning.
        var joinsAt = 0
        /// The probability, in percent, that it invites a peer that becomes visible.
        var invitePercent = 0
        /// The probability, in percent, that it accepts an invitation at once. Otherwise it accepts later, declines,
        /// invites the peer itself, or does nothing.
        var acceptPercent = 100
        /// The pace of its user, in milliseconds: a tenth of this to twice this passes between two actions.
        var pace = 1_000
    }

    let kind: Kind
    private(set) var members: [Member]
    /// How long users and faults are active.
    let active: Duration
    /// How long the world then has to come to rest.
    private(set) var settling: Duration
    /// The pace of the faults, in milliseconds: a quarter of this to twice this passes between two faults.
    let faultPace: Int
    /// The security of its sessions.
    var security = SessionSecurity.none
    /// Whether its sessions reach each other over a second transport, which is worse and seldom breaks.
    var hasSpareTransports = false
    /// When the better transport can be dialled, in milliseconds after the world's beginning. 0 except in some calm
    /// worlds with two transports.
    var betterTransportsOpenAt = 0
    /// The greatest number of impostors at the same time.
    var impostors = 0
    /// Whether limits are so narrow that not all sessions can be connected to, or know, all others.
    let isNarrow: Bool

    /// Creates a plan for a world in which nothing happens by itself.
    init(_ members: [Member]) {
        kind = .storm
        self.members = members
        active = .seconds(3_600)
        settling = .zero
        faultPace = 0
        isNarrow = false
    }

    init(_ generator: inout SeededGenerator, security: SessionSecurity) {
        let roll = generator.number(0...99)
        let kind: Kind = roll < 12 ? .calm : roll < 35 ? .cuts : .storm
        let count = generator.chance(50) ? generator.number(2...4) : generator.number(2...8)
        let isNarrow = kind == .storm && generator.chance(20)
        self.kind = kind
        self.security = security
        self.isNarrow = isNarrow
        members = (0..<count).map { _ in
            Self.member(kind, isNarrow: isNarrow, isEncrypted: security == .encrypted, &generator)
        }
        active = generator.milliseconds(8_000...30_000)
        faultPace = (kind == .storm ? generator.pick([700, 2_000, 5_000]) : nil) ?? 5_000
        // In this time, a link that died unnoticed is lost, its conversation is given up, and an invitation or a
        // handshake times out.
        let longest = members.reduce(Moment.Span.zero) { longest, member in
            let timings = member.timings
            return max(
                longest,
                Moment.Span(timings.loseAfter) + Moment.Span(timings.grace) + Moment.Span(timings.linger)
                    + Moment.Span(timings.handshake) + Moment.Span(timings.handshake))
        }
        settling = (longest + .milliseconds(Int64(World.longestTimeout)) + .seconds(3)).duration
    }

    /// Gives every member a second transport to all others.
    mutating func addSpareTransports(_ generator: inout SeededGenerator) {
        hasSpareTransports = true
        if kind == .calm, generator.chance(70) { betterTransportsOpenAt = generator.number(3_000...8_000) }
        var longest = Moment.Span.zero
        for index in members.indices {
            var timings = members[index].timings
            // Longer than any answer takes: a side that gives up a move which the other side has made loses both links
            // for a moment.
            timings.nextRoute = generator.milliseconds(1_500...3_500)
            timings.betterRoute = generator.milliseconds(300...2_000)
            timings.longestBetterRoute = generator.milliseconds(2_000...6_000)
            members[index].timings = timings
            let longestWait = Moment.Span(timings.longestBetterRoute)
            longest = max(
                longest,
                // A move that began before all faults ended, and the wait after it on the side that waits longer.
                Moment.Span(timings.dial) + Moment.Span(timings.handshake) + longestWait + longestWait
                    + longestWait)
        }
        settling += (longest + .seconds(5)).duration
    }

    /// Decides how many byte streams the members accept, and of which length. Some have none.
    mutating func limitStreams(seed: UInt64) {
        var generator = SeededGenerator(seed: ~seed)
        for index in members.indices {
            members[index].limits.streams = generator.pick([0, 1, 3, 256, 256, 256, 256, 256]) ?? 256
            members[index].limits.streamWindow = generator.pick([1, 2_000, 64 << 10, 256 << 10]) ?? 256 << 10
        }
    }

    /// Adds impostors. In worlds where conversations must last there is one at a time, so that it cannot use up the
    /// time for a resume.
    mutating func addImpostors(_ generator: inout SeededGenerator) {
        impostors = kind == .storm ? generator.number(1...4) : 1
    }

    private static func member(
        _ kind: Kind, isNarrow: Bool, isEncrypted: Bool, _ generator: inout SeededGenerator
    ) -> Member {
        let roles: [SessionRole] = [.peer, .peer, .peer, .server, .client]
        let readings: [Reading] = [
            .handler, .handler, .handler,
            .inbox(messages: generator.number(1...40), milliseconds: generator.number(20...1_500)),
        ]
        return Member(
            role: generator.pick(roles) ?? .peer, reading: generator.pick(readings) ?? .handler,
            limits: limits(isNarrow: isNarrow, &generator), timings: timings(kind, &generator),
            faults: faults(kind, isEncrypted: isEncrypted, &generator),
            joinsAt: generator.chance(70) ? generator.number(0...300) : generator.number(0...6_000),
            invitePercent: generator.pick([10, 50, 90]) ?? 50,
            acceptPercent: generator.pick([30, 80, 95]) ?? 80,
            pace: generator.pick([300, 900, 2_500]) ?? 900)
    }

    private static func limits(isNarrow: Bool, _ generator: inout SeededGenerator) -> SessionLimits {
        var limits = SessionLimits()
        limits.frame = generator.pick([8_192, 16_384, 65_536]) ?? 16_384
        limits.sendBuffer = generator.pick([4 << 10, 64 << 10, 256 << 10, 1 << 20]) ?? 1 << 20
        limits.receiveWindow = generator.pick([8 << 10, 32 << 10, 256 << 10]) ?? 256 << 10
        limits.pendingInvitations = generator.pick([1, 3, 16]) ?? 16
        guard isNarrow else { return limits }
        limits.peers = generator.number(1...3)
        limits.unauthenticatedPipes = generator.number(1...4)
        limits.knownPeers = generator.chance(30) ? generator.number(1...3) : limits.knownPeers
        return limits
    }

    private static func timings(_ kind: Kind, _ generator: inout SeededGenerator) -> SessionTimings {
        var timings = SessionTimings()
        timings.acknowledge = generator.milliseconds(10...150)
        timings.pairing = World.pairingTime
        guard generator.chance(70) else { return timings }
        timings.pingAfter = generator.milliseconds(1_500...5_000)
        timings.loseAfter = timings.pingAfter * 3
        timings.handshake = generator.milliseconds(3_000...10_000)
        timings.dial = generator.milliseconds(3_000...10_000)
        timings.grace = generator.milliseconds((kind == .cuts ? 6_000 : 1_000)...10_000)
        timings.firstRetry = generator.milliseconds(50...400)
        timings.longestRetry = generator.milliseconds(500...2_000)
        timings.linger = generator.milliseconds(1_000...5_000)
        return timings
    }

    /// Returns the faults of a member's line. They are never so bad that a link would seem dead to a patient peer.
    static func faults(
        _ kind: Kind, isEncrypted: Bool, _ generator: inout SeededGenerator
    ) -> FaultPlan {
        var plan = FaultPlan()
        plan.seed = generator.next()
        if generator.chance(60) { plan.delay = generator.milliseconds(0...150) }
        if generator.chance(50) { plan.jitter = generator.milliseconds(0...100) }
        if generator.chance(30) { plan.dialDelay = generator.milliseconds(0...500) }
        if generator.chance(25) { plan.splitLimit = generator.pick([200, 1_500, 5_000]) }
        if generator.chance(20) { plan.bytesPerSecond = generator.pick([128 << 10, 512 << 10, 4 << 20]) }
        guard kind != .calm else { return plan }
        if generator.chance(20) {
            plan.refuse = FaultPlan.Odds(1, outOf: generator.number((kind == .cuts ? 8 : 3)...10))
        }
        if generator.chance(10) { plan.cutAfter = generator.milliseconds(4_000...15_000) }
        // Without encryption, a wrong bit cannot be told from a right one. In worlds where conversations must last,
        // what is sent again on a new link must have a fair chance to arrive.
        if isEncrypted, generator.chance(30) {
            plan.flip = FaultPlan.Odds(
                1, outOf: generator.number(kind == .cuts ? 500_000...2_000_000 : 2_000...100_000))
        }
        guard kind == .storm else { return plan }
        if generator.chance(10) { plan.hang = FaultPlan.Odds(1, outOf: generator.number(3...10)) }
        if generator.chance(15) { plan.cutAfterBytes = generator.number(100...60_000) }
        if generator.chance(7) { plan.vanishAfter = generator.milliseconds(500...10_000) }
        if generator.chance(7) {
            plan.stallAfter = generator.milliseconds(100...5_000)
            plan.stallFor = generator.milliseconds(100...8_000)
        }
        return plan
    }

    /// Returns the plan of the same line after all faults have ended.
    static func healed(_ plan: FaultPlan) -> FaultPlan {
        var healed = FaultPlan()
        healed.seed = plan.seed
        healed.delay = min(plan.delay, .milliseconds(40))
        healed.splitLimit = plan.splitLimit
        return healed
    }
}
