/// Packets that leave at the end of this turn of the loop, one behind the other in one piece of memory.
package final class PacketQueue {
    private struct Packet {
        var start: Int
        var count: Int
        var destination: DatagramSource
    }

    private let memory: UnsafeMutableRawBufferPointer
    // Touched for every packet, and only on the loop, so access is not checked at run time.
    private var filled = 0
    @exclusivity(unchecked) private var packets: [Packet] = []

    /// - Parameter byteCount: the bytes of packets that may wait.
    init(byteCount: Int) { memory = .allocate(byteCount: byteCount, alignment: 16) }

    deinit { memory.deallocate() }

    var isEmpty: Bool { packets.isEmpty }

    /// Adds the packet that `fill` writes to the memory it gets. `fill` returns the packet's length. Returns false if
    /// there is no room for `longest` bytes.
    func add(
        atMost longest: Int, to destination: DatagramSource, _ fill: (UnsafeMutableRawBufferPointer) -> Int
    ) -> Bool {
        guard memory.count - filled >= longest else { return false }
        let count = fill(UnsafeMutableRawBufferPointer(rebasing: memory[filled..<filled + longest]))
        packets.append(Packet(start: filled, count: count, destination: destination))
        filled += count
        return true
    }

    /// Passes each packet on, in the order in which they were added, and forgets them.
    package func drain(_ send: (UnsafeRawBufferPointer, DatagramSource) -> Void) {
        for packet in packets {
            send(
                UnsafeRawBufferPointer(rebasing: memory[packet.start..<packet.start + packet.count]),
                packet.destination)
        }
        packets.removeAll(keepingCapacity: true)
        filled = 0
    }
}
