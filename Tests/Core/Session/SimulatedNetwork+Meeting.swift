import NighMemory
import NighTestKit
import Testing

@testable import NighCore

extension SimulatedNetwork {
    /// Two sessions that see each other. The second one's program answers invitations as `accepting` says.
    func meet(
        _ first: String = "Puma", _ second: String = "Lynx", plan: FaultPlan? = nil, accepting: Bool = true,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (first: SessionProbe, second: SessionProbe) {
        let pair = (
            join(first, plan: plan, adjust: adjust),
            join(second, plan: plan, accepting: accepting, adjust: adjust)
        )
        try run(for: .seconds(1))
        return pair
    }

    /// Has a session invite another one, and lets a second pass.
    func invite(_ other: SessionProbe, from member: SessionProbe) throws {
        member.invite(other)
        try run(for: .seconds(1))
    }

    /// Has a session invite whoever is at an address, and lets a second pass.
    func invite(at address: TransportAddress, from member: SessionProbe) throws {
        member.invite(at: address)
        try run(for: .seconds(1))
    }

    /// Has a session leave another one, and lets a second pass.
    func disconnect(_ member: SessionProbe, from other: SessionProbe) throws {
        member.session.disconnect(other.id)
        try run(for: .seconds(1))
    }

    /// Has a session ask another one for a pairing, and lets a second pass.
    func pair(_ member: SessionProbe, with other: SessionProbe) throws {
        member.pair(with: other)
        try run(for: .seconds(1))
    }

    /// Has the people at both sessions confirm the digits, and lets a second pass.
    func confirmPairing(_ first: SessionProbe, _ second: SessionProbe) throws {
        first.confirmPairing(with: second)
        second.confirmPairing(with: first)
        try run(for: .seconds(1))
    }

    /// Two wires, of which sessions prefer the fast one.
    static func withTwoWires(priorities: (slow: Int, fast: Int) = (200, 100)) -> SimulatedNetwork {
        SimulatedNetwork(wires: [
            Wire("slow", priority: priorities.slow), Wire("fast", priority: priorities.fast),
        ])
    }

    /// The milliseconds until the condition holds; the greatest number if that takes longer than 30 s.
    func time(until condition: () -> Bool) throws -> Int {
        for elapsed in 0..<30_000 {
            if condition() { return elapsed }
            try loop.run(for: .milliseconds(1))
        }
        return .max
    }
}

extension SessionProbe {
    /// The address of a session, which is known even before the session reports it.
    var address: TransportAddress {
        TransportAddress(scheme: "memory", value: "\(session.configuration.name)-\(number)")
    }

    var machine: SessionMachine {
        _read { yield session.driver.machine }
        _modify { yield &session.driver.machine }
    }

    /// The counts of the conversations with another session.
    func counts(of other: SessionProbe) throws -> PeerStatistics {
        try #require(statistics.peers[other.id])
    }

    /// The link of the conversation with a peer.
    func link(to peer: PeerID) -> Link? { machine.peers[peer]?.link }

    /// The faults on the two wires of `withTwoWires`.
    var slow: FaultControl { wires[0] }
    var fast: FaultControl { wires[1] }

    /// Sends a frame that the session itself would not send.
    func force(_ type: FrameType, _ payload: [UInt8], to peer: PeerID) throws {
        let link = try #require(self.link(to: peer))
        link.machine.control.write(type, payload: payload)
        machine.markDirty(link)
        session.driver.flushSoon()
    }

    /// Sends blocks of 100 kB on the bulk lane to another session until there is no room. Returns how many were taken.
    @discardableResult
    func fill(_ other: SessionProbe) -> Int {
        let block = ByteSlice([UInt8](repeating: 1, count: 100_000))
        var count = 0
        while (try? session.trySend(block, to: other.id, .reliable(.bulk))) != nil { count += 1 }
        return count
    }

    // MARK: Calls whose outcome goes to `outcomes`

    func invite(_ other: SessionProbe, context: [UInt8] = [], timeout: Duration = .seconds(30)) {
        session.invite(other.id, context: context, timeout: timeout) { [weak self] in
            self?.outcomes.append($0)
        }
    }

    func invite(at address: TransportAddress, timeout: Duration = .seconds(30)) {
        session.invite(at: address, timeout: timeout) { [weak self] in self?.outcomes.append($0) }
    }

    func pair(with other: SessionProbe) {
        session.pair(other.id) { [weak self] in self?.outcomes.append($0) }
    }

    func disconnect(_ other: SessionProbe) {
        session.disconnect(other.id) { [weak self] in self?.outcomes.append($0) }
    }

    func confirmPairing(with other: SessionProbe, digitsAgree: Bool = true) {
        session.peer(other.id).confirmPairing(digitsAgree: digitsAgree)
    }

    /// Opens a stream. Call it on the loop, where it is opened at once.
    func openStream(
        _ name: String, for purpose: StreamPurpose = .program, to peer: PeerID
    ) throws -> ByteStream {
        try session.reference.openStream(named: name, to: peer, for: purpose)
    }

    /// Has the session's first transport find an announcement, whoever is at the address.
    func seeAnnouncement(
        of peer: PeerID, called name: String = "Lynx", identity: PeerID? = nil, at address: TransportAddress
    ) {
        let driver = session.driver
        let advertisement = Advertisement(
            service: "test", peer: peer, name: DisplayName(fitting: name), identity: identity)
        driver.routeFound(Sighting(address: address, advertisement: advertisement), by: driver.transports[0])
    }

    // MARK: Events

    /// The streams that peers have opened.
    var streams: [ByteStream] {
        events.compactMap { if case .streamOpened(let stream) = $0 { stream } else { nil } }
    }

    var problems: [NighError] {
        events.compactMap { if case .problem(let error) = $0 { error } else { nil } }
    }

    var codes: [PairingCode] {
        events.compactMap { if case .pairingCode(_, let code) = $0 { code } else { nil } }
    }

    var pairedPeers: [PeerID] {
        events.compactMap { if case .paired(let peer) = $0 { peer.id } else { nil } }
    }

    var pairingEnds: [NighError.Cause] {
        events.compactMap { if case .pairingFailed(_, let error) = $0 { error.cause } else { nil } }
    }

    /// Why conversations have ended.
    var endings: [NighError.Cause] {
        events.compactMap { if case .disconnected(_, let error) = $0 { error.cause } else { nil } }
    }

    /// The trust in a peer as a program has it that keeps what it is told of its peers.
    func reportedTrust(of peer: PeerID) -> PeerTrust? {
        events.compactMap(\.changedPeer).last { $0.id == peer }?.trust
    }

    /// The transports over which a peer was reported to be connected, without immediate repetitions.
    func reportedTransports(of peer: PeerID) -> [String] {
        events.reduce(into: []) { transports, event in
            guard let changed = event.changedPeer, changed.id == peer, let transport = changed.transport
            else { return }
            if transports.last != transport { transports.append(transport) }
        }
    }

    /// The messages that wait to be read, which this reads.
    func readAll() -> [Message] {
        var messages: [Message] = []
        while let message = session.messages.poll() { messages.append(message) }
        return messages
    }
}

/// How a call has ended, or nothing as long as it has not.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
final class Answer<Value: Sendable>: @unchecked Sendable {
    private(set) var result: Result<Value, NighError>?

    /// Called by the session, once.
    var take: @Sendable (Result<Value, NighError>) -> Void { { self.result = $0 } }

    var cause: NighError.Cause? { if case .failure(let error)? = result { error.cause } else { nil } }
    var isSuccess: Bool { if case .success? = result { true } else { false } }
}

/// Records what happens on a session's links.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
final class LinkWitness: SessionLayer, LinkObserver, @unchecked Sendable {
    private(set) var events: [(link: UInt64, event: LinkEvent, moment: Moment)] = []

    func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment) { events.append((link, event, moment)) }

    var sent: [UInt8] {
        events.flatMap { if case .sent(let bytes) = $0.event { bytes.bytes } else { [UInt8]() } }
    }

    var endings: [LinkEnding] {
        events.compactMap { if case .ended(let ending) = $0.event { ending } else { nil } }
    }
}
