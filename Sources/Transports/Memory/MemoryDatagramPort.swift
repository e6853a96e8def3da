import NighCore

/// The datagrams of a pipe through memory. They arrive in order, and are lost only where too many wait.
///
/// Loop only, except for the state that the ends share in the wire.
final class MemoryDatagramPort: DatagramPort {
    /// The packets that may wait at one end.
    private static let mostWaiting = 1_024
    /// There is one other end, so each source means it.
    private static let otherEnd = DatagramSource(1)

    let place: [UInt8] = []
    let longestPacket = 16 << 10

    private let wire: MemoryWire
    private let local: MemoryWire.Side
    private let remote: MemoryWire.Side
    private var handler: (any DatagramHandler)?
    private var isClosed = false

    init(wire: MemoryWire, local: MemoryWire.Side, remote: MemoryWire.Side) {
        self.wire = wire
        self.local = local
        self.remote = remote
    }

    func start(handler: any DatagramHandler, prefix: UInt64?) {
        local.loop.checkIsolated()
        precondition(self.handler == nil, "a port was started twice")
        guard !isClosed else { return }
        self.handler = handler
        // A reference cycle through the wire, broken by `close`.
        let wake = MemoryWire.Wake(loop: local.loop, run: local.loop.bound { self.takeTurn() })
        wire.lock.withLock { local.packets = MemoryWire.PacketQueue(wake: wake) }
    }

    func source(of place: [UInt8]) -> DatagramSource? { place.isEmpty ? Self.otherEnd : nil }

    func send(_ packet: UnsafeRawBufferPointer, to source: DatagramSource) -> DatagramOutcome {
        local.loop.checkIsolated()
        guard packet.count <= longestPacket else { return .tooLong }
        var wake: MemoryWire.Wake?
        let isTaken = wire.lock.withLock { () -> Bool in
            guard var queue = remote.packets.take() else { return false }
            defer { remote.packets = queue }
            guard queue.waiting.count < Self.mostWaiting else { return false }
            queue.waiting.append(Array(packet))
            if !queue.wakePending { wake = queue.wake }
            queue.wakePending = true
            return true
        }
        wake?()
        return isTaken && !isClosed ? .sent : .dropped
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        handler = nil
        wire.lock.withLock { local.packets = nil }
    }

    private func takeTurn() {
        let packets = wire.lock.withLock { () -> [[UInt8]] in
            defer {
                local.packets?.waiting = []
                local.packets?.wakePending = false
            }
            return local.packets?.waiting ?? []
        }
        for var packet in packets {
            packet.withUnsafeMutableBytes { bytes in
                handler?.datagramPort(self, received: bytes, from: Self.otherEnd)
            }
        }
    }
}
