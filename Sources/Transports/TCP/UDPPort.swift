import NighCore
import NighUV

/// The datagrams of a TCP connection: UDP between the same two hosts.
///
/// Loop only.
final class UDPPort: DatagramPort {
    let place: [UInt8]
    /// The payload of the longest IPv6 packet that any network in use carries without fragments.
    let longestPacket = 8_952

    let socket: UDPSocket
    private let own: SocketAddress
    private let other: SocketAddress
    // Touched for every packet, and only on the loop, so access is not checked at run time.
    @exclusivity(unchecked) private var handler: (any DatagramHandler)?
    private var prefix: UInt64?
    private var isClosed = false

    /// Creates a port that uses `socket`, for a connection from the address `own` to the address `other`.
    init(_ socket: UDPSocket, from own: SocketAddress, to other: SocketAddress) {
        self.socket = socket
        self.own = own
        self.other = other
        let number = socket.number
        place = number == own.port ? [] : [UInt8(number >> 8), UInt8(number & 0xFF)]
        socket.add()
    }

    /// Opens a port with a socket of its own: with the number of this end of the connection, so that the other end
    /// knows it, or with another one if that is taken. Its packets go through `interface` if one is named. Returns nil
    /// if there can be none.
    static func alone(
        from own: SocketAddress, to other: SocketAddress, by interface: String?, on loop: UVEventLoop
    ) -> UDPPort? {
        var anyNumber = own
        anyNumber.port = 0
        for address in [own, anyNumber] {
            guard let socket = try? UDPSocket(boundTo: address, interface: interface, on: loop) else {
                continue
            }
            return UDPPort(socket, from: own, to: other)
        }
        return nil
    }

    deinit { close() }

    func start(handler: any DatagramHandler, prefix: UInt64?) {
        precondition(self.handler == nil, "a port was started twice")
        guard !isClosed else { return }
        self.handler = handler
        self.prefix = prefix
        socket.start(self, prefix: prefix, source: other.source)
    }

    func source(of place: [UInt8]) -> DatagramSource? {
        guard !place.isEmpty else { return other.source }
        guard place.count == 2 else { return nil }
        let number = UInt16(place[0]) << 8 | UInt16(place[1])
        return number == 0 ? nil : SocketAddress(other.host, port: number).source
    }

    func send(_ packet: UnsafeRawBufferPointer, to source: DatagramSource) -> DatagramOutcome {
        guard !isClosed else { return .dropped }
        return socket.send(packet, from: own, to: SocketAddress(source))
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        handler = nil
        socket.remove(self, prefix: prefix, source: other.source)
    }

    /// Takes a packet from the socket.
    func receive(_ packet: UnsafeMutableRawBufferPointer, from source: DatagramSource) {
        handler?.datagramPort(self, received: packet, from: source)
    }
}

extension SocketAddress {
    /// The address in the form in which paths remember it.
    var source: DatagramSource {
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
