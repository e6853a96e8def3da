import NighCore
import NighMemory
import NighRelays
import NighTestKit
import Testing

/// Sessions in virtual time on several hubs. Those that share no hub reach each other only through a third.
final class RelayNetwork {
    /// One session, and what its program was told.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    final class Member: @unchecked Sendable {
        let probe: SessionProbe
        let relays: Relays
        /// The faults on its transports, by the number of the hub.
        let faults: [Int: FaultControl]
        /// The streams that peers have opened.
        var streams: [ByteStream] = []
        /// Through whom it was told that each peer can be reached.
        var carriers: [PeerID: [PeerID]] = [:]

        var id: PeerID { probe.id }
        var session: Session { probe.session }

        init(_ probe: SessionProbe, _ relays: Relays, _ faults: [Int: FaultControl]) {
            self.probe = probe
            self.relays = relays
            self.faults = faults
        }

        /// The transport that carries the conversation with another member.
        func transport(to other: Member) -> String? { session.inspection(of: other.id)?.transport }

        func isConnected(to other: Member) -> Bool { session.connectedPeerIDs.contains(other.id) }

        /// The first four bytes of each message from a member, as a number.
        func numbers(from other: Member) -> [Int] {
            probe.messages.filter { $0.origin.peer == other.id }
                .map { $0.bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) } }
        }

        func send(_ number: Int, size: Int = 4, to other: Member) throws(NighError) {
            let bytes = (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
            try session.trySend(bytes + [UInt8](repeating: 7, count: size - 4), to: other.id)
        }

        /// What the members send each other as bytes of streams.
        var statistics: SessionStatistics {
            nonisolated(unsafe) var result = SessionStatistics()
            session.statistics { result = $0 }
            return result
        }
    }

    let loop = VirtualEventLoop(workLimit: 5_000_000)
    private let hubs = (0..<4).map { _ in MemoryHub() }
    private var count: UInt64 = 0
    private(set) var members: [Member] = []

    /// Starts a session with a transport on each of the hubs; on the hub of number n it is called `way<n>`, or `memory`
    /// on the first. A hub with a smaller number is preferred.
    func join(
        on numbers: [Int], seed: UInt64? = nil, carryingFor policy: RelayPolicy = .everyone,
        limits: RelayLimits = RelayLimits(), plan: FaultPlan = .none, trust: TrustStore = .ephemeral(),
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) -> Member {
        count += 1
        let relays = Relays(carryingFor: policy, limits: limits)
        var faults: [Int: FaultControl] = [:]
        let transports: [any Transport] = numbers.map { number in
            let faulty = FaultyTransport(
                MemoryTransport(hub: hubs[number], address: "m\(count)-\(number)"), plan: plan)
            faults[number] = faulty.control
            return RelabelledTransport(faulty, scheme: "way\(number)", priority: number)
        }
        var configuration = SessionConfiguration(service: "relays", name: DisplayName(fitting: "m\(count)"))
        configuration.seed = count &* 7919
        configuration.layers = [relays]
        configuration.checksTransports = true
        adjust(&configuration)
        let session = Session(
            configuration, identity: .ephemeral(seed: seed ?? count), trust: trust, transports: transports,
            loop: loop)
        let probe = SessionProbe(number: Int(count), session: session, faults: faults[numbers[0]]!)
        probe.onViolation = { Issue.record("\($0)") }
        let member = Member(probe, relays, faults)
        probe.start(reading: .handler, accepting: false)
        probe.reaction = { [unowned member] event, session in
            switch event {
            case .invited(let invitation): invitation.accept()
            case .streamOpened(let stream): member.streams.append(stream)
            default: break
            }
        }
        members.append(member)
        return member
    }

    func run(_ duration: Duration) throws {
        try loop.run(for: duration)
        for member in members { #expect(member.session.inconsistencies == []) }
    }

    /// Connects two members that share a hub.
    func connect(_ first: Member, _ second: Member) throws {
        try run(.seconds(1))
        first.session.invite(second.id) { _ in }
        try run(.seconds(1))
        #expect(first.isConnected(to: second))
    }

    /// Tells a member that a carrier can reach another member.
    func tell(_ member: Member, of other: Member, through carrier: Member) {
        member.carriers[other.id, default: []].append(carrier.id)
        member.session.introduce(
            IntroducedPeer(
                id: other.id, name: other.session.configuration.name, info: .none,
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
        _ = try loop.run(until: { result != nil }, within: timeout + .seconds(1))
        switch result {
        case .failure(let error)?: return error
        case .success?: return nil
        case nil: throw NighError(.connecting, .timedOut)
        }
    }

    /// Two members without a common hub, and one between them, all connected.
    func makeChain(
        seeds: (UInt64?, UInt64?, UInt64?) = (nil, nil, nil), policy: RelayPolicy = .everyone,
        limits: RelayLimits = RelayLimits(),
        plan: FaultPlan = .none, adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (first: Member, middle: Member, last: Member) {
        let first = join(on: [0], seed: seeds.0, plan: plan, adjust: adjust)
        let middle = join(
            on: [0, 1], seed: seeds.1, carryingFor: policy, limits: limits, plan: plan, adjust: adjust)
        let last = join(on: [1], seed: seeds.2, plan: plan, adjust: adjust)
        try connect(first, middle)
        try connect(middle, last)
        tell(first, of: last, through: middle)
        return (first, middle, last)
    }

    /// The same, with a conversation between the two ends.
    func makeRelayedPair(
        seeds: (UInt64?, UInt64?, UInt64?) = (nil, nil, nil), limits: RelayLimits = RelayLimits(),
        plan: FaultPlan = .none, adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (first: Member, middle: Member, last: Member) {
        let chain = try makeChain(seeds: seeds, limits: limits, plan: plan, adjust: adjust)
        #expect(try invite(chain.last, from: chain.first) == nil)
        try run(.milliseconds(100))
        #expect(chain.first.transport(to: chain.last) == "via")
        #expect(chain.last.transport(to: chain.first) == "via")
        return chain
    }

    func close() throws {
        for member in members { member.session.close {} }
        try loop.run(for: .seconds(20))
    }
}
