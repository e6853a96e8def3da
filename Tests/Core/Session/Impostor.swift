import NighMemory
import NighTestKit

@testable import NighCore

/// Listens where somebody else is expected, and proves nothing.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
final class Impostor: TransportEvents, PipeHandler, @unchecked Sendable {
    enum Manner: CaseIterable {
        case silent
        /// Closes each pipe at once.
        case closing
        /// Says something that is no preface.
        case babbling
        /// Sends back what it gets.
        case echoing
        /// Says the preface, and no more.
        case stalling
    }

    let address: TransportAddress
    private let manner: Manner
    private let transport: MemoryTransport
    private var pipes: [any Pipe] = []
    /// How many pipes have come, and how many of those were closed again.
    var opened: Int { pipes.count }
    private(set) var closed = 0

    /// It announces `peer`, or listens only.
    init(_ manner: Manner, at name: String, announcing peer: PeerID?, in place: Neighbourhood) {
        self.manner = manner
        address = TransportAddress(scheme: "memory", value: name)
        transport = MemoryTransport(hub: place.hub, address: name)
        transport.start(on: place.loop, events: self)
        let service: ServiceName = peer == nil ? "elsewhere" : "test"
        transport.advertise(
            Advertisement(
                service: service, peer: peer ?? Identity.ephemeral(seed: 999).peerID,
                name: DisplayName(fitting: name)))
    }

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        pipes.append(pipe)
        pipe.start(handler: self)
        switch manner {
        case .silent, .echoing: break
        case .closing:
            closed += 1
            pipe.close(.now)
        case .babbling: say("220 welcome to something else\r\n".utf8, on: pipe)
        case .stalling: say(Preface(security: .tls13).bytes, on: pipe)
        }
    }

    private func say(_ bytes: some Sequence<UInt8>, on pipe: any Pipe) {
        var queue = ByteQueue()
        queue.append(ByteSlice(Array(bytes)))
        pipe.write(&queue)
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        if manner == .echoing { say(bytes.bytes, on: pipe) }
    }

    func pipeEnded(_ pipe: any Pipe) { end(pipe) }
    func pipeClosed(_ pipe: any Pipe, error: NighError?) { end(pipe) }

    private func end(_ pipe: any Pipe) {
        closed += 1
        pipe.close(.now)
    }

    func pipeBecameWritable(_ pipe: any Pipe) {}
    func routeFound(_ sighting: Sighting, by transport: any Transport) {}
    func routeChanged(_ sighting: Sighting, by transport: any Transport) {}
    func routeLost(_ address: TransportAddress, by transport: any Transport) {}
    func addressKnown(_ address: TransportAddress, by transport: any Transport) {}
    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {}
    func advertised(as name: DisplayName, by transport: any Transport) {}
    func advertisingFailed(_ error: NighError, by transport: any Transport) {}
    func browsingFailed(_ error: NighError, by transport: any Transport) {}
    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {}
    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {}
}
