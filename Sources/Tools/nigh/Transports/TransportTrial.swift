import Nigh
import NighCore

/// A transport that is started to see whether it works, without a session: it looks for nobody, and listens where it is told to alone.
///
/// `@unchecked Sendable`: what changes is confined to the loop.
final class TransportTrial: TransportEvents, @unchecked Sendable {
    let transport: any Transport
    let loop: UVEventLoop
    private var condition = TransportCondition.up
    private var hasEnded = false
    private let startedAt: Moment

    /// Starts it.
    init(of transport: any Transport) throws {
        self.transport = transport
        loop = try UVEventLoop.make()
        startedAt = loop.now
        loop.execute { [self] in transport.start(on: loop, events: self) }
    }

    /// Whether it works: as soon as it says that it does not, or when it has said nothing like it for `patience` from its start on.
    func condition(within patience: Moment.Span) async -> TransportCondition {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                waiting = continuation
                if condition != .up { return answer() }
                loop.schedule(at: startedAt + patience) { [self] in answer() }
            }
        }
    }

    private var waiting: CheckedContinuation<TransportCondition, Never>?

    private func answer() {
        waiting?.resume(returning: condition)
        waiting = nil
    }

    /// Advertises a service; returns where it listens then, or nil if it does not within `patience`.
    func listens(as service: ServiceName, within patience: Moment.Span) async -> TransportAddress? {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                listening = continuation
                transport.advertise(
                    Advertisement(
                        service: service, peer: Identity.ephemeral().peerID,
                        name: DisplayName(fitting: "nigh conformance")))
                loop.schedule(at: loop.now + patience) { [self] in answer(listeningAt: nil) }
            }
        }
    }

    private var listening: CheckedContinuation<TransportAddress?, Never>?

    private func answer(listeningAt address: TransportAddress?) {
        listening?.resume(returning: address)
        listening = nil
    }

    /// What it says about itself.
    func diagnose() async -> [Diagnosis] {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in continuation.resume(returning: transport.diagnose()) }
        }
    }

    /// Takes it down.
    func end() async {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                if !hasEnded { transport.shutdown() }
                hasEnded = true
                continuation.resume()
            }
        }
        loop.shutdown()
    }

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        self.condition = condition
        if condition != .up {
            answer()
            answer(listeningAt: nil)
        }
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) {}
    func routeChanged(_ sighting: Sighting, by transport: any Transport) {}
    func routeLost(_ address: TransportAddress, by transport: any Transport) {}
    func addressKnown(_ address: TransportAddress, by transport: any Transport) {}
    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {}
    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {}
    func advertised(as name: DisplayName, by transport: any Transport) {}
    func advertisingFailed(_ error: NighError, by transport: any Transport) {}
    func browsingFailed(_ error: NighError, by transport: any Transport) {}
    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        if let address = addresses.first { answer(listeningAt: address) }
    }

}
