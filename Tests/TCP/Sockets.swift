import Glibc

@testable import NighTCP

/// A plain socket on loopback that does nothing by itself. It is closed with the last reference.
final class PlainSocket: Sendable {
    let descriptor: Int32
    let port: UInt16

    /// Binds to a free port of `127.0.0.1`. Connections are refused until `listen` is called.
    init() {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        descriptor = socket
        let loopback = SocketAddress(.v4(0x7F00_0001), port: 0)
        let status = loopback.withSockaddr { bind(socket, $0, $1) }
        precondition(status == 0, "no socket could be bound: \(errno)")
        port = Self.port(of: descriptor)
    }

    /// Connects to `port` of `127.0.0.1`, and waits until it is connected. Many connections at once need a source
    /// address of their own: a session's socket is bound to an interface, so the kernel may give its port to others as
    /// a free one.
    init(connectedTo port: UInt16, from source: UInt32 = 0x7F00_0001) {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        descriptor = socket
        if source != 0x7F00_0001 {
            var late: Int32 = 1
            setsockopt(
                socket, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, &late, socklen_t(MemoryLayout<Int32>.size)
            )
            _ = SocketAddress(.v4(source), port: 0).withSockaddr { bind(socket, $0, $1) }
        }
        let status = SocketAddress(.v4(0x7F00_0001), port: port).withSockaddr { connect(socket, $0, $1) }
        precondition(status == 0, "could not connect: \(errno)")
        self.port = Self.port(of: descriptor)
    }

    /// Waits for the next connection to `listener`, and accepts it.
    init(acceptedBy listener: PlainSocket) {
        descriptor = accept(listener.descriptor, nil, nil)
        precondition(descriptor >= 0, "could not accept: \(errno)")
        port = listener.port
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    /// Owns a connection that was accepted elsewhere.
    init(owning descriptor: Int32) {
        self.descriptor = descriptor
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        port = Self.port(of: descriptor)
    }

    deinit { close(descriptor) }

    func listen(backlog: Int32 = 16) { Glibc.listen(descriptor, backlog) }

    /// Closes the connection with a reset.
    func reset() {
        var abort = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &abort, socklen_t(MemoryLayout<linger>.size))
        dup2(Self.nothing, descriptor)
    }

    /// Releases the port; the object stays.
    func free() { dup2(Self.nothing, descriptor) }

    /// Reads until there are `count` bytes or the stream ends; blocks.
    func read(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let got = bytes.withUnsafeMutableBytes {
                recv(descriptor, $0.baseAddress! + filled, count - filled, 0)
            }
            guard got > 0 else { break }
            filled += got
        }
        return Array(bytes.prefix(filled))
    }

    /// Reads what comes next; returns nothing at the end.
    func readSome() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 1 << 14)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }

    /// Writes all of `bytes`, or as much as the other end accepts before it closes.
    func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    private static let nothing = open("/dev/null", O_RDWR)

    private static func port(of descriptor: Int32) -> UInt16 {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &size) }
        }
        return UInt16(bigEndian: address.sin_port)
    }
}

/// A port of `127.0.0.1` that never answers: its listener accepts nobody, and the backlog is full, so
/// the kernel drops new connections.
final class SilentPort: Sendable {
    private let listener = PlainSocket()
    private let knocking: [PlainSocket]

    var port: UInt16 { listener.port }

    init() {
        listener.listen(backlog: 0)
        knocking = [PlainSocket(connectedTo: listener.port)]
    }
}

/// A plain UDP socket, at a port of all addresses. It is closed with the last reference.
final class PlainUDPSocket: Sendable {
    private let descriptor: Int32

    /// Returns nil if another program has the port. Port 0 stands for any free one.
    init?(at port: UInt16) {
        let socket = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        descriptor = socket
        guard SocketAddress(.v4(0), port: port).withSockaddr({ bind(socket, $0, $1) }) == 0 else {
            return nil
        }
    }

    deinit { close(descriptor) }

    /// Sends a packet to a port of `127.0.0.1`.
    func send(_ packet: [UInt8], to port: UInt16) {
        _ = SocketAddress(.v4(0x7F00_0001), port: port).withSockaddr {
            sendto(descriptor, packet, packet.count, 0, $0, $1)
        }
    }

    /// The number of packets that have come.
    var receivedCount: Int {
        var byte: UInt8 = 0
        var count = 0
        while recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) >= 0 { count += 1 }
        return count
    }
}
