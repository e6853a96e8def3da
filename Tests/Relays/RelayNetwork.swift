import NighCore
import NighMemory
import NighTestKit
import Testing

@testable import NighRelays

/// Sessions in virtual time on four wires, `way0` to `way3`. Those that share no wire reach each other only through a
/// third one.
final class RelayNetwork {
    /// One session and its relays.
    final class Member {
        let probe: SessionProbe
        let relays: Relays
        /// The faults on its transports, by the number of the wire.
        let faults: [Int: FaultControl]
        /// Through whom it was told that each peer can be reached.
        fileprivate var carriers: [PeerID: [PeerID]] = [:]

        var id: PeerID { probe.id }
        var session: Session { probe.session }

        fileprivate init(_ probe: SessionProbe, _ relays: Relays, on wires: [Int]) {
            self.probe = probe
            self.relays = relays
            faults = Dictionary(uniqueKeysWithValues: zip(wires, probe.wires))
        }

        var counts: RelayCounts { relays.carrier.counts }

        /// The streams that peers have opened.
        var streams: [ByteStream] {
            probe.events.compactMap { if case .streamOpened(let stream) = $0 { stream } else { nil } }
        }

        /// Whether it would carry a pipe between two peers.
        func carries(_ first: PeerID, _ second: PeerID) -> Bool { relays.carrier.carries(first, second) }

        /// The transport that carries the conversation with another member.
        func transport(to other: Member) -> String? { probe.transport(to: other.probe) }

        func isConnected(to other: Member) -> Bool { probe.isConnected(to: other.probe) }

        /// The first four bytes of each message from a member, as a number.
        func numbers(from other: Member) -> [Int] {
            probe.messages.filter { $0.origin.peer == other.id }
                .map { $0.bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) } }
        }

        func send(_ number: Int, size: Int = 4, to other: Member) throws(NighError) {
            let bytes = (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
            try session.trySend(bytes + [UInt8](repeating: 7, count: size - 4), to: other.id)
        }

        func openStream(
            _ name: String, for purpose: StreamPurpose = .relay, to other: Member
        ) throws -> ByteStream {
            try session.reference.openStream(named: name, to: other.id, for: purpose)
        }
    }

    private let network = SimulatedNetwork(
        wires: (0..<4 as Range<Int>).map { SimulatedNetwork.Wire("way\($0)", priority: $0) },
        on: VirtualEventLoop(workLimit: 5_000_000)
    ) { $0.checksTransports = true }

    var loop: VirtualEventLoop { network.loop }

    /// Starts a session with a transport on each of the wires. The wire with the smallest number is preferred.
    func join(
        on wires: Int..., number: UInt64? = nil, carryingFor policy: RelayPolicy = .everyone,
        limits: RelayLimits = RelayLimits(), plan: FaultPlan = .none, trust: TrustStore = .ephemeral(),
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) -> Member {
        let relays = Relays(carryingFor: policy, limits: limits)
        let probe = network.join(
            on: wires, number: number, trust: trust, plan: plan, layers: [relays], adjust: adjust)
        return Member(probe, relays, on: wires)
    }

    func run(_ duration: Duration) throws { try network.run(for: duration) }

    /// Connects members that share a wire, each with the next one.
    func connect(_ members: Member...) throws {
        for (first, second) in zip(members, members.dropFirst()) {
            try network.connect(first.probe, second.probe)
        }
    }

    /// Tells a member that a carrier can reach another member.
    func tell(_ member: Member, of other: Member, through carrier: Member) {
        member.carriers[other.id, default: []].append(carrier.id)
        member.session.introduce(
            IntroducedPeer(
                id: other.id, name: other.probe.name, info: .none,
                addresses: (member.carriers[other.id] ?? []).map {
                    RelayAddress(carrier: $0, peer: other.id).transportAddress
                }))
    }

    /// Invites a member over what the inviting one was told, and returns the failure if it was not connected.
    @discardableResult
    func invite(_ other: Member, from member: Member, within timeout: Duration = .seconds(30)) throws
        -> NighError?
    {
        nonisolated(unsafe) var result: Result<PeerID, NighError>?  // the loop is virtual: one thread
        member.session.invite(other.id, timeout: timeout) { result = $0 }
        try network.run(until: { result != nil }, within: timeout + .seconds(1))
        switch result {
        case .failure(let error)?: return error
        case .success?: return nil
        case nil: throw NighError(.connecting, .timedOut)
        }
    }

    /// Two members without a common wire, and one between them, all connected.
    func makeChain(
        numbers: [UInt64] = [1, 2, 3], policy: RelayPolicy = .everyone, limits: RelayLimits = RelayLimits(),
        plan: FaultPlan = .none, trust: TrustStore = .ephemeral(),
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (first: Member, middle: Member, last: Member) {
        let first = join(on: 0, number: numbers[0], plan: plan, adjust: adjust)
        let middle = join(
            on: 0, 1, number: numbers[1], carryingFor: policy, limits: limits, plan: plan, trust: trust,
            adjust: adjust)
        let last = join(on: 1, number: numbers[2], plan: plan, adjust: adjust)
        try connect(first, middle, last)
        tell(first, of: last, through: middle)
        return (first, middle, last)
    }

    /// Makes a chain, and a conversation between its two ends.
    func makeRelayedPair(
        numbers: [UInt64] = [1, 2, 3], limits: RelayLimits = RelayLimits(), plan: FaultPlan = .none,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (first: Member, middle: Member, last: Member) {
        let chain = try makeChain(numbers: numbers, limits: limits, plan: plan, adjust: adjust)
        #expect(try invite(chain.last, from: chain.first) == nil)
        try run(.milliseconds(100))
        #expect(chain.first.transport(to: chain.last) == "via")
        #expect(chain.last.transport(to: chain.first) == "via")
        return chain
    }

    func close() throws { try network.close() }
}
