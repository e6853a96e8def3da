import NighCore

/// The handler of a port for packets under test: sends packets, and records those that come.
///
/// The monitor guards what it records; the port is confined to its pipe's loop. Hence `@unchecked Sendable`.
final class PortProbe: DatagramHandler, @unchecked Sendable {
    struct Packet: Equatable {
        let bytes: [UInt8]
        let source: DatagramSource
    }

    private let pipe: PipeProbe
    private let prefix: UInt64?
    private let monitor: Monitor
    private var port: (any DatagramPort)?
    /// Where the port takes packets. Does not change after `init`.
    private(set) var place: [UInt8] = []
    private var recordedPackets: [Packet] = []
    private var isClosed = false

    /// Opens and starts the port beside a pipe. Fails if there is none.
    init(beside pipe: PipeProbe, prefix: UInt64?) throws {
        self.pipe = pipe
        self.prefix = prefix
        monitor = pipe.owner.testbed.monitor
        let longestPacket = try pipe.owner.run { [self] () -> Int? in
            port = pipe.pipe.openDatagrams()
            place = port?.place ?? []
            port?.start(handler: self, prefix: prefix)
            return port?.longestPacket
        }
        guard let longestPacket else {
            throw Testbed.Failure(
                message: "openDatagrams returned nil, although capabilities.datagrams is true")
        }
        let testbed = pipe.owner.testbed
        try testbed.expect(place.count <= 64, "the place of a port has \(place.count) bytes")
        try testbed.expect(longestPacket >= 1_200, "a port takes packets of \(longestPacket) bytes at most")
    }

    /// The packets that have come.
    var packets: [Packet] { monitor.read { recordedPackets } }

    /// The source of packets from a place of the other end.
    func source(of place: [UInt8]) throws -> DatagramSource {
        guard let source = try pipe.owner.run({ [self] in port?.source(of: place) }) ?? nil else {
            throw Testbed.Failure(message: "a port finds no source of the other port's place")
        }
        return source
    }

    /// Sends a packet to the other port: its prefix, and `bytes`.
    @discardableResult
    func send(_ bytes: [UInt8], to other: PortProbe) throws -> [UInt8] {
        let packet = withUnsafeBytes(of: (other.prefix ?? 0).bigEndian, Array.init) + bytes
        let place = other.place
        try pipe.owner.run { [self] in
            guard let port, let source = port.source(of: place) else { return }
            _ = packet.withUnsafeBytes { port.send($0, to: source) }
        }
        return packet
    }

    /// Sends a packet until one arrives, since any may be lost. Returns what has arrived.
    func sendUntilItArrives(_ bytes: [UInt8], to other: PortProbe) throws -> (sent: [UInt8], arrived: Packet)
    {
        for _ in 0..<20 {
            let sent = try send(bytes, to: other)
            try pipe.owner.testbed.waitQuietTime()
            if let arrived = other.packets.last(where: { $0.bytes.count == sent.count }) {
                return (sent, arrived)
            }
        }
        throw Testbed.Failure(message: "of 20 packets of \(bytes.count + 8) bytes none arrived")
    }

    /// Forgets the packets that have come.
    func forgetPackets() { monitor.change { recordedPackets = [] } }

    /// Closes the port, or the pipe and so the port. Nothing may come afterwards.
    func close(withPipe: Bool = false) throws {
        if withPipe { try pipe.close(.now) }
        try pipe.owner.run { [self] in
            if !withPipe { port?.close() }
            monitor.change { isClosed = true }
        }
    }

    func datagramPort(
        _ port: any DatagramPort, received packet: UnsafeMutableRawBufferPointer, from source: DatagramSource
    ) {
        let isLate = monitor.change {
            recordedPackets.append(Packet(bytes: Array(packet), source: source))
            return isClosed
        }
        if isLate { pipe.owner.testbed.recordViolation("a packet came after its port was closed") }
    }
}
