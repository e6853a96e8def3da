import NighLoop
import NighCore
import NighTestKit
import Testing

/// Announces another peer's PeerID, and closes every pipe to it at once.
final class Forger: Sendable {
    private let recorder = TransportRecorder { $0.pipe.close(.now) }
    private let loop: UVEventLoop
    private let transport: any Transport

    init(_ peer: PeerID, _ service: ServiceName, over transport: String) throws {
        loop = try UVEventLoop.make()
        self.transport = try TransportRegistry.standard.makeAll(transport)[0]
        loop.execute { [self] in
            self.transport.start(on: loop, events: recorder)
            self.transport.advertise(
                Advertisement(service: service, peer: peer, name: DisplayName(fitting: "Forger")))
        }
    }

    func waitForAnnouncement() {
        let isAnnounced = recorder.wait(within: .seconds(40)) {
            $0.log.contains { $0.hasPrefix("advertised") }
        }
        #expect(isAnnounced)
    }

    /// Waits until at least `count` pipes were opened to it.
    func wait(for count: Int) { #expect(recorder.wait(within: .seconds(40)) { $0.pipes.count >= count }) }

    /// Withdraws the announcement and ends the loop.
    func end() {
        loop.execute { [self] in transport.shutdown() }
        loop.shutdown()
    }
}
