import Glibc
import NighCore
import NighSystem

/// The folder with the sockets of the desks of this user's programs, each named after its process.
public enum GuestDeskFolder {
    /// How long a desk has to answer.
    private static let patience = timeval(tv_sec: 3, tv_usec: 0)

    /// The folder; nil if this user has none.
    private static var path: String? {
        if let folder = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), folder.hasPrefix("/") {
            return folder + "/nigh-guests"
        }
        return DataFolder.ofThisUser.map { $0 + "/guests" }
    }

    /// Returns the path of this process's socket, and makes the folder if it is missing. Nil if others could get into
    /// the folder.
    static func newPath() -> String? {
        guard let path else { return nil }
        let parent = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(
            separator: "/")
        mkdir(parent, 0o700)
        mkdir(path, 0o700)
        var about = stat()
        guard lstat(path, &about) == 0, about.st_mode & S_IFMT == S_IFDIR, about.st_uid == geteuid(),
            about.st_mode & 0o077 == 0
        else { return nil }
        return "\(path)/\(getpid())"
    }

    /// Returns the address of a socket; nil if its path is too long for one.
    static func address(of path: String) -> sockaddr_un? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { space in
            guard path.utf8.count < space.count else { return false }
            space.copyBytes(from: path.utf8)
            return true
        }
        return fits ? address : nil
    }

    /// Asks all running programs of this user. Returns the answers by process. Blocks until all have answered, or had
    /// their time. Sockets that programs have left behind are removed.
    public static func ask(_ request: String) -> [(process: Int32, lines: [[String]])] {
        guard let path, let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var processes: [Int32] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if let process = Int32(name) { processes.append(process) }
        }
        return processes.sorted().compactMap { process in
            answer(to: request, at: "\(path)/\(process)").map { (process, $0) }
        }
    }

    private static func answer(to request: String, at path: String) -> [[String]]? {
        guard var address = address(of: path) else { return nil }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var patience = patience
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else {
            if errno == ECONNREFUSED { unlink(path) }
            return nil
        }
        let line = Array("\(request)\n".utf8)
        guard send(descriptor, line, line.count, Int32(MSG_NOSIGNAL)) == line.count else { return nil }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = recv(descriptor, &part, part.count, 0)
            guard count > 0 else { break }
            bytes += part[..<count]
        }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { line in
            line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
    }
}
