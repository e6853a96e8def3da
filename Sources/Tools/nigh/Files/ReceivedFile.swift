import Glibc
import NighCore

/// Where a file that is being received goes: its bytes, and the hash of them. For one thread.
protocol ReceivedFile: AnyObject {
    /// What a person knows it by while it comes.
    var label: String { get }
    /// How much of it is there.
    var count: Int { get }
    /// The hash of that.
    var hash: [UInt8] { get }
    /// Whether nobody else can have changed what was written. To be asked from time to time: others may wait for it.
    var isUntouched: Bool { get }
    /// What stays where it does not come to its end, if anything does.
    var remains: String? { get }

    /// Goes on at `offset`, which is where it stands, or 0.
    func resume(at offset: Int) throws(FileFailure)
    /// Writes what comes next.
    func append(_ bytes: ByteSlice) throws(FileFailure)
    /// Everything is there: gives it its name. Returns its path; nil where it has none.
    func keep() throws(FileFailure) -> String?
    /// It is worth nothing.
    func discard()
}

/// The standard output, whose bytes cannot be taken back.
final class StandardOutputFile: ReceivedFile {
    let label = "the standard output"
    let isUntouched = true
    let remains: String? = nil
    private(set) var count = 0
    private let running = RunningHash()
    // A copy: closing it at the end leaves the program's own as it was.
    private let descriptor = OpenDescriptor(dup(STDOUT_FILENO))

    var hash: [UInt8] { running.value }

    func resume(at offset: Int) throws(FileFailure) {
        guard offset == count else {
            throw FileFailure(
                "what was written to the standard output is not how the file begins, and cannot be taken back",
                other: "what was written there already cannot be taken back")
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
