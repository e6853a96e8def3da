import CUV
import Glibc
import NighCore
import NighUV

/// Packets beside a TCP connection: a UDP socket of its own, between the same two hosts.
///
/// Confined to its loop; hence `@unchecked Sendable`.
final class UDPPort: DatagramPort, @unchecked Sendable {
    /// How many packets one wake-up receives before others have their turn.
    private static let packetsPerWakeUp = 64
    /// The bytes that the kernel keeps of packets that were not read.
    private static let receiveBuffer: Int32 = 1 << 20

    let place: [UInt8]
    /// What fits into an IPv6 packet without fragments of any network that is in use.
    let longestPacket = 8_952

    private let loop: UVEventLoop
    private let other: SocketAddress
    private let descriptor: Int32
    private var watch: DescriptorWatch?
    private var handler: (any DatagramHandler)?
    private var isClosed = false

    /// Opens a socket at the address of this end of the connection, on a port that the kernel chooses; nil if it cannot.
    init?(own: SocketAddress, other: SocketAddress, on loop: UVEventLoop) {
        self.loop = loop
        self.other = other
        let kind = SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        let descriptor = socket(own.family, Int32(kind), 0)
        guard descriptor >= 0 else { return nil }
        var anyPort = own
        anyPort.port = 0
        guard anyPort.withSockaddr({ bind(descriptor, $0, $1) }) == 0,
            let bound = TCPSocket.address(getsockname, descriptor)
        else {
            Glibc.close(descriptor)
            return nil
        }
        self.descriptor = descriptor
        place = [UInt8(bound.port >> 8), UInt8(bound.port & 0xFF)]
        TCPSocket.set(SO_RCVBUF, of: SOL_SOCKET, to: Self.receiveBuffer, on: descriptor)
        // No router may cut a packet, and a packet that is too long for this host's network is refused here. What longer networks
        // carry, the path finds out by itself.
        if own.isIPv6 {
            TCPSocket.set(IPV6_MTU_DISCOVER, of: Int32(IPPROTO_IPV6), to: IPV6_PMTUDISC_PROBE, on: descriptor)
        } else {
            TCPSocket.set(IP_MTU_DISCOVER, of: Int32(IPPROTO_IP), to: IP_PMTUDISC_PROBE, on: descriptor)
        }
    }

    deinit { close() }

    func start(handler: any DatagramHandler) {
        loop.checkIsolated()
        precondition(self.handler == nil, "a port was started twice")
        guard !isClosed else { return }
        self.handler = handler
        // Without a watch nothing comes, and the path is never used.
        watch = try? loop.watch(descriptor, for: .readable) { [weak self] _ in self?.receive() }
    }

    func source(of place: [UInt8]) -> DatagramSource? {
        guard place.count == 2 else { return nil }
        let port = UInt16(place[0]) << 8 | UInt16(place[1])
        return port == 0 ? nil : SocketAddress(other.host, port: port).source
    }

    func send(_ packet: UnsafeRawBufferPointer, to source: DatagramSource) -> DatagramOutcome {
        guard !isClosed else { return .dropped }
        let sent = SocketAddress(source).withSockaddr { address, size in
            sendto(descriptor, packet.baseAddress, packet.count, Int32(MSG_NOSIGNAL), address, size)
        }
        guard sent < 0 else { return .sent }
        return errno == EMSGSIZE ? .tooLong : .dropped
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        handler = nil
        watch?.cancel()
        watch = nil
        Glibc.close(descriptor)
    }

    private func receive() {
        for _ in 0..<Self.packetsPerWakeUp {
            guard let handler, !isClosed else { return }
            // Nobody keeps a slice of the buffer, so the next read begins at the same place.
            let room = loop.readBuffer.room()
            var storage = sockaddr_storage()
            var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let (count, source) = withUnsafeMutablePointer(to: &storage) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    let count = recvfrom(descriptor, room.baseAddress, room.count, 0, address, &size)
                    return (count, count > 0 ? SocketAddress(address)?.source : nil)
                }
            }
            // An error may be the answer to an earlier packet, that nobody takes it; more packets may follow.
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { return }
            guard count > 0, let source else { continue }
            handler.datagramPort(
                self, received: UnsafeMutableRawBufferPointer(rebasing: room[..<count]), from: source)
        }
    }
}

extension SocketAddress {
    /// The address in the form in which paths remember it.
    fileprivate var source: DatagramSource {
        switch host {
        case .v4(let bits): DatagramSource(4, UInt64(bits), 0, UInt64(port))
        case .v6(let high, let low, let scope):
            DatagramSource(6 | UInt64(scope) << 32, high, low, UInt64(port))
        }
    }

    fileprivate init(_ source: DatagramSource) {
        let port = UInt16(truncatingIfNeeded: source.fourth)
        if source.first == 4 {
            self.init(.v4(UInt32(truncatingIfNeeded: source.second)), port: port)
        } else {
            self.init(
                .v6(high: source.second, low: source.third, scope: UInt32(source.first >> 32)), port: port)
        }
    }
}
