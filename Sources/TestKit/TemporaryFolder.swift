import Glibc

/// A folder for one test. It is removed with all its contents when the test releases this object.
public final class TemporaryFolder: Sendable {
    /// The path of the folder.
    public let path: String

    /// Makes a folder in `/tmp`. Stops the program if that fails.
    public init() {
        var template = Array("/tmp/nigh-test-XXXXXX".utf8CString)
        path = template.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress, let made = mkdtemp(base) else {
                fatalError("no temporary folder in /tmp")
            }
            return String(cString: made)
        }
    }

    deinit { Self.remove(path) }

    private static func remove(_ path: String) {
        for name in names(in: path) { remove(path + "/" + name) }
        if unlink(path) != 0 { rmdir(path) }
    }

    /// Returns the names in the folder at `path`, sorted; an empty array if it is no folder.
    package static func names(in path: String) -> [String] {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, let folder = opendir(path) else {
            return []
        }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { tuple in
                tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// Writes a file with this content and mode into the folder, and returns its path.
    package func file(_ name: String, _ text: String, mode: mode_t = 0o600) -> String {
        let file = path + "/" + name
        let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        precondition(descriptor >= 0 && fchmod(descriptor, mode) == 0)
        let bytes = Array(text.utf8)
        precondition(write(descriptor, bytes, bytes.count) == bytes.count)
        close(descriptor)
        return file
    }

    /// Returns the content of the file at `path`.
    package static func text(of path: String) -> String {
        let descriptor = open(path, O_RDONLY)
        precondition(descriptor >= 0)
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &piece, piece.count)
            guard count > 0 else { break }
            bytes += piece.prefix(count)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the permission bits of the file at `path`.
    package static func mode(of path: String) -> mode_t {
        var status = stat()
        precondition(stat(path, &status) == 0)
        return status.st_mode & 0o7777
    }
}
