// The system calls for AF_UNIX sockets: how one is made, and who is at the other end.
import Glibc
import NighCore
import NighUV

enum UnixSocket {
    /// A socket connected to whoever listens at `address`; nil while as many wait there as may.
    static func connect(to address: TransportAddress) throws(NighError) -> Int32? {
        let path = address.value
        guard address.scheme == "unix", path.hasPrefix("/"), path.utf8.count < 108, !path.utf8.contains(0)
        else {
            let advice = "write unix:// and an absolute path of up to 107 bytes"
            throw NighError(.connecting, .invalid("address \(address)"), transport: "unix", advice: advice)
        }
        var facts = stat()  // The system would follow a link, to whatever listens where that leads.
        if lstat(path, &facts) == 0, facts.st_mode & S_IFMT != S_IFSOCK {
            throw NighError(
                .connecting, .invalid("address \(address), which is no socket"), transport: "unix")
        }
        guard let descriptor = make(path, Glibc.connect) else {
            if errno == EAGAIN { return nil }
            throw SocketFault(errno == ENOENT ? ECONNREFUSED : errno).error(.connecting, transport: "unix")
        }
        if isPeerTrusted(descriptor) { return descriptor }
        close(descriptor)
        throw NighError(
            .connecting, .system(EACCES, "another user's program listens there"), transport: "unix")
    }

    /// Whether a program of this user, or root's, has opened the other end.
    static func isPeerTrusted(_ descriptor: Int32) -> Bool {
        var credentials: (process: pid_t, user: uid_t, group: gid_t) = (0, .max, 0)  // The system's `ucred`.
        var size = socklen_t(MemoryLayout.size(ofValue: credentials))
        let result = getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size)
        return result == 0 && (credentials.user == geteuid() || credentials.user == 0)
    }

    typealias Call = (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32

    /// A socket that does not block, once `call` took the address; nil where it did not, and `errno` says why.
    static func make(_ path: String, _ call: Call) -> Int32? {
        let kind = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        let descriptor = socket(AF_UNIX, Int32(kind), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout.size(ofValue: address))
        let result = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                descriptor < 0 ? -1 : call(descriptor, $0, size)
            }
        }
        if result == 0 { return descriptor }
        let reason = errno
        close(descriptor)
        errno = reason
        return nil
    }
}
