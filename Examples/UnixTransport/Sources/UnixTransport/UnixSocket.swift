// The system calls for AF_UNIX sockets: connecting, listening, and who is at the other end.
import Glibc
import NighCore
import NighUV

enum UnixSocket {
    /// A socket connected to whoever listens at `address`; nil while as many wait there as may.
    static func connect(to address: TransportAddress) throws(NighError) -> Int32? {
        func failure(_ cause: NighError.Cause, _ advice: String? = nil) -> NighError {
            NighError(.connecting, cause, peer: address.description, transport: "unix", advice: advice)
        }
        let path = address.value
        guard address.scheme == "unix", path.hasPrefix("/"), path.utf8.count < 108, !path.utf8.contains(0)
        else {
            throw failure(.invalid("address"), "write unix:// and an absolute path of up to 107 bytes")
        }
        var facts = stat()
        // Where no socket is any more, nobody listens. A link is not followed, to whatever listens where that leads.
        guard lstat(path, &facts) == 0 else {
            throw failure(
                SocketFault(errno == ENOENT ? ECONNREFUSED : errno).cause, "is the program running there?")
        }
        guard facts.st_mode & S_IFMT == S_IFSOCK else {
            throw failure(.invalid("address: that is no socket"))
        }
        guard let descriptor = make(path, Glibc.connect) else {
            if errno == EAGAIN { return nil }
            throw SocketFault(errno).error(.connecting, transport: "unix", peer: address.description)
        }
        guard isPeerTrusted(descriptor) else {
            close(descriptor)
            throw failure(.system(EACCES, "the program there is another user's"))
        }
        return descriptor
    }

    /// A socket that listens at `path`, where nothing may be yet.
    static func listen(at path: String) throws(NighError) -> Int32 {
        guard let descriptor = make(path, bind), Glibc.listen(descriptor, 64) == 0 else {
            throw SocketFault(errno).error(.advertising, transport: "unix", peer: path)
        }
        return descriptor
    }

    /// Whether a program of this user, or root's, has opened the other end.
    static func isPeerTrusted(_ descriptor: Int32) -> Bool {
        var credentials: (process: pid_t, user: uid_t, group: gid_t) = (0, .max, 0)  // The system's `ucred`.
        var size = socklen_t(MemoryLayout.size(ofValue: credentials))
        return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0
            && (credentials.user == geteuid() || credentials.user == 0)
    }

    /// A socket that does not block, once `call` has given it the address `path`; nil if that fails, for the reason in `errno`.
    private static func make(
        _ path: String, _ call: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32
    ) -> Int32? {
        let kind = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        let descriptor = socket(AF_UNIX, Int32(kind), 0)
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                call(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result != 0 else { return descriptor }
        let reason = errno
        close(descriptor)
        errno = reason
        return nil
    }
}
