import NighCore
import NighMemory

/// Passes packets between what is beside the two pipes of a connection, and reads nothing of them. Loop only.
final class RelayedPackets {
    private let client: Side
    private let target: Side

    /// Opens ports beside both pipes. Returns nil if one of the pipes has no packets beside it.
    init?(between client: any Pipe, and target: any Pipe) {
        guard let client = Side(client) else { return nil }
        guard let target = Side(target) else {
            client.port.close()
            return nil
        }
        (self.client, self.target) = (client, target)
        client.other = target
        target.other = client
        // The relay knows no prefix, so a port gets what comes from the other end of its pipe.
        for side in [client, target] { side.port.start(handler: side, prefix: nil) }
    }

    /// What has become of the packets to the target.
    var out: PacketCounts { (target.port as? FaultyDatagramPort)?.outgoing ?? PacketCounts() }

    /// What has become of the packets from the target.
    var `in`: PacketCounts { (target.port as? FaultyDatagramPort)?.incoming ?? PacketCounts() }

    func close() {
        for side in [client, target] {
            side.port.close()
            side.other = nil
        }
    }

    /// The port beside one pipe: what arrives here is sent at the other one.
    private final class Side: DatagramHandler {
        let port: any DatagramPort
        /// Where the other end takes packets: at the last place from which one came.
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
