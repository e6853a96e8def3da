import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Sessions on one virtual loop and one hub, with everything that their handlers were told.
final class Neighbourhood {
    let loop = VirtualEventLoop()
    let hub = MemoryHub()
    private var count: UInt64 = 0

    typealias Member = SessionProbe

    /// Starts a new session. By default, it accepts every invitation.
    func join(
        _ name: String, role: SessionRole = .peer, seed: UInt64? = nil, reading: Member.Reading = .handler,
        accepting: Bool = true, trust: TrustStore = .ephemeral(), identity: Identity? = nil,
        plan: FaultPlan = .none, address: TransportAddress? = nil,
        adjust: (inout SessionConfiguration) -> Void = { _ in },
        through wrap: (any Transport) -> any Transport = { $0 }
    ) -> Member {
        count += 1
        var configuration = SessionConfiguration(
            service: "test", name: DisplayName(fitting: name), role: role)
        configuration.seed = count &* 7919
        adjust(&configuration)
        let address = address?.value ?? Member.addressName(name, Int(count))
        let transport = FaultyTransport(MemoryTransport(hub: hub, address: address), plan: plan)
        let session = Session(
            configuration, identity: identity ?? .ephemeral(seed: seed ?? count), trust: trust,
            transports: [wrap(transport)], loop: loop)
        let member = Member(number: Int(count), session: session, faults: transport.control)
        member.onViolation = { Issue.record("\($0)") }
        member.start(reading: reading, accepting: accepting)
        return member
    }

    func run(_ duration: Duration) throws { try loop.run(for: duration) }

    /// Two connected members, of which `first` has invited.
    func pair(
        _ reading: Member.Reading = .handler, plan: FaultPlan = .none,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (first: Member, second: Member) {
        let first = join("first", reading: reading, plan: plan, adjust: adjust)
        let second = join("second", reading: reading, plan: plan, adjust: adjust)
        try run(.seconds(1))
        first.invite(second)
        try run(.seconds(1))
        return (first, second)
    }
}

extension SessionProbe {
    fileprivate static func addressName(_ name: String, _ number: Int) -> String { "\(name)-\(number)" }

    /// The address of a member, which is known even before the member reports it.
    var address: TransportAddress {
        TransportAddress(
            scheme: "memory", value: Self.addressName(session.configuration.name.description, number))
    }

    /// The statistics. Must be read on the loop, where they are reported at once.
    var statistics: SessionStatistics {
        nonisolated(unsafe) var result = SessionStatistics()
        session.statistics { result = $0 }
        return result
    }

    // MARK: Calls whose outcome goes to `outcomes`

    func invite(_ other: SessionProbe) {
        session.invite(other.id) { [weak self] in self?.outcomes.append($0) }
    }

    func pair(with other: SessionProbe) {
        session.pair(other.id) { [weak self] in self?.outcomes.append($0) }
    }

    /// The error of the last of these calls, if it failed.
    var failure: NighError? {
        guard case .failure(let error)? = outcomes.last else { return nil }
        return error
    }

    // MARK: Pairing events

    var codes: [PairingCode] {
        events.compactMap { if case .pairingCode(_, let code) = $0 { code } else { nil } }
    }

    var pairedPeers: [PeerID] {
        events.compactMap { if case .paired(let peer) = $0 { peer.id } else { nil } }
    }

    /// The trust in a peer as a program has it that keeps what it is told of its peers.
    func reportedTrust(of peer: PeerID) -> PeerTrust? {
        events.compactMap(\.changedPeer).last { $0.id == peer }?.trust
    }

    var pairingEnds: [NighError.Cause] {
        events.compactMap { if case .pairingFailed(_, let error) = $0 { error.cause } else { nil } }
    }
}
