import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighTCP

/// A stranger sends packets to the UDP port of a session that converses.
@Suite("A stranger's packets to the port beside a connection") struct HostilePacketTests {
    /// Learns from a session's links where it takes packets, and what it receives there.
    ///
    /// `@unchecked Sendable`: guarded by the monitor.
    private final class Wiretap: SessionLayer, LinkObserver, @unchecked Sendable {
        private let monitor = Monitor()
        private var sent: [UInt8] = []
        private var received: [[UInt8]] = []

        func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment) {
            monitor.change {
                switch event {
                case .sent(let bytes): sent += bytes.bytes
                case .packetReceived(let packet): received.append(packet.bytes)
                default: break
                }
            }
        }

        /// The packets that the session has received, as they were before they were sealed.
        var packets: [[UInt8]] { monitor.read { received } }

        /// Returns the offer of packets that the session has sent on its link.
        func offer() throws -> DatagramOffer? {
            var rest = monitor.read { sent }.dropFirst(Preface.byteCount)
            while rest.count >= 4 {
                let head = Array(rest.prefix(4))
                let payload = Array(
                    rest.dropFirst(4).prefix(Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])))
                if head[3] == FrameType.datagrams.rawValue {
                    return try payload.withUnsafeBytes { try DatagramOffer(reading: $0) }
                }
                rest = rest.dropFirst(4 + payload.count)
            }
            return nil
        }
    }

    /// How many packets the stranger sends.
    private static let count = 20_000

    @Test(arguments: [SessionSecurity.encrypted, .none])
    func `are neither delivered nor answered, and the conversation goes on`(_ security: SessionSecurity)
        throws
    {
        let room = Room()
        let tap = Wiretap()
        let lynx = try room.join("lynx") {
            $0.datagrams = true
            $0.security = security
            $0.layers.append(tap)
        }
        let puma = try room.join("puma", role: .client) {
            $0.datagrams = true
            $0.security = security
        }
        _ = try room.call(puma, port: lynx.port).get()
        try puma.session.trySend([0], to: lynx.id, .unreliable)
        try room.wait("packets pass", puma) { probe in
            probe.events.contains {
                if case .peerChanged(let peer) = $0 { peer.hasDatagrams } else { false }
            }
        }
        try puma.session.trySend(Array("once".utf8), to: lynx.id, .unreliable)
        try room.wait("the unreliable message comes", lynx) { $0.texts.contains("once") }
        let offer = try #require(try tap.offer())
        // The empty place is the port of the listener.
        let port = offer.place.isEmpty ? lynx.port : offer.place.reduce(0) { $0 << 8 | UInt16($1) }
        let stranger = try #require(PlainUDPSocket(at: 0))
        let before = lynx.messages.count
        let accepted = tap.packets
        var random = SeededGenerator(seed: 7)
        for number in 1...Self.count {
            stranger.send(
                Self.packet(to: offer.connection, of: accepted, isSealed: security == .encrypted, &random),
                to: port)
            if number.isMultiple(of: Self.count / 4) { try room.exchangeMessages(puma, lynx) }
        }
        #expect(lynx.messages.count == before + 40)
        #expect(stranger.receivedCount == 0)
        let counts = try #require(try room.statistics(lynx).peers[puma.id]?.datagrams)
        #expect(counts.messagesReceived == 1)
        #expect(Set(tap.packets).count == tap.packets.count)
        // The kernel drops what comes faster than it is read.
        #expect(counts.rejected + counts.duplicates + counts.late > Self.count / 100, "\(counts)")
        #expect(counts.moves == 0)
        try puma.session.trySend(Array("again".utf8), to: lynx.id, .unreliable)
        try room.wait("the unreliable message comes", lynx) { $0.texts.contains("again") }
    }

    /// Makes a packet that is cut short, damaged, repeated or sealed with another key. Where nothing is sealed, anybody
    /// can make one that is genuine, so there it is never a new one.
    private static func packet(
        to connection: UInt64, of accepted: [[UInt8]], isSealed: Bool, _ random: inout SeededGenerator
    ) -> [UInt8] {
        let plain = accepted[Int(random.next() % UInt64(accepted.count))]
        let number = isSealed ? random.next() % 100_000 : DatagramPacket.readNumber(plain)
        var packet = plain + [UInt8](repeating: 0, count: 16)
        let secret = SecretBytes(count: DatagramCipher.secretByteCount)
        let cipher = DatagramCipher(
            isSealed ? .aes128 : .checksum, secret: isSealed ? secret : nil, isSealing: true)
        let count = packet.withUnsafeMutableBytes { bytes in
            DatagramPacket.writeHeader(connection: connection, number: number, to: bytes)
            return cipher.seal(
                bytes, headerCount: DatagramPacket.headerByteCount, count: plain.count, number: number)
        }
        packet = Array(packet.prefix(count))
        switch random.next() % 4 {
        case 0: return Array(packet.prefix(1 + Int(random.next() % UInt64(packet.count - 1))))
        case 1: packet[Int(random.next() % UInt64(packet.count))] ^= 1 << UInt8(random.next() % 8)
        case 2: return (0...Int(random.next() % 100)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        default: break
        }
        return packet
    }
}

extension DatagramPacket {
    fileprivate static func readNumber(_ packet: [UInt8]) -> UInt64 { packet.withUnsafeBytes(number) }
}
