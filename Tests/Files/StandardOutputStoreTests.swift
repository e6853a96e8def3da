import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighFiles

/// Tests receiving to the standard output.
@Suite struct StandardOutputStoreTests {
    private let files = TemporaryFolder()

    private func store(_ output: StandardOutput, _ paths: String...) -> StandardOutputStore {
        StandardOutputStore(output, items: paths.map { FileItem(path: $0, size: nil) })
    }

    /// Stands for the standard output.
    private func output() -> (StandardOutput, path: String) {
        let path = files.file("output", "")
        let file = OpenDescriptor(open(path, O_WRONLY))
        return (StandardOutput(file.number), path)
    }

    @Test func `A file is written once, and nothing that was written is read or taken back`() throws {
        let (output, path) = output()
        let part = try store(output, "f").part()
        try part.write("abc")
        #expect(throws: FileFailure.self) { try part.write("x", at: 0) }
        #expect(throws: FileFailure.self) { try part.truncate(to: 0) }
        #expect(throws: FileFailure.self) { _ = try part.text }
        try part.truncate(to: 3)
        try part.write("def")
        #expect(try part.keep("abcdef") == nil)
        #expect(TemporaryFolder.text(of: path) == "abcdef")
    }

    @Test func `Nothing is written behind what a transfer has begun to write`() throws {
        let (output, _) = output()
        _ = try store(output, "f").part()
        try store(output, "g").part().write("abc")
        for name in ["f", "g"] {
            #expect(
                failure { _ = try store(output, name).part() }?.description.contains("taken back") == true)
        }
    }

    @Test func `Folders and several files are refused`() {
        let (output, _) = output()
        #expect(throws: FileFailure.self) { try store(output, "f", "g").part() }
        let folder = StandardOutputStore(output, items: [FileItem(.folder, path: "d", size: 0)])
        #expect(throws: FileFailure.self) { try folder.part() }
    }

    @Test func `A write that failed half way is repeated without its first half`() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (reading, writing) = (OpenDescriptor(ends[0]), OpenDescriptor(ends[1]))
        for end in ends { try #require(fcntl(end, F_SETFL, O_NONBLOCK) == 0) }
        let part = try store(StandardOutput(writing.number), "f").part()
        let bytes = content(100_000)
        var come: [UInt8] = []
        var failures = 0
        while come.count < bytes.count, failures < 100 {
            let isWritten = bytes.withUnsafeBytes { bytes in
                failure { try part.write(bytes, at: 0) } == nil
            }
            if !isWritten { failures += 1 }
            var buffer = [UInt8](repeating: 0, count: bytes.count)
            let count = buffer.withUnsafeMutableBytes { reading.readNext(into: $0) }
            come += buffer.prefix(max(count, 0))
        }
        #expect(failures > 0 && come == bytes && part.count == bytes.count)
    }

    @Test func `A full disk is reported as one`() throws {
        let full = OpenDescriptor(open("/dev/full", O_WRONLY))
        let part = try store(StandardOutput(full.number), "f").part()
        #expect(failure { try part.write("abc") }?.fault.reason == .noSpace)
    }
}
