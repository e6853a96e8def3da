import NighMemory
import NighTestKit
import Synchronization

@testable import NighCore

extension SessionTimings {
    /// For sessions on real threads: no bound that a machine too busy to give them a turn for minutes could reach.
    static var patient: SessionTimings {
        var timings = SessionTimings()
        timings.askAfter = .seconds(600)
        timings.loseAfter = .seconds(1_800)
        timings.handshake = .seconds(600)
        timings.dial = .seconds(600)
        timings.grace = .seconds(600)
        timings.goodbye = .seconds(600)
        return timings
    }
}

/// Sessions on one virtual loop and one hub, and everything their handlers were told.
final class Neighbourhood {
    let loop = VirtualEventLoop()
    let hub = MemoryHub()
    private var count: UInt64 = 0

    /// One session with what it was told. Its handlers only write down; tests act from outside, or set `reaction`.
    final class Member: @unchecked Sendable {
        // Confined to the test's thread, which is the virtual loop's.
        let session: Session
        let faults: FaultControl
        let address: TransportAddress
        var events: [SessionEvent] = []
        var messages: [(origin: MessageOrigin, bytes: [UInt8])] = []
        var reaction: ((SessionEvent, Session) -> Void)?
        var messageReaction: (([UInt8], MessageOrigin, Session) -> Void)?
        var outcomes: [Result<PeerID, NighError>] = []

        var id: PeerID { session.id }

        init(session: Session, faults: FaultControl, address: TransportAddress) {
            self.session = session
            self.faults = faults
            self.address = address
        }

        func state(of peer: PeerID) -> PeerState { session.driver.machine.peers[peer]?.state ?? .unavailable }

        var statistics: SessionStatistics { session.driver.machine.statisticsSnapshot() }

        /// The states a peer went through here, in order.
        func moves(of peer: PeerID) -> [PeerState] {
            events.compactMap {
                if case .stateChanged(let changed, _, _) = $0, changed.id == peer {
                    changed.state
                } else {
                    nil
                }
            }
        }

        /// Why the peer came into its latest state.
        func lastCause(of peer: PeerID) -> NighError? {
            for case .stateChanged(let changed, _, let cause) in events.reversed()
            where changed.id == peer && cause != nil {
                return cause
            }
            return nil
        }

        var invitations: [Invitation] {
            events.compactMap { if case .invited(let invitation) = $0 { invitation } else { nil } }
        }

        var texts: [String] { messages.map { String(decoding: $0.bytes, as: UTF8.self) } }
    }

    enum Reading {
        case handler
        case inbox
    }

    /// A new session, started. By default it accepts every invitation.
    func join(
        _ name: String, role: SessionRole = .peer, seed: UInt64? = nil, reading: Reading = .handler,
        accepting: Bool = true, plan: FaultPlan = .none,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) -> Member {
        count += 1
        var configuration = SessionConfiguration(
            service: "test", name: DisplayName(fitting: name), role: role)
        configuration.seed = count &* 7919
        adjust(&configuration)
        let transport = FaultyTransport(MemoryTransport(hub: hub, address: "\(name)-\(count)"), plan: plan)
        let session = Session(
            configuration, identity: .ephemeral(seed: seed ?? count), transports: [transport], loop: loop)
        let member = Member(
            session: session, faults: transport.control,
            address: TransportAddress(scheme: "memory", value: "\(name)-\(count)"))
        if accepting {
            member.reaction = { event, session in
                if case .invited(let invitation) = event { session.accept(invitation) }
            }
        }
        let onMessage: MessageHandler = { [weak member] bytes, origin in
            guard let member else { return }
            let copy = bytes.withUnsafeBytes { Array($0) }
            member.messages.append((origin, copy))
            member.messageReaction?(copy, origin, member.session)
        }
        session.start(
            onEvent: { [weak member] event in
                guard let member else { return }
                member.events.append(event)
                member.reaction?(event, member.session)
            }, onMessage: reading == .handler ? onMessage : nil)
        return member
    }

    func run(_ duration: Duration) throws { try loop.run(for: duration) }

    /// Two members that are connected; `first` invited.
    func pair(
        _ reading: Reading = .handler, plan: FaultPlan = .none,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (first: Member, second: Member) {
        let first = join("first", reading: reading, plan: plan, adjust: adjust)
        let second = join("second", reading: reading, plan: plan, adjust: adjust)
        try run(.seconds(1))
        first.session.invite(second.id) { [weak first] in first?.outcomes.append($0) }
        try run(.seconds(1))
        return (first, second)
    }
}
