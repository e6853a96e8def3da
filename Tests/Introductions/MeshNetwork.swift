import NighCore
import NighIntroductions
import NighMemory
import NighTestKit
import Testing

/// Sessions of one mesh in virtual time. None of them browses, so they find each other by introductions only.
final class MeshNetwork {
    /// One run of a session, and what its program was told.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    final class Member: @unchecked Sendable {
        let index: Int
        let session: Session
        let introductions: Introductions
        let faults: FaultControl
        var events: [SessionEvent] = []
        var violations: [NighError] = []
        var failures: [(peer: PeerID, error: NighError)] = []
        /// The invitations that the program was asked about.
        var asked = 0
        var messages: [PeerID: [UInt8]] = [:]
        var isClosed = false

        init(_ index: Int, _ session: Session, _ introductions: Introductions, _ faults: FaultControl) {
            self.index = index
            self.session = session
            self.introductions = introductions
            self.faults = faults
        }

        var id: PeerID { session.id }

        /// The peers with which there is a conversation.
        var connected: [PeerID] {
            session.inspection.peers.filter { $0.state.hasConversation }.map(\.id)
        }

        /// How often it was told that each peer is connected.
        var meetings: [PeerID: Int] {
            events.reduce(into: [:]) { counts, event in
                guard case .connected(let peer) = event else { return }
                counts[peer.id, default: 0] += 1
            }
        }

        /// How often it was told that the conversation with each peer has ended.
        var partings: [PeerID: Int] {
            events.reduce(into: [:]) { counts, event in
                guard case .disconnected(let peer, _) = event else { return }
                counts[peer.id, default: 0] += 1
            }
        }

        var dials: Int {
            nonisolated(unsafe) var dials = 0
            session.statistics { dials = $0.dials }
            return dials
        }

        func fail(_ error: NighError, _ peer: PeerID) { failures.append((peer, error)) }
    }

    let loop = VirtualEventLoop(workLimit: 200_000_000)
    private let hub = MemoryHub()
    private(set) var members: [Member] = []
    private var runs: UInt64 = 0
    private let adjust: (inout SessionConfiguration) -> Void
    private let plan: FaultPlan
    /// Why members refuse introduced peers; nil if they do not.
    var refusal: (@Sendable (PeerID) -> String?) = { _ in nil }
    /// Whether transports dial an address of which a peer tells that they reach at the other one.
    var mayDialTold: (TransportAddress, TransportAddress?) -> Bool = { _, _ in true }

    init(plan: FaultPlan = .none, adjust: @escaping (inout SessionConfiguration) -> Void = { _ in }) {
        self.plan = plan
        self.adjust = adjust
    }

    static func identity(_ index: Int) -> Identity { .ephemeral(seed: UInt64(index) &+ 77) }
    static func address(_ index: Int) -> TransportAddress {
        TransportAddress(scheme: "memory", value: "m\(index)")
    }

    /// Begins a run of the session with this index, which belongs to the mesh unless told otherwise.
    @discardableResult
    func start(_ index: Int, isMesh: Bool = true, at address: String? = nil) -> Member {
        runs += 1
        let identity = Self.identity(index)
        let name = DisplayName(fitting: "m\(index)")
        let memory = RelabelledTransport(
            MemoryTransport(hub: hub, address: address ?? "m\(index)"), scheme: "memory",
            priority: MemoryTransport(hub: hub).capabilities.priority)
        memory.mayDialTold = mayDialTold
        let transport = FaultyTransport(memory, plan: plan)
        let refusal = refusal
        var configuration = SessionConfiguration(service: "mesh", name: name, role: .server)
        let introductions = Introductions(
            identity, of: configuration, isMesh: isMesh, refusing: { id, _ in refusal(id) }, seed: runs)
        configuration.seed = runs &* 7919
        configuration.layers = [introductions]
        configuration.security = .none
        adjust(&configuration)
        let session = Session(configuration, identity: identity, transports: [transport], loop: loop)
        let member = Member(index, session, introductions, transport.control)
        introductions.report(
            to: Introductions.Observer(
                failed: { [weak member] in member?.fail($1, $0) },
                violated: { [weak member] in member?.violations.append($0) }))
        session.start(
            onEvent: { [weak member] event in
                guard let member else { return }
                member.events.append(event)
                if case .closed = event { member.isClosed = true }
                if case .invited(let invitation) = event {
                    member.asked += 1
                    invitation.accept()
                }
            },
            onMessage: { [weak member] bytes, origin in
                let bytes = bytes.withUnsafeBytes { Array($0) }
                member?.messages[origin.peer, default: []] += bytes
            })
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

    func run(_ duration: Duration) throws { try loop.run(for: duration) }

    /// Ends a run in good order.
    func close(_ member: Member) {
        members.removeAll { $0 === member }
        member.session.close { withExtendedLifetime(member) {} }
    }

    /// Ends a run without a goodbye, and without its pipes being closed.
    func crash(_ member: Member) {
        members.removeAll { $0 === member }
        member.session.crash()
    }

    /// Waits until every member is connected to every other one, and expects that within `limit`.
    func complete(within limit: Duration, _ location: SourceLocation = #_sourceLocation) throws {
        let end = loop.now + Moment.Span(limit)
        while !missing.isEmpty, loop.now < end { try run(.milliseconds(50)) }
        #expect(missing.isEmpty, sourceLocation: location)
    }

    /// The pairs that are not connected.
    var missing: [String] {
        let ids = members.map(\.id)
        return members.flatMap { member -> [String] in
            let connected = Set(member.connected)
            return ids.filter { $0 != member.id && !connected.contains($0) }.map { other in
                "\(member.index) lacks \(members.first { $0.id == other }?.index ?? -1)"
            }
        }
    }

    /// Checks that every pair has one link, that nobody is connected to somebody who is gone, and that nobody broke a
    /// rule.
    func checkLinks(_ location: SourceLocation = #_sourceLocation) {
        for member in members {
            let others = members.filter { $0 !== member }.map(\.id).sorted()
            #expect(member.connected == others, "\(member.index)", sourceLocation: location)
            let inspection = member.session.inspection
            #expect(inspection.links == others.count, "\(member.index)", sourceLocation: location)
            #expect(
                inspection.peers.allSatisfy { $0.carryingLinks <= 1 }, "\(member.index)",
                sourceLocation: location)
            #expect(member.violations.isEmpty, sourceLocation: location)
        }
    }

    /// Ends everything, so that nothing is left on the loop.
    func end() throws {
        for member in members { close(member) }
        try run(.seconds(10))
    }
}
