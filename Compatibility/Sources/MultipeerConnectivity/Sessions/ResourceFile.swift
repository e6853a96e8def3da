import NighCore

/// A file that is sent or received, in pieces.
///
/// `@unchecked Sendable`: the one task that transfers the file uses the handle.
final class ResourceFile: @unchecked Sendable {
    let size: Int64
    private let handle: FileHandle

    static let pieceCount = 64 << 10

    /// Opens a file for reading.
    init(reading url: URL) throws {
        handle = try FileHandle(forReadingFrom: url)
        var status = stat()
        guard fstat(handle.fileDescriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw MCError(.invalidParameter, "\(url.path) is not a file")
        }
        size = Int64(status.st_size)
    }

    /// Creates a file of this size.
    init(creating url: URL, size: Int64) throws {
        guard
            FileManager.default.createFile(
                atPath: url.path, contents: nil, attributes: [.posixPermissions: 0o600])
        else { throw MCError(.unknown, "\(url.path) cannot be created") }
        handle = try FileHandle(forWritingTo: url)
        self.size = size
    }

    /// Reads the next piece; nil at the end.
    func read() throws -> Data? {
        let data = try handle.read(upToCount: Self.pieceCount)
        return data.flatMap { $0.isEmpty ? nil : $0 }
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws { try handle.write(contentsOf: Data(bytes)) }

    /// Closes the file. An error means that some of its bytes may be lost.
    func close() throws { try handle.close() }
}
