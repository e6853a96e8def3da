import NighCore
import NighMemory

/// Passes datagrams from either pipe of a connection to the other, without reading them. Loop only.
final class RelayedPackets {
    private let client: Side
    private let target: Side

    /// Opens the datagram ports of both pipes. Returns nil if one of them has none.
    init?(between client: any Pipe, and target: any Pipe) {
        guard let client = Side(client) else { return nil }
        guard let target = Side(target) else {
            client.port.close()
            return nil
        }
        (self.client, self.target) = (client, target)
        client.other = target
        target.other = client
        // The relay knows no prefix, so a port gets all packets from the other end of its pipe.
        for side in [client, target] { side.port.start(handler: side, prefix: nil) }
    }

    /// The counts of the packets to the target.
    var out: PacketCounts { (target.port as? FaultyDatagramPort)?.outgoing ?? PacketCounts() }

    /// The counts of the packets from the target.
    var `in`: PacketCounts { (target.port as? FaultyDatagramPort)?.incoming ?? PacketCounts() }

    func close() {
        for side in [client, target] {
            side.port.close()
            side.other = nil
        }
    }

    /// The datagram port of one pipe. Packets that arrive here are sent at the other one.
    private final class Side: DatagramHandler {
        let port: any DatagramPort
        /// The address of the other end: that of its last packet.
        private var end: DatagramSource
        /// Nil after the end.
        var other: Side?

        init?(_ pipe: any Pipe) {
            guard let port = pipe.openDatagrams() else { return nil }
            guard let end = port.source(of: []) else {
                port.close()
                return nil
            }
            (self.port, self.end) = (port, end)
        }

        func datagramPort(
            _ port: any DatagramPort, received packet: UnsafeMutableRawBufferPointer,
            from source: DatagramSource
        ) {
            end = source
            guard let other else { return }
            _ = other.port.send(UnsafeRawBufferPointer(packet), to: other.end)
        }
    }
}
