import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Sessions that reach each other over two transports: a fast one, which they prefer, and a slow one.
final class TwoWays {
    struct Member {
        let probe: SessionProbe
        let fast: FaultControl
        let slow: FaultControl

        var id: PeerID { probe.id }
        var session: Session { probe.session }
        var machine: SessionMachine { session.driver.machine }
        /// The fast transport as the session has it, for members that see or are seen on only one of the two.
        var fastTransport: any Transport { session.driver.transports[1] }

        /// The transport that carries the conversation with another member.
        func transport(to other: Member) -> String? {
            machine.peers[other.id].flatMap(machine.scheme(inUseWith:))
        }

        /// The transports that were reported to the program, in order and without immediate repetitions.
        func reportedTransports(of other: Member) -> [String] {
            probe.events.reduce(into: []) { transports, event in
                guard let peer = event.changedPeer, peer.id == other.id, let transport = peer.transport
                else { return }
                if transports.last != transport { transports.append(transport) }
            }
        }
    }

    let loop = VirtualEventLoop()
    private let fastHub = MemoryHub()
    private let slowHub = MemoryHub()
    private var count: UInt64 = 0

    func join(
        fastPriority: Int = 100, plan: FaultPlan = .none, slowPlan: FaultPlan = .none, seesFast: Bool = true,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) -> Member {
        count += 1
        let fast = FaultyTransport(MemoryTransport(hub: fastHub, address: "f\(count)"), plan: plan)
        let slow = FaultyTransport(MemoryTransport(hub: slowHub, address: "s\(count)"), plan: slowPlan)
        let relabelled = RelabelledTransport(fast, scheme: "fast", priority: fastPriority)
        relabelled.finds = seesFast
        var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: "m\(count)"))
        configuration.seed = count &* 7919
        adjust(&configuration)
        let session = Session(
            configuration, identity: .ephemeral(seed: count),
            transports: [RelabelledTransport(slow, scheme: "slow", priority: 200), relabelled], loop: loop)
        let probe = SessionProbe(number: Int(count), session: session, faults: fast.control)
        probe.onViolation = { Issue.record("\($0)") }
        probe.start(reading: .handler, accepting: true)
        return Member(probe: probe, fast: fast.control, slow: slow.control)
    }

    func run(_ duration: Duration) throws { try loop.run(for: duration) }

    /// The milliseconds until the condition holds.
    func time(until condition: () -> Bool) throws -> Int {
        for elapsed in 0..<30_000 {
            if condition() { return elapsed }
            try run(.milliseconds(1))
        }
        return .max
    }

    func connect(_ first: Member, _ second: Member) throws {
        try run(.seconds(1))
        first.session.invite(second.id) { _ in }
        try run(.seconds(1))
    }

    /// Breaks the fast transport: cuts what is open on it, and makes dials fail as `dials` says.
    func cutFast(_ members: Member..., dials: FaultControl.BlockedDials = .refuse) {
        for member in members {
            member.fast.block(dials: dials)
            member.fast.cut()
        }
    }

    func restoreFast(_ members: Member...) {
        for member in members { member.fast.unblock() }
    }
}
