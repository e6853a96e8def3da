import Glibc
import NighCore

/// A file of a known size that is being sent. Any part of it can be read at any time.
final class SeekableFile: SourceFile {
    let isSeekable = true
    private let file: OpenDescriptor
    private let label: String
    private let size: Int
    private let before: stat

    init(_ file: OpenDescriptor, label: String, size: Int, _ status: stat) {
        self.file = file
        self.label = label
        self.size = size
        before = status
    }

    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileFailure) -> Int {
        let count = file.fill(bytes, at: offset)
        guard count >= 0 else { throw .system("reading \(label)") }
        return count
    }

    func checkUnchanged(_ count: Int) throws(FileFailure) {
        guard count == size, let after = file.status, after.isUnchanged(since: before) else {
            throw .changed(label)
        }
    }
}
