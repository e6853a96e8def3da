import CUV
import Glibc
import NighCore
import NighUV

/// A UDP socket, and the ports whose packets go through it.
///
/// A packet that begins with the prefix of a port goes to that port, wherever it comes from. A packet that begins with
/// no known prefix goes to the port without a prefix whose pipe leads to the sender. All others are dropped. So a
/// foreign packet costs two look-ups, and is never given to a session.
///
/// The ports hold the socket. It is closed with the last of them. Loop only.
final class UDPSocket {
    /// How many packets one call receives, and how many calls one wake-up makes before others have their turn.
    private static let packetsPerRead = 8
    private static let readsPerWakeUp = 8
    /// A longer packet than this is cut short, and then nobody takes it. No port takes such packets.
    private static let longestPacket = 9_216
    /// The bytes that the kernel keeps of packets that were not read.
    private static let receiveBuffer: Int32 = 1 << 20

    /// The port number of the socket.
    let number: UInt16
    /// Called once, when the last port has closed.
    var didClose: () -> Void = {}

    private let loop: UVEventLoop
    private let descriptor: Int32
    /// Whether it takes IPv6, and at the wildcard address IPv4 as well.
    let isIPv6: Bool
    /// Whether the socket is bound to all addresses, so that each packet has to say which one it leaves from.
    private let isAny: Bool
    private let received: UnsafeMutablePointer<nigh_packets>
    // Touched for every packet, and only on the loop, so access is not checked at run time.
    private var watch: DescriptorWatch?
    private var portCount = 0
    @exclusivity(unchecked) private var portsByPrefix: [UInt64: UDPPort] = [:]
    /// The ports without a prefix.
    @exclusivity(unchecked) private var portsBySource: [DatagramSource: UDPPort] = [:]
    private var isClosed = false

    /// Opens a socket at an address. At the wildcard address of IPv6 it takes IPv4 as well.
    init(
        boundTo address: SocketAddress, interface: String? = nil, on loop: UVEventLoop
    ) throws(SocketFault) {
        self.loop = loop
        isIPv6 = address.isIPv6
        isAny = address.isAny
        let descriptor = try TCPSocket.make(family: address.family, kind: SOCK_DGRAM, interface: interface)
        self.descriptor = descriptor
        if isIPv6 { TCPSocket.set(IPV6_V6ONLY, of: Int32(IPPROTO_IPV6), to: isAny ? 0 : 1, on: descriptor) }
        guard address.withSockaddr({ bind(descriptor, $0, $1) }) == 0,
            let bound = TCPSocket.address(getsockname, descriptor)
        else {
            let fault = SocketFault(errno)
            Glibc.close(descriptor)
            throw fault
        }
        number = bound.port
        received = .allocate(capacity: 1)
        TCPSocket.set(SO_RCVBUF, of: SOL_SOCKET, to: Self.receiveBuffer, on: descriptor)
        // No router may cut a packet, and a packet that is too long for this host's network is refused here. The path
        // finds out by itself how long packets may be on other networks.
        TCPSocket.set(IP_MTU_DISCOVER, of: Int32(IPPROTO_IP), to: IP_PMTUDISC_PROBE, on: descriptor)
        guard isIPv6 else { return }
        TCPSocket.set(IPV6_MTU_DISCOVER, of: Int32(IPPROTO_IPV6), to: IPV6_PMTUDISC_PROBE, on: descriptor)
    }

    deinit {
        received.deallocate()
        if !isClosed { Glibc.close(descriptor) }
    }

    // MARK: Ports

    /// Counts a port that uses the socket, until `remove`.
    func add() { portCount += 1 }

    /// Gives packets to a port from now on: those that begin with `prefix` or, without one, those that come from
    /// `source`.
    func start(_ port: UDPPort, prefix: UInt64?, source: DatagramSource) {
        loop.checkIsolated()
        // A prefix is random, so no two ports have the same.
        if let prefix { portsByPrefix[prefix] = port } else { portsBySource[source] = port }
        guard watch == nil else { return }
        // Without a watch nothing comes, and the path is never used.
        watch = try? loop.watch(descriptor, for: .readable) { [weak self] in self?.receive($0) }
    }

    /// Gives a port no more packets. Closes the socket if it was the last one.
    func remove(_ port: UDPPort, prefix: UInt64?, source: DatagramSource) {
        if let prefix, portsByPrefix[prefix] === port { portsByPrefix[prefix] = nil }
        if prefix == nil, portsBySource[source] === port { portsBySource[source] = nil }
        portCount -= 1
        guard portCount == 0, !isClosed else { return }
        isClosed = true
        watch?.cancel()
        watch = nil
        Glibc.close(descriptor)
        didClose()
        didClose = {}
    }

    // MARK: Packets

    /// Sends a packet from one address of this machine to another one.
    func send(
        _ packet: UnsafeRawBufferPointer, from own: SocketAddress, to other: SocketAddress
    ) -> DatagramOutcome {
        guard !isClosed else { return .dropped }
        let sent = form(of: other).withSockaddr { to, size in
            guard isAny else {
                return sendto(descriptor, packet.baseAddress, packet.count, Int32(MSG_NOSIGNAL), to, size)
            }
            return form(of: own).withSockaddr { from, _ in
                nigh_send_from(descriptor, packet.baseAddress, packet.count, from, to, size)
            }
        }
        guard sent < 0 else { return .sent }
        return errno == EMSGSIZE ? .tooLong : .dropped
    }

    /// The address in the family of the socket: that of IPv6 writes IPv4 addresses in their IPv6 form.
    private func form(of address: SocketAddress) -> SocketAddress {
        guard isIPv6, case .v4(let bits) = address.host else { return address }
        return SocketAddress(.v6(high: 0, low: 0xFFFF << 32 | UInt64(bits), scope: 0), port: address.port)
    }

    private func receive(_ events: DescriptorEvents) {
        for _ in 0..<Self.readsPerWakeUp {
            guard !isClosed else { return }
            let room = loop.readBuffer.room()
            let places = min(Self.packetsPerRead, room.count / Self.longestPacket)
            let count = Int(
                nigh_receive_packets(
                    descriptor, room.baseAddress, Self.longestPacket, UInt32(places), received))
            // A handler may end a pipe of this loop, which reads into the same buffer then: behind the bytes that are
            // held. Nobody keeps a slice, so the next packets are read to the same place.
            let held = loop.readBuffer.take(max(count, 0) * Self.longestPacket)
            for index in 0..<max(count, 0) {
                guard !isClosed else { return }
                dispatch(index, in: room)
            }
            withExtendedLifetime(held) {}
            // An error may be the answer to an earlier packet, that nobody takes it; more packets may follow.
            let isEmpty = count < 0 ? errno == EAGAIN || errno == EWOULDBLOCK : count < places
            if isEmpty { break }
        }
        // Reading has taken the error that the loop has reported.
        if events.isEmpty { watch?.resume() }
    }

    /// Gives a received packet to its port.
    private func dispatch(_ index: Int, in room: UnsafeMutableRawBufferPointer) {
        let length = nigh_packet_count(received, Int32(index))
        guard length > 0, let source = SocketAddress(nigh_packet_source(received, Int32(index)))?.source
        else { return }
        let start = index * Self.longestPacket
        let packet = UnsafeMutableRawBufferPointer(rebasing: room[start..<start + length])
        receiver(of: UnsafeRawBufferPointer(packet), from: source)?.receive(packet, from: source)
    }

    private func receiver(of packet: UnsafeRawBufferPointer, from source: DatagramSource) -> UDPPort? {
        if packet.count >= MemoryLayout<UInt64>.size {
            let prefix = UInt64(bigEndian: packet.loadUnaligned(as: UInt64.self))
            if let port = portsByPrefix[prefix] { return port }
        }
        return portsBySource.isEmpty ? nil : portsBySource[source]
    }
}
