import NighLoop
import NighCore
import NighTestKit
import Testing

/// Announces another peer's PeerID, and closes every pipe to it at once.
///
/// `@unchecked Sendable`: used on the loop; the monitor guards what tests read.
final class Forger: TransportEvents, @unchecked Sendable {
    private let monitor = Monitor()
    private let loop: UVEventLoop
    private let transport: any Transport
    private var visits = 0
    private var isAnnounced = false

    init(_ peer: PeerID, _ service: ServiceName, over transport: String) throws {
        loop = try UVEventLoop.make()
        self.transport = try TransportRegistry.standard.makeAll(transport)[0]
        loop.execute { [self] in
            self.transport.start(on: loop, events: self)
            self.transport.advertise(
                Advertisement(service: service, peer: peer, name: DisplayName(fitting: "Forger")))
        }
    }

    func waitForAnnouncement() { #expect(monitor.wait(within: .seconds(40)) { isAnnounced }) }

    /// Waits until at least `count` pipes were opened to it.
    func wait(for count: Int) { #expect(monitor.wait(within: .seconds(40)) { visits >= count }) }

    /// Withdraws the announcement and ends the loop.
    func end() {
        loop.execute { [self] in transport.shutdown() }
        loop.shutdown()
    }

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        pipe.close(.now)
        monitor.change { visits += 1 }
    }

    func advertised(as name: DisplayName, by transport: any Transport) {
        monitor.change { isAnnounced = true }
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) {}
    func routeChanged(_ sighting: Sighting, by transport: any Transport) {}
    func routeLost(_ address: TransportAddress, by transport: any Transport) {}
    func addressKnown(_ address: TransportAddress, by transport: any Transport) {}
    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {}
    func advertisingFailed(_ error: NighError, by transport: any Transport) {}
    func browsingFailed(_ error: NighError, by transport: any Transport) {}
    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {}
    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {}
}
