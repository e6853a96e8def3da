import Glibc
import NighCore
import NighUV

/// Accepts connections of programs of this device, at a port of 127.0.0.1.
///
/// Loop only.
package final class LoopbackListener {
    private static let backlog: Int32 = 128

    private var listener: SocketListener?
    /// The port on which it listens.
    package let port: UInt16

    /// Listens on `port`, or on a free one if that is 0. Call it on the loop. Fails if another program listens there.
    ///
    /// - Parameters:
    ///   - accepted: called with each connection, on the loop.
    ///   - failed: called with the reason why no more can be accepted for now.
    package init(
        port: UInt16, on loop: UVEventLoop, accepted: @escaping (SocketConnection) -> Void,
        failed: @escaping (NighError) -> Void
    ) throws(NighError) {
        let descriptor = LoopbackAddress.v4.makeSocket()
        do throws(SocketFault) {
            guard descriptor >= 0 else { throw SocketFault(errno) }
            // An earlier listener may have left connections.
            var isOn: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size))
            let status = LoopbackAddress.v4.withBytes(port: port) { bytes in
                bind(
                    descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                    socklen_t(bytes.count))
            }
            guard status == 0, listen(descriptor, Self.backlog) == 0 else { throw SocketFault(errno) }
            self.port = port == 0 ? Self.port(of: descriptor) : port
            listener = try SocketListener(
                descriptor: descriptor, on: loop,
                accepted: { descriptor in
                    let connection = try? SocketConnection(descriptor, on: loop)
                    if let connection { accepted(connection) } else { Glibc.close(descriptor) }
                },
                failed: { failed($0.listeningError(on: port)) })
        } catch {
            if descriptor >= 0 { Glibc.close(descriptor) }
            throw error.listeningError(on: port)
        }
    }

    private static func port(of descriptor: Int32) -> UInt16 {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
        }
        return status == 0 ? UInt16(bigEndian: address.sin_port) : 0
    }

    /// Stops listening. Accepted connections stay open.
    package func close() {
        listener?.close()
        listener = nil
    }
}

extension SocketFault {
    fileprivate func listeningError(on port: UInt16) -> NighError {
        let advice: String? =
            switch number {
            case EADDRINUSE:
                "another program listens on 127.0.0.1 port \(port): end it, or choose another port"
            case EACCES, EPERM: "ports below 1024 are for root: choose another one"
            default: advice
            }
        return NighError(.starting, cause, advice: advice)
    }
}
