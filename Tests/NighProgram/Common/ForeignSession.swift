import NighCore
import NighFiles
import NighLoop
import NighMemory
import NighTestKit
import Testing

/// A session of this process, which is no `nigh`, on the loopback interface: commands call it, or it calls them. A
/// probe records its events and messages.
///
/// `@unchecked Sendable`: the monitor guards what changes.
final class ForeignSession: @unchecked Sendable {
    private(set) var probe: SessionProbe!
    let loop: UVEventLoop
    private let monitor = Monitor()
    private var invited: [Moment] = []

    var session: Session { probe.session }

    /// Starts the session.
    ///
    /// - Parameters:
    ///   - leavesAtOffers: whether peers can offer files. It leaves each peer that does.
    ///   - answer: called on its loop for each invitation, with its number, which counts from 1.
    init(
        _ name: String = "Stranger", service: ServiceName = "nigh", role: SessionRole = .server,
        over transport: String = "tcp:interface=lo,mdns=off", security: SessionSecurity = .encrypted,
        leavesAtOffers: Bool = false,
        answer: @escaping @Sendable (_ number: Int, Invitation) -> Void = { $1.accept() }
    ) throws {
        loop = try UVEventLoop.make()
        var configuration = SessionConfiguration(
            service: service, name: DisplayName(fitting: name), role: role)
        configuration.security = security
        configuration.datagrams = true
        if leavesAtOffers {
            configuration.layers = [IncomingOffers { [weak self] _ in self?.session.disconnectAll() }]
        }
        let transport = FaultyTransport(try TransportRegistry.standard.makeAll(transport)[0])
        probe = SessionProbe(
            number: 1,
            session: Session(configuration, identity: .ephemeral(), transports: [transport], loop: loop),
            faults: transport.control)
        probe.reaction = { [weak self, loop] event, _ in
            guard case .invited(let invitation) = event, let self else { return }
            let number = monitor.change {
                invited.append(loop.now)
                return invited.count
            }
            answer(number, invitation)
        }
        probe.start(reading: .handler, accepting: false)
    }

    /// The address at which it is reached. Waits until it listens.
    var address: String {
        get throws {
            try #require(probe.wait { !$0.listening.isEmpty })
            return "\(probe.listening[0])"
        }
    }

    /// Waits until it was invited at least `count` times; returns the moments of all invitations.
    func invitations(_ count: Int) throws -> [Moment] {
        try #require(monitor.wait(within: .seconds(40)) { invited.count >= count })
        return monitor.read { invited }
    }

    /// Calls a command at its address, for what is wanted of it.
    func call(_ address: String, for purpose: [UInt8]) async throws -> PeerID {
        try await session.invite(at: #require(TransportAddress(address)), context: purpose)
    }

    func end() async {
        await session.close()
        loop.shutdown()
    }
}
