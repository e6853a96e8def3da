import Glibc
import NighCore

/// The standard output as the place of one file. Written bytes cannot be read or taken back, so no other transfer can
/// follow it, not even one of the same file.
package final class StandardOutput {
    /// The number of bytes that were written.
    fileprivate var count = 0
    /// The bytes of the next write that were written already, because it is the last one again, which failed half way.
    fileprivate var partialCount = 0
    fileprivate let descriptor: OpenDescriptor

    /// Writes to the standard output, or another descriptor. It stays open at the end.
    package init(_ number: Int32 = STDOUT_FILENO) {
        descriptor = OpenDescriptor(fcntl(number, F_DUPFD_CLOEXEC, 0))
    }

    /// Whether anything was written, so that no other transfer can follow.
    package var isBegun: Bool { count > 0 || partialCount > 0 }

    fileprivate var isUsed: FileFailure {
        FileFailure(
            "the standard output has the beginning of an earlier transfer, which cannot be taken back",
            other: "the beginning of an earlier transfer was written there and cannot be taken back")
    }
}

/// Receives a single file to the standard output.
package final class StandardOutputStore: FileStore {
    private let output: StandardOutput
    private let items: [FileItem]

    package init(_ output: StandardOutput, items: [FileItem]) {
        self.output = output
        self.items = items
    }

    package var room: Int? { nil }

    package var present: Int { 0 }

    package func open(_ index: Int) throws(FileFailure) -> StoredItem { .part(try openAnew(index)) }

    package func openAnew(_ index: Int) throws(FileFailure) -> any StoredPart {
        guard items.count == 1, items[index].kind == .file else {
            throw FileFailure(
                "only a single file can be written to the standard output",
                other: "only a single file can be received there")
        }
        guard !output.isBegun else { throw output.isUsed }
        return StandardOutputPart(output)
    }

    package func finish() {}
}

/// The file that is written to the standard output.
package final class StandardOutputPart: StoredPart {
    private let output: StandardOutput

    fileprivate init(_ output: StandardOutput) { self.output = output }

    package var count: Int { output.count }
    package var isUntouched: Bool { true }

    package func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileFailure) -> Int {
        guard offset < count else { return 0 }
        throw FileFailure("what was written to the standard output cannot be read again")
    }

    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileFailure) {
        try check(offset)
        while output.partialCount < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[output.partialCount...])
            let count = output.descriptor.writeNext(rest)
            guard count > 0 else { throw .system("writing to the standard output") }
            output.partialCount += count
        }
        output.partialCount = 0
        output.count += bytes.count
    }

    package func truncate(to count: Int) throws(FileFailure) { try check(count) }

    private func check(_ offset: Int) throws(FileFailure) {
        guard offset == count else { throw output.isUsed }
    }

    package func keep(_ hash: [UInt8]) -> String? { nil }

    package func discard() {}
}
