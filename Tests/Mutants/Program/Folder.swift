import Glibc

/// Reads and writes whole files and folders.
enum Folder {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Returns the paths of all files below `path`, relative to it and sorted.
    static func files(below path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var found: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { tuple in
                tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard !name.hasPrefix(".") else { continue }
            if isFolder("\(path)/\(name)") {
                found += files(below: "\(path)/\(name)").map { "\(name)/\($0)" }
            } else {
                found.append(name)
            }
        }
        return found.sorted()
    }

    static func bytes(of path: String) throws -> [UInt8] {
        guard let file = fopen(path, "r") else {
            throw Failure(description: "\(path) cannot be read: \(errno)")
        }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            if count == 0 { return bytes }
            bytes += buffer[..<count]
        }
    }

    static func text(of path: String) throws -> String {
        String(decoding: try bytes(of: path), as: UTF8.self)
    }

    /// Writes `bytes` to the file. A file that has this content already keeps its date, so it is not compiled again.
    static func write(_ bytes: [UInt8], to path: String) throws {
        if let known = try? self.bytes(of: path), known == bytes { return }
        makeFolder(of: path)
        guard let file = fopen(path, "w") else {
            throw Failure(description: "\(path) cannot be written: \(errno)")
        }
        let written = fwrite(bytes, 1, bytes.count, file)
        guard fclose(file) == 0, written == bytes.count else {
            throw Failure(description: "\(path) cannot be written: \(errno)")
        }
    }

    private static func makeFolder(of path: String) {
        var made = path.hasPrefix("/") ? "/" : ""
        for name in path.split(separator: "/").dropLast() {
            made += "\(name)/"
            mkdir(made, 0o755)
        }
    }
}
