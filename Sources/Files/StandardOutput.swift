import Glibc
import NighCore

/// The standard output as the place of one file. What was written cannot be read or taken back. If the transfer is cut, the
/// same sender continues behind it while the program runs.
package final class StandardOutput {
    /// The number of bytes that were written.
    fileprivate var count = 0
    fileprivate let hash = RunningHash()
    fileprivate let descriptor: OpenDescriptor
    /// The sender and the name of the file whose bytes were written.
    fileprivate var owner: (sender: PeerID, name: String)?

    /// Writes to the standard output, or another descriptor. It stays open at the end.
    package init(_ number: Int32 = STDOUT_FILENO) {
        descriptor = OpenDescriptor(fcntl(number, F_DUPFD_CLOEXEC, 0))
    }
}

/// Receives a single file to the standard output.
package final class StandardOutputStore: FileStore {
    private let output: StandardOutput
    private let sender: PeerID
    private let items: [FileItem]

    package init(_ output: StandardOutput, sender: PeerID, items: [FileItem]) {
        self.output = output
        self.sender = sender
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
        let name = items[index].path
        if let owner = output.owner {
            guard owner.sender == sender, owner.name.utf8.elementsEqual(name.utf8) else {
                throw FileFailure(
                    "the standard output is in use for another file",
                    other: "another file is being received there")
            }
        }
        output.owner = (sender, name)
        return StandardOutputPart(output)
    }

    package func finish() {}
}

/// The file that is written to the standard output.
package final class StandardOutputPart: StoredPart {
    private let output: StandardOutput

    fileprivate init(_ output: StandardOutput) { self.output = output }

    package var count: Int { output.count }
    /// The hash of what was written, which cannot be read again.
    package var hash: [UInt8] { output.hash.value }
    package var isUntouched: Bool { true }
    package var remains: String? { nil }

    package func reserve(_ size: Int, upTo end: Int) {}

    package func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileFailure) -> Int {
        guard offset < count else { return 0 }
        throw FileFailure("what was written to the standard output cannot be read again")
    }

    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileFailure) {
        try check(offset)
        guard output.descriptor.write(bytes) else { throw .system("writing to the standard output") }
        output.hash.update(bytes)
        output.count += bytes.count
    }

    package func truncate(to count: Int) throws(FileFailure) { try check(count) }

    private func check(_ offset: Int) throws(FileFailure) {
        guard offset == count else {
            throw FileFailure(
                "the standard output already has bytes that are not the beginning of this file",
                other: "what was already written there is not the beginning of this file")
        }
    }

    package func keep(_ hash: [UInt8]) -> String? { nil }

    package func discard() {}
}
