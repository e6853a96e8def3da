import Glibc
import NighCore

/// A session's place among the sessions that use an identity now: a locked file in the user's data folder.
///
/// Two sessions of one key and one service would be one peer to everybody else. So of each service, the session with
/// the number 0 uses the identity's own key, and all others use delegates of it. The system releases the lock when the
/// program ends, however it ends.
package struct IdentityPlace: Hashable, Sendable {
    /// The service of the session.
    package let service: ServiceName
    /// The number among the sessions of this identity and service.
    package let number: Int
    /// The process that runs the session, if it is known.
    package let process: Int32?

    /// Whether the session uses the identity's own key.
    package var isFirst: Bool { number == 0 }

    /// The most places of one identity and service. Further sessions use delegates as well, and are not listed.
    private static let maximumCount = 64

    /// The folder with the files of this user's places; nil if there is no home folder.
    package static var folder: String? { DataFolder.ofThisUser.map { "\($0)/uses" } }

    private static func fileName(_ service: ServiceName, _ identity: PeerID, _ number: Int) -> String {
        "\(service).\(identity).\(number)"
    }

    // MARK: Taking a place

    /// A place that this program has taken.
    struct Taken {
        let number: Int
        let path: String
        /// The descriptor whose lock is the place.
        let descriptor: Int32

        /// Gives the place up.
        func release() {
            // The file goes before the lock, so that nobody has the lock of a file that is gone.
            unlink(path)
            close(descriptor)
        }
    }

    /// Why no place was taken.
    enum Obstacle: Error {
        /// All are taken.
        case full
        /// The folder cannot be written, or its file system has no locks, so nobody can tell who uses the identity.
        case noFolder
    }

    /// Takes the first free place from `lowest` on.
    static func take(
        _ service: ServiceName, of identity: PeerID, from lowest: Int, in folder: String?
    ) throws(Obstacle) -> Taken {
        guard let folder else { throw .noFolder }
        mkdir(folder, 0o700)
        for number in lowest..<maximumCount {
            let path = "\(folder)/\(fileName(service, identity, number))"
            while true {
                let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
                guard descriptor >= 0 else { throw .noFolder }
                guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                    let isTaken = errno == EWOULDBLOCK
                    close(descriptor)
                    if isTaken { break }
                    throw .noFolder
                }
                // The program that had the place may have removed the file before the lock was free.
                guard isStillThere(descriptor, path) else {
                    close(descriptor)
                    continue
                }
                let text = Array("\(getpid())\n".utf8)
                _ = ftruncate(descriptor, 0)
                _ = pwrite(descriptor, text, text.count, 0)
                return Taken(number: number, path: path, descriptor: descriptor)
            }
        }
        throw .full
    }

    private static func isStillThere(_ descriptor: Int32, _ path: String) -> Bool {
        var (opened, named) = (stat(), stat())
        return fstat(descriptor, &opened) == 0 && lstat(path, &named) == 0 && opened.st_ino == named.st_ino
            && opened.st_dev == named.st_dev
    }

    // MARK: Listing

    /// The places of an identity that are taken now, by service and number.
    package static func all(of identity: PeerID, in folder: String? = Self.folder) -> [IdentityPlace] {
        guard let folder, let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var places: [IdentityPlace] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            let parts = name.split(separator: ".")
            guard parts.count == 3, parts[1] == identity.description,
                let service = ServiceName(String(parts[0])),
                let number = Int(parts[2]), name == fileName(service, identity, number),
                let process = holder(of: "\(folder)/\(name)")
            else { continue }
            places.append(
                IdentityPlace(service: service, number: number, process: process > 0 ? process : nil))
        }
        return places.sorted { ($0.service.description, $0.number) < ($1.service.description, $1.number) }
    }

    /// The process that holds the lock of the file; 0 if it is not known. Nil if nobody holds it.
    private static func holder(of path: String) -> Int32? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_SH | LOCK_NB) != 0 else { return nil }
        var text = [UInt8](repeating: 0, count: 16)
        let count = pread(descriptor, &text, text.count, 0)
        return Int32(
            String(decoding: text.prefix(max(count, 0)).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
            ?? 0
    }

    /// The command of the process, as a person knows it: the program, and its first word if that is no option. Nil if
    /// the process is not known.
    package var command: String? {
        guard let process else { return nil }
        let descriptor = open("/proc/\(process)/cmdline", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var text = [UInt8](repeating: 0, count: 4_096)
        let count = read(descriptor, &text, text.count)
        let words = text.prefix(max(count, 0)).split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
        guard let program = words.first?.split(separator: "/").last else { return nil }
        let first =
            words.dropFirst().first.map { $0.hasPrefix("-") || $0.contains("/") ? "" : " \($0)" } ?? ""
        return DisplayName(fitting: "\(program)\(first)").description
    }
}
