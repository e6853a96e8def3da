import NighLoop
import NighCore
import NighFiles
import NighTestKit
import Testing

/// A session called "Refuser" that refuses every peer in the way that a test chooses, and records when it was called.
///
/// `@unchecked Sendable`: the monitor guards what is recorded.
final class Refuser: SessionLayer, LinkObserver, @unchecked Sendable {
    private let monitor = Monitor()
    private let loop: UVEventLoop
    private var session: Session!
    private var address: String?
    private var calls: [Moment] = []
    private var invitations = 0

    /// - Parameters:
    ///   - transport: the transport over which it is reached.
    ///   - refusesFiles: whether peers can offer files. It leaves whoever does.
    ///   - answer: called for each invitation, with its number, which counts from 1.
    init(
        _ service: ServiceName = "nigh", over transport: String = HostInTests.transport,
        refusesFiles: Bool = false,
        answer: @escaping @Sendable (_ number: Int, Invitation) -> Void
    ) throws {
        loop = try UVEventLoop.make()
        var configuration = SessionConfiguration(
            service: service, name: DisplayName(fitting: "Refuser"), role: .server)
        configuration.layers = [self]
        if refusesFiles {
            configuration.layers.append(IncomingOffers { [weak self] _ in self?.leaveEverybody() })
        }
        session = Session(
            configuration, identity: .ephemeral(),
            transports: try TransportRegistry.standard.makeAll(transport), loop: loop)
        session.start(
            onEvent: { [self] event in
                switch event {
                case .listening(_, let addresses):
                    monitor.change { address = addresses.first.map { "\($0)" } }
                case .invited(let invitation):
                    let number = monitor.change { () -> Int in
                        invitations += 1
                        return invitations
                    }
                    answer(number, invitation)
                default: break
                }
            }, onMessage: { _, _ in })
    }

    func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment) {
        if case .greeted = event { monitor.change { calls.append(moment) } }
    }

    func reached() throws -> String {
        #expect(monitor.wait(within: .seconds(20)) { address != nil })
        return try #require(monitor.read { address })
    }

    /// Waits until it was called at least `count` times; returns the moments of all calls.
    func calls(_ count: Int) throws -> [Moment] {
        try #require(monitor.wait(within: .seconds(40)) { calls.count >= count })
        return monitor.read { calls }
    }

    func leaveEverybody() { session.disconnectAll() }

    var callCount: Int { monitor.read { calls.count } }

    func end() async {
        await session.close()
        loop.shutdown()
    }
}
