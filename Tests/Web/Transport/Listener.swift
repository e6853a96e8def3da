import Glibc

@testable import NighTCP

/// A port of 127.0.0.1 where nobody listens, or where connections are made and nothing is answered.
final class Listener: Sendable {
    private let descriptor: Int32
    let port: UInt16

    init(isListening: Bool) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let status = SocketAddress(.v4(0x7F00_0001), port: 0).withSockaddr { bind(descriptor, $0, $1) }
        precondition(status == 0, "no port is free: \(errno)")
        if isListening { listen(descriptor, 64) }
        port = TCPSocket.address(getsockname, descriptor)?.port ?? 0
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}
