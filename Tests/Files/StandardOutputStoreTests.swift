import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighFiles

/// Tests receiving to the standard output.
@Suite struct StandardOutputStoreTests {
    private let sender = Identity.ephemeral().peerID
    private let files = TemporaryFolder()

    private func store(_ output: StandardOutput, _ paths: String..., from other: PeerID? = nil)
        -> StandardOutputStore
    {
        StandardOutputStore(
            output, sender: other ?? sender, items: paths.map { FileItem(path: $0, size: nil) })
    }

    /// Stands for the standard output.
    private func output() -> (StandardOutput, path: String) {
        let path = files.file("output", "")
        let file = OpenDescriptor(open(path, O_WRONLY))
        return (StandardOutput(file.number), path)
    }

    @Test("A file is written once, and continued by the next offer of the same file")
    func continued() throws {
        let (output, path) = output()
        try store(output, "f").part().write("abc")
        let part = try store(output, "f").part()
        #expect(part.count == 3)
        #expect(throws: FileFailure.self) { try part.write("x", at: 0) }
        #expect(throws: FileFailure.self) { try part.truncate(to: 0) }
        #expect(throws: FileFailure.self) { _ = try part.text }
        try part.truncate(to: 3)
        try part.write("def")
        #expect(try part.keep("abcdef") == nil)
        #expect(part.remains == nil && TemporaryFolder.text(of: path) == "abcdef")
        let whole = Array("abcdef".utf8).withUnsafeBytes { SHA256.hash($0) }
        #expect((part as? StandardOutputPart)?.hash == whole)
    }

    @Test("Another file is not written behind it")
    func otherFile() throws {
        let (output, _) = output()
        try store(output, "f").part().write("abc")
        #expect(throws: FileFailure.self) { try store(output, "g").part() }
        #expect(throws: FileFailure.self) { try store(output, "f", from: Identity.ephemeral().peerID).part() }
    }

    @Test("Folders and several files are refused")
    func refused() {
        let (output, _) = output()
        #expect(throws: FileFailure.self) { try store(output, "f", "g").part() }
        let folder = StandardOutputStore(
            output, sender: sender, items: [FileItem(.folder, path: "d", size: 0)])
        #expect(throws: FileFailure.self) { try folder.part() }
    }

    @Test("A full disk is reported as one")
    func fullDisk() throws {
        let full = OpenDescriptor(open("/dev/full", O_WRONLY))
        let part = try store(StandardOutput(full.number), "f").part()
        #expect(failure { try part.write("abc") }?.fault.reason == .noSpace)
    }
}
