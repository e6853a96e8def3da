// The system calls for AF_UNIX sockets: how to make one, and its address.
import Glibc
import NighTransport

enum UnixSocket {
    /// Makes a socket that is neither connected nor bound; negative, with `errno` set, if there are no more.
    static func make() -> Int32 { socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0) }

    /// Calls `body` with the system's form of `address`. Throws if it has none, since anybody may have made it up.
    static func withAddress<Result>(
        _ address: TransportAddress, _ body: (UnsafeRawBufferPointer) throws(NighError) -> Result
    ) throws(NighError) -> Result {
        let (path, advice) = (address.value, "write unix:// and an absolute path of up to 107 bytes")
        guard address.scheme == "unix", path.hasPrefix("/"), path.utf8.count < 108, !path.utf8.contains(0)
        else {
            throw NighError(.connecting, .invalid("address \(address)"), transport: "unix", advice: advice)
        }
        var system = sockaddr_un()
        system.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &system.sun_path) { $0.copyBytes(from: path.utf8) }
        return try withUnsafeBytes(of: system, body)
    }
}
