import NighCore

/// Tests whether datagrams pass between the ends of a link, in both directions. It belongs to a ``LinkProbe``, which
/// exchanges the offers on the link. Loop only.
final class PacketProbe: DatagramHandler {
    private let port: any DatagramPort
    private var path: DatagramPath
    private let loop: any EventLoop
    private let whenReceived: () -> Void
    private(set) var outcome: LinkProbe.PacketOutcome?
    private var pingsSent = 0
    /// A packet may be lost, its answer may, and a busy machine may answer late.
    private static let mostPings = 3

    /// Begins to receive packets, and calls `whenReceived` after each.
    init(_ port: any DatagramPort, on loop: any EventLoop, whenReceived: @escaping () -> Void) {
        self.port = port
        self.loop = loop
        self.whenReceived = whenReceived
        var generator = SeededGenerator(seed: .random(in: .min ... .max))
        let offer = DatagramOffer(
            connection: generator.next(), longestPacket: DatagramPacket.leastLongest, place: port.place)
        path = DatagramPath(offer: offer, longestMessage: 0, generator: generator, now: loop.now)
        ping()
        port.start(handler: self, prefix: path.offer.connection)
    }

    private func ping() {
        pingsSent += 1
        path.send(.init(call: 0, padding: 0), waitsIfBlocked: true, now: loop.now)
    }

    /// The offer that the other side must get.
    var offer: DatagramOffer { path.offer }

    /// When `proceed` must be called next.
    var deadline: Moment { path.deadline }

    /// Takes the other side's offer, and begins to send.
    func accept(_ offer: DatagramOffer, ciphers: (sealing: DatagramCipher, opening: DatagramCipher)) {
        guard let source = port.source(of: offer.place) else { return }
        path.accept(offer, at: source, sealing: ciphers.sealing, opening: ciphers.opening, now: loop.now)
    }

    func datagramPort(
        _ port: any DatagramPort, received packet: UnsafeMutableRawBufferPointer, from source: DatagramSource
    ) {
        _ = path.receive(packet, from: source, now: loop.now)
        whenReceived()
    }

    /// Does the work that is due, and sends the packets that wait.
    func proceed() {
        if path.deadline <= loop.now { path.timeArrived(now: loop.now) }
        for result in path.takePingResults() {
            switch result.outcome {
            case .success(let roundTrip): outcome = .passed(roundTrip.duration)
            case .failure(.lost) where path.isOpen && pingsSent < Self.mostPings: ping()
            case .failure(.blocked) where path.isAccepted && pingsSent == 1: ping()
            case .failure: outcome = path.isAccepted ? .blocked : .notOffered
            }
        }
        let output = path.output
        output.drain { packet, source in path.noteUnsent(port.send(packet, to: source)) }
    }

    func close() { port.close() }
}
