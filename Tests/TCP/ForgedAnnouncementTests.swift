import NighCore
import NighMemory
import NighTestKit
import NighUV
import Testing

@testable import NighMDNS
@testable import NighTCP

/// An attacker on the network announces the PeerID of a real peer at another address. Everything here is real: two
/// sessions with an mDNS stack each, a socket that speaks mDNS, and only the loopback interface between them.
@Suite(.serialized)
struct ForgedAnnouncementTests {
    /// The content of the forged announcement.
    enum Lie: CaseIterable {
        /// Another instance, at a port of this machine that accepts connections and never sends anything.
        case silentPort
        /// Another instance, at a port of this machine that refuses connections.
        case refusingPort
        /// Another instance, on another machine.
        case elsewhere
        /// Another host for the peer's own instance.
        case ownInstance
    }

    @Test(arguments: Lie.allCases)
    func `A forged announcement does not prevent a connection`(lie: Lie) throws {
        let service = try #require(ServiceName("t\(UInt32.random(in: .min ... .max))"))
        let puma = try Neighbourhood("Puma", service, role: .server)
        let lynx = try Neighbourhood("Lynx", service, role: .client)
        defer { for one in [puma, lynx] { one.end() } }
        let port = try #require(puma.probe.listening.first?.value.split(separator: ":").last)
        try #require(try lynx.waits(for: puma.probe.id, at: ["127.0.0.1:\(port)"]))
        let trap = PlainSocket()
        // The kernel accepts connections.
        if lie != .refusingPort { trap.listen() }
        let address: [UInt8] = lie == .elsewhere ? [192, 0, 2, 7] : [127, 0, 0, 1]
        let forged = address.map(String.init).joined(separator: ".") + ":\(trap.port)"
        let isBelieved = try lynx.waits(for: puma.probe.id, at: ["127.0.0.1:\(port)", forged]) {
            try lynx.announce(
                puma.probe.id, service, named: lie == .ownInstance ? "Puma" : "Forged", at: address,
                port: trap.port)
        }
        #expect(isBelieved)
        lynx.probe.session.invite(puma.probe.id) { _ in }
        #expect(lynx.probe.wait { $0.state(of: puma.probe.id) == .connected })
    }
}

/// A session that finds peers, and is found, on the loopback interface.
private struct Neighbourhood {
    let probe: SessionProbe
    private let transport: TCPTransport
    private let loop: UVEventLoop

    init(_ name: String, _ service: ServiceName, role: SessionRole) throws {
        loop = UVEventLoop()
        transport = TCPTransport(TCPOptions(interface: "lo", discovery: .embedded))
        let faulty = FaultyTransport(transport)
        let session = Session(
            SessionConfiguration(service: service, name: DisplayName(fitting: name), role: role),
            identity: .ephemeral(), transports: [faulty], loop: loop)
        probe = SessionProbe(number: 1, session: session, faults: faulty.control)
        probe.start(reading: .handler, accepting: true)
        if role == .server { try #require(probe.wait { !$0.listening.isEmpty }) }
    }

    /// Returns whether a dial of the peer comes to try all of these addresses. Polls every 5 ms. Calls `announce` at
    /// first, and again about every second, because a full buffer may drop a packet.
    func waits(
        for peer: PeerID, at places: Set<String>, announcing announce: () throws -> Void = {}
    ) throws -> Bool {
        for round in 0..<4_000 {
            if round % 200 == 0 { try announce() }
            let found: Result<[TransportAddress], NighError> = try waitForReply { reply in
                loop.execute {
                    loop.schedule(at: loop.now + .milliseconds(5)) {
                        transport.places(behind: TCPDestination.address(of: peer), found: reply)
                    }
                }
            }
            if try places.isSubset(of: found.get().map(\.value)) { return true }
        }
        return false
    }

    /// Announces once, by multicast, that the peer is at this address too.
    func announce(
        _ peer: PeerID, _ service: ServiceName, named name: String, at address: [UInt8], port: UInt16
    ) throws {
        let type = ServiceType(tcp: service).domain
        let instance = try #require(DomainName(labels: [Array(name.utf8)])?.below(type))
        let host = DomainName(literal: "forged-\(port).local")
        let advertisement = Advertisement(service: service, peer: peer, name: DisplayName(fitting: name))
        let text = TextRecord(entries: AnnouncementText.entries(of: advertisement))
        let records: [(DomainName, RecordType, [UInt8])] = [
            (type, .pointer, instance.wire),
            (instance, .service, ServiceRecord(port: port, host: host).data), (instance, .text, text.data),
            (host, .address4, address),
        ]
        // An unsolicited answer with these records.
        var message: [UInt8] = [0, 0, 0x84, 0, 0, 0, 0, UInt8(records.count), 0, 0, 0, 0]
        for (name, type, data) in records {
            message += name.wire + [0, UInt8(type.rawValue), 0, 1]
            message += [0, 0, 0, UInt8(Publication.timeToLive), 0, UInt8(data.count)] + data
        }
        let isSaid = loop.call { [loop, message] in
            let interface = NetworkInterface.usable(named: "lo")?.first
            // Bound to the mDNS port, as every responder must be.
            let socket = interface.flatMap {
                MulticastSocket(.listening, on: $0, version: 4, loop: loop, received: { _ in })
            }
            socket?.send(message)
            return socket != nil && socket?.failure == nil
        }
        try #require(isSaid)
    }

    func end() {
        _ = try? waitForReply { (closed: @escaping @Sendable (Bool) -> Void) in
            probe.session.close { closed(true) }
        }
        loop.shutdown()
    }
}
