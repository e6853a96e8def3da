import Foundation

/// Reads and writes whole files and folders.
enum Folder {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Returns the paths of all files below `path`, relative to it and sorted. Hidden files and folders are left out.
    static func files(below path: String) -> [String] {
        let root = URL(filePath: path, directoryHint: .isDirectory).standardizedFileURL
        let keys: [URLResourceKey] = [.isRegularFileKey]
        let found = FileManager.default.enumerator(
            at: root, includingPropertiesForKeys: keys, options: .skipsHiddenFiles)
        let files = (found?.compactMap { $0 as? URL } ?? []).filter {
            (try? $0.resourceValues(forKeys: Set(keys)).isRegularFile) == true
        }
        return files.map { String($0.standardizedFileURL.path.dropFirst(root.path.count + 1)) }.sorted()
    }

    static func bytes(of path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: path)))
    }

    static func text(of path: String) throws -> String {
        String(decoding: try bytes(of: path), as: UTF8.self)
    }

    /// Writes `bytes` to the file. A file that has this content already keeps its date, so it is not compiled again.
    static func write(_ bytes: [UInt8], to path: String) throws {
        if let known = try? self.bytes(of: path), known == bytes { return }
        let file = URL(filePath: path)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: file)
    }
}
