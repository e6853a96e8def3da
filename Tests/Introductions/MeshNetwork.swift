import NighCore
import NighIntroductions
import NighMemory
import NighTestKit
import Testing

/// Sessions of one mesh in virtual time. None of them browses, so they find each other by introductions only.
final class MeshNetwork {
    /// One run of a session, and what its introductions reported.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    final class Member: @unchecked Sendable {
        let index: Int
        let probe: SessionProbe
        fileprivate(set) var violations: [NighError] = []
        fileprivate(set) var failures: [NighError] = []

        fileprivate init(_ index: Int, _ probe: SessionProbe) {
            self.index = index
            self.probe = probe
        }

        var id: PeerID { probe.id }
        var session: Session { probe.session }
        var faults: FaultControl { probe.faults }
        /// The invitations that the program was asked about.
        var asked: Int { probe.invitations.count }
        var dials: Int { probe.statistics.dials }

        /// The peers with which there is a conversation.
        var connected: [PeerID] {
            session.inspection.peers.filter { $0.state.hasConversation }.map(\.id)
        }

        /// How often it was told that each peer is connected.
        var meetings: [PeerID: Int] {
            probe.events.reduce(into: [:]) { counts, event in
                if case .connected(let peer) = event { counts[peer.id, default: 0] += 1 }
            }
        }

        /// How often it was told that the conversation with a peer has ended.
        func partings(from peer: PeerID) -> Int { probe.endings(with: peer).count }
    }

    private let network: SimulatedNetwork
    private(set) var members: [Member] = []
    private var runs: UInt64 = 0
    /// Why members refuse introduced peers; nil if they do not.
    var refusal: (@Sendable (PeerID) -> String?) = { _ in nil }
    /// Returns whether transports dial the first address, which a peer at the second one has given.
    var mayDialIntroduced: (TransportAddress, TransportAddress?) -> Bool = { _, _ in true }

    init(adjust: @escaping (inout SessionConfiguration) -> Void = { _ in }) {
        network = SimulatedNetwork(on: VirtualEventLoop(workLimit: 200_000_000)) {
            $0.service = "mesh"
            $0.security = .none
            adjust(&$0)
        }
    }

    /// A mesh whose first member all others have joined, and what time has passed.
    static func joined(
        _ count: Int, after time: Duration, adjust: @escaping (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> MeshNetwork {
        let network = MeshNetwork(adjust: adjust)
        network.start(0)
        for index in 1..<count { network.join(index, at: 0) }
        try network.run(time)
        return network
    }

    var loop: VirtualEventLoop { network.loop }

    static func identity(_ index: Int) -> Identity { .ephemeral(seed: UInt64(index) &+ 77) }
    static func address(_ index: Int) -> TransportAddress {
        TransportAddress(scheme: "memory", value: "m\(index)")
    }

    /// Begins a run of the session with this index, which belongs to the mesh unless told otherwise.
    @discardableResult
    func start(_ index: Int, isMesh: Bool = true) -> Member {
        runs += 1
        let (identity, refusal, mayDialIntroduced) = (Self.identity(index), refusal, mayDialIntroduced)
        var introductions: Introductions!
        let probe = network.join(
            "m\(index)", role: .server, identity: identity, at: "m\(index)",
            adjust: {
                $0.seed = runs &* 7_919
                introductions = Introductions(
                    identity, of: $0, isMesh: isMesh, refusing: { id, _ in refusal(id) }, seed: runs)
                $0.layers = [introductions]
            },
            through: { inner in
                let transport = RelabelledTransport(
                    inner, scheme: "memory", priority: inner.capabilities.priority)
                transport.mayDialIntroduced = mayDialIntroduced
                return transport
            })
        let member = Member(index, probe)
        introductions.report(
            to: Introductions.Observer(
                failed: { [weak member] in member?.failures.append($1) },
                violated: { [weak member] in member?.violations.append($0) }))
        members.append(member)
        return member
    }

    /// Starts a session and invites another one by its address.
    @discardableResult
    func join(_ index: Int, at host: Int) -> Member {
        let member = start(index)
        member.session.invite(at: Self.address(host)) { _ in }
        return member
    }

    func run(_ duration: Duration) throws { try network.run(for: duration) }

    /// Ends a run in good order.
    func close(_ member: Member) {
        members.removeAll { $0 === member }
        member.session.close { withExtendedLifetime(member) {} }
    }

    /// Ends a run without a goodbye, and without its pipes being closed.
    func crash(_ member: Member) {
        members.removeAll { $0 === member }
        network.crash(member.probe)
    }

    /// Waits until every member is connected to every other one, and expects that within `limit`.
    func complete(within limit: Duration, _ location: SourceLocation = #_sourceLocation) throws {
        let end = loop.now + Moment.Span(limit)
        while !missing.isEmpty, loop.now < end { try run(.milliseconds(50)) }
        #expect(missing.isEmpty, sourceLocation: location)
    }

    /// The pairs that are not connected.
    var missing: [String] {
        members.flatMap { member in
            let connected = Set(member.connected)
            return members.filter { $0 !== member && !connected.contains($0.id) }
                .map { "\(member.index) lacks \($0.index)" }
        }
    }

    /// Checks that every pair has one link, that nobody is connected to somebody who is gone, and that nobody broke a
    /// rule.
    func checkLinks(_ location: SourceLocation = #_sourceLocation) {
        for member in members {
            let others = members.filter { $0 !== member }.map(\.id).sorted()
            let inspection = member.session.inspection
            #expect(member.connected == others, "\(member.index)", sourceLocation: location)
            #expect(inspection.links == others.count, "\(member.index)", sourceLocation: location)
            #expect(inspection.peers.allSatisfy { $0.carryingLinks <= 1 }, sourceLocation: location)
            #expect(member.violations.isEmpty, sourceLocation: location)
        }
    }
}
