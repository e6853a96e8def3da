import CUV
import Glibc
import NighCore
import NighSystem
import NighUV

/// Asks the system for the addresses of a host name, on a thread of its own. The answer may take half a minute, and the
/// request cannot be cancelled, only ignored.
enum NameLookup {
    /// Looks up `name` and calls `answer` on `loop` in a later turn, unless the loop has ended by then.
    static func start(
        _ name: String, port: UInt16, on loop: UVEventLoop,
        _ answer: @escaping (Result<[SocketAddress], NighError>) -> Void
    ) {
        let answer = LoopBound(answer, on: loop)
        let thread = LoopThread()
        do throws(NighError) {
            try thread.start {
                let result = lookUp(name, port: port)
                answer.execute { $0(result) }
                // Nobody waits for the thread, so it detaches itself.
                thread.join()
            }
        } catch {
            let failure = NighError(
                .connecting, error.cause, peer: name, transport: TCPTransport.schemeName, advice: error.advice
            )
            answer.execute { $0(.failure(failure)) }
        }
    }

    private static func lookUp(_ name: String, port: UInt16) -> Result<[SocketAddress], NighError> {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        var first: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(name, "\(port)", &hints, &first)
        guard status == 0 else { return .failure(error(name, status)) }
        defer { freeaddrinfo(first) }
        var addresses: [SocketAddress] = []
        var entry = first
        while let current = entry {
            if let address = current.pointee.ai_addr.flatMap({ SocketAddress($0) }) {
                addresses.append(address)
            }
            entry = current.pointee.ai_next
        }
        return addresses.isEmpty ? .failure(error(name, EAI_NONAME)) : .success(addresses)
    }

    private static func error(_ name: String, _ status: Int32) -> NighError {
        let reason = String(cString: gai_strerror(status))
        let advice =
            switch status {
            case EAI_NONAME:
                name.hasSuffix(".local")
                    ? "is the device on this network? names in .local need libnss-mdns on this one"
                    : "is the name spelled correctly? an IP address works too"
            default: "can this machine reach a name server? an IP address works too"
            }
        return NighError(
            .connecting, .unavailable("the name \(name) has no address: \(reason)"),
            transport: TCPTransport.schemeName, advice: advice)
    }
}
