import CUV
import Glibc
import NighCore
import NighUV

/// Connects to programs that listen on the loopback addresses of this device, and on no others.
///
/// `@unchecked Sendable`: used on its loop only.
package final class LoopbackDialler: LocalDialler, @unchecked Sendable {
    /// A full backlog drops further connections, and the kernel tries again for minutes.
    private static let timeout = Duration.seconds(10)

    private var loop: UVEventLoop?
    private var connecting: [Int32: ConnectingSocket] = [:]

    package init() {}

    /// Uses this loop, which is the session's. Call it before the session has started.
    package func begin(on loop: UVEventLoop) { self.loop = loop }

    package func connect(
        to port: UInt16,
        completion: @escaping @Sendable (Result<any LocalConnection, ForwardingRefusal>) -> Void
    ) {
        guard let loop else { preconditionFailure("a dialler without a loop") }
        connect(to: [.v4, .v6], port, on: loop, completion)
    }

    private func connect(
        to addresses: ArraySlice<LoopbackAddress>, _ port: UInt16, on loop: UVEventLoop,
        _ completion: @escaping @Sendable (Result<any LocalConnection, ForwardingRefusal>) -> Void
    ) {
        guard let address = addresses.first else {
            return loop.execute { completion(.failure(.nobodyListens)) }
        }
        let descriptor = address.makeSocket()
        guard descriptor >= 0 else {
            // A kernel without IPv6 has no such sockets.
            guard errno == EAFNOSUPPORT else { return loop.execute { completion(.failure(.failed)) } }
            return connect(to: addresses.dropFirst(), port, on: loop, completion)
        }
        connecting[descriptor] = address.withBytes(port: port) { bytes in
            ConnectingSocket(descriptor, to: bytes, timeout: Self.timeout, on: loop) { [self] outcome in
                connecting[descriptor] = nil
                if case .success = outcome, let connection = try? SocketConnection(descriptor, on: loop) {
                    return completion(.success(connection))
                }
                close(descriptor)
                guard case .failure(let fault) = outcome else { return completion(.failure(.failed)) }
                guard [ECONNREFUSED, EADDRNOTAVAIL, ENETUNREACH].contains(fault.number) else {
                    return completion(.failure(.failed))
                }
                connect(to: addresses.dropFirst(), port, on: loop, completion)
            }
        }
    }
}

/// One of the two addresses at which a device reaches itself.
enum LoopbackAddress {
    case v4
    case v6

    /// Makes a stream socket of this family, which does not block and is closed at exec. Negative if there is none.
    func makeSocket() -> Int32 {
        let kind = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        return socket(self == .v4 ? AF_INET : AF_INET6, Int32(kind), 0)
    }

    /// Calls `body` with the address and this port as the bytes of a `sockaddr`.
    func withBytes<Result>(port: UInt16, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        switch self {
        case .v4:
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            return withUnsafeBytes(of: &address, body)
        case .v6:
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_addr.__in6_u.__u6_addr8.15 = 1
            return withUnsafeBytes(of: &address, body)
        }
    }
}
