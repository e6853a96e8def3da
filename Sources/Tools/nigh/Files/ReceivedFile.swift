import Glibc
import NighCore

/// The destination of a file that is being received: takes its bytes and hashes them. Used on one thread.
protocol ReceivedFile: AnyObject {
    /// The name that a person sees while the file comes.
    var label: String { get }
    /// The number of bytes that are there.
    var count: Int { get }
    /// The hash of those bytes.
    var hash: [UInt8] { get }
    /// Whether no other program can have changed what was written. Must be read from time to time: another program that
    /// opens the file waits for that.
    var isUntouched: Bool { get }
    /// The path of what stays if the transfer does not finish; nil if nothing stays.
    var remains: String? { get }

    /// Continues at `offset`, which is `count` or 0.
    func resume(at offset: Int) throws(FileFailure)
    /// Writes the next bytes.
    func append(_ bytes: ByteSlice) throws(FileFailure)
    /// Completes the file and gives it its name. Returns its path; nil if it has none.
    func keep() throws(FileFailure) -> String?
    /// Drops what was written, if that is possible.
    func discard()
}

/// The standard output, where nothing that was written can be taken back.
final class StandardOutputFile: ReceivedFile {
    let label = "the standard output"
    let isUntouched = true
    let remains: String? = nil
    private(set) var count = 0
    private let running = RunningHash()
    // A copy: closing it at the end leaves the program's own descriptor open.
    private let descriptor = OpenDescriptor(dup(STDOUT_FILENO))

    var hash: [UInt8] { running.value }

    func resume(at offset: Int) throws(FileFailure) {
        guard offset == count else {
            throw FileFailure(
                "the standard output already has bytes that are not the beginning of this file",
                other: "what was already written there is not the beginning of this file")
        }
    }

    func append(_ bytes: ByteSlice) throws(FileFailure) {
        let isWritten = bytes.withUnsafeBytes { raw in
            running.update(raw)
            return descriptor.write(raw)
        }
        guard isWritten else { throw .system("writing to the standard output") }
        count += bytes.count
    }

    func keep() throws(FileFailure) -> String? { nil }

    func discard() {}
}
