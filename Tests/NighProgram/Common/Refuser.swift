import Nigh
import NighCore
import NighTestKit
import Testing

/// A session called "Refuser" that says no to everybody, in one way or another, and notes when it was called.
///
/// `@unchecked Sendable`: what is noted is guarded by the monitor.
final class Refuser: LinkObserver, @unchecked Sendable {
    private let monitor = Monitor()
    private let loop: UVEventLoop
    private var session: Session!
    private var address: String?
    private var calls: [Moment] = []
    private var invitations = 0

    /// - Parameters:
    ///   - transport: what it is reached over.
    ///   - answer: what it does about each invitation, which are counted from 1.
    init(
        _ service: ServiceName = "nigh", over transport: String = HostInTests.transport,
        answer: @escaping @Sendable (_ number: Int, Invitation, Session) -> Void
    ) throws {
        loop = try UVEventLoop.make()
        var configuration = SessionConfiguration(
            service: service, name: DisplayName(fitting: "Refuser"), role: .server)
        configuration.observer = self
        session = Session(
            configuration, identity: .ephemeral(),
            transports: try TransportRegistry.standard.makeAll(transport), loop: loop)
        session.start(
            onEvent: { [self, session] event in
                switch event {
                case .listening(_, let addresses):
                    monitor.change { address = addresses.first.map { "\($0)" } }
                case .invited(let invitation):
                    let number = monitor.change { () -> Int in
                        invitations += 1
                        return invitations
                    }
                    if let session { answer(number, invitation, session) }
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

    /// When it was called, once that was so often.
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
