import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighFiles

/// Tests what of the user's files and folders is sent.
@Suite struct SourceTreeTests {
    private let files = TemporaryFolder()

    private func path(_ name: String) -> String { "\(files.path)/\(name)" }

    private func make(_ names: String...) {
        for name in names {
            if name.hasSuffix("/") {
                mkdir(path(name), 0o700)
            } else {
                _ = files.file(name, "content of \(name)")
            }
        }
    }

    private func tree(_ names: String..., limit: Int = 100) throws -> SourceTree {
        try SourceTree(names.map { .path(path($0)) }, limit: limit, giveUp: .milliseconds(1))
    }

    private func text(_ file: any SourceFile, at offset: Int = 0, atMost limit: Int = 1_000) throws -> String
    {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: limit, alignment: 1)
        defer { bytes.deallocate() }
        let count = try file.read(into: bytes, at: offset)
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    // MARK: Walking

    @Test func `A folder stands before its content, in the order of the bytes of the names`() throws {
        make("photos/", "photos/b", "photos/B", "photos/ä", "photos/a/", "photos/a/x", "photos/empty/", "z")
        var times = [timespec(tv_sec: 5, tv_nsec: 6), timespec(tv_sec: 7, tv_nsec: 8)]
        try #require(utimensat(AT_FDCWD, path("z"), &times, 0) == 0)
        let items = try tree("z", "photos").items
        #expect(
            items.map(\.path) == [
                "z", "photos", "photos/B", "photos/a", "photos/a/x", "photos/b", "photos/empty", "photos/ä",
            ])
        #expect(items.filter { $0.kind == .folder }.map(\.path) == ["photos", "photos/a", "photos/empty"])
        #expect(items.first == FileItem(path: "z", size: 12, modified: 7_000_000_008))
    }

    @Test func `What is no file or folder is not sent from a folder, and is named`() throws {
        make("d/", "d/f", "d/g/")
        symlink(path("d/f"), path("d/link"))
        symlink("..", path("d/g/up"))
        mkfifo(path("d/pipe"), 0o600)
        let tree = try tree("d")
        #expect(tree.items.map(\.path) == ["d", "d/f", "d/g"])
        #expect(tree.skipped.map(\.path) == [path("d/g/up"), path("d/link"), path("d/pipe")])
        #expect(
            tree.skipped.map(\.reason) == [
                "it is a symbolic link", "it is a symbolic link", "it is a pipe",
            ])
    }

    @Test func `A symbolic link that the user names is followed`() throws {
        make("d/", "d/f")
        symlink(path("d"), path("folder"))
        symlink(path("d/f"), path("file"))
        let tree = try tree("folder", "file")
        #expect(tree.items.map(\.path) == ["folder", "folder/f", "file"])
        #expect(try text(tree.open(1)) == "content of d/f")
        #expect(try text(tree.open(2)) == "content of d/f")
    }

    @Test(arguments: ["d/.", "d/e/..", "d/", "d/./"])
    func `A path that ends without a name gets the name of its folder`(_ name: String) throws {
        make("d/", "d/e/")
        #expect(try tree(name).items.map(\.path) == ["d", "d/e"])
    }

    @Test func `Two files that would arrive under one name are refused, and both are named`() throws {
        make("d/", "d/f", "f")
        let refusal = failure { _ = try tree("f", "d/f") }
        #expect(refusal?.description.contains("\(path("f")) and \(path("d/f"))") == true)
        let renamed = try SourceTree(
            [.path(path("f")), .path(path("d/f"), as: "g")], giveUp: .zero)
        #expect(renamed.items.map(\.path) == ["f", "g"])
        #expect(try text(renamed.open(1)) == "content of d/f")
    }

    @Test(arguments: ["", "a/b", "..", ".", "a\u{0}b"])
    func `A name that leads elsewhere cannot be chosen, and a path without a name is not sent`(name: String) {
        make("f")
        #expect(throws: FileFailure.self) { try SourceTree([.path("/")], giveUp: .zero) }
        #expect(throws: FileFailure.self) { try SourceTree([.path(path("f"), as: name)], giveUp: .zero) }
    }

    @Test func `More files than the limit are refused, with the limit`() throws {
        make("d/", "d/a", "d/b")
        #expect(try tree("d", limit: 3).items.count == 3)
        symlink("a", path("d/c"))
        #expect(failure { _ = try tree("d", limit: 3) }?.description.contains("more than 3 ") == true)
    }

    @Test func `A path with too many names is refused`() throws {
        make("d/")
        for level in 1..<FileItem.mostComponents { make("d" + String(repeating: "/d", count: level) + "/") }
        #expect(try tree("d").items.count == FileItem.mostComponents)
        make("d" + String(repeating: "/d", count: FileItem.mostComponents - 1) + "/f")
        #expect(failure { _ = try tree("d") }?.description.contains("too deep") == true)
    }

    @Test func `A name that is not UTF-8 is sent; one that looks the same is skipped`() throws {
        make("d/")
        let names = [0xFE, 0xFF].map { last in
            path("d/a").utf8CString.dropLast() + [CChar(bitPattern: last), 0]
        }
        // The folder of the test cannot remove such names.
        defer { for name in names { unlink(Array(name)) } }
        for (name, text) in zip(names, ["first", "second"]) {
            let file = OpenDescriptor(open(Array(name), O_WRONLY | O_CREAT, 0o600))
            _ = Array(text.utf8).withUnsafeBytes { file.write($0) }
        }
        let tree = try tree("d")
        #expect(tree.items.map(\.path) == ["d", "d/a\u{FFFD}"])
        #expect(try text(tree.open(1)) == "first")
        #expect(tree.skipped.count == 1)
    }

    // MARK: Opening

    @Test func `Any part of a file can be read, and it ends where it ends`() throws {
        make("f")
        let file = try tree("f").open(0)
        #expect(file.isSeekable)
        #expect(try text(file, at: 8, atMost: 2) == "of")
        #expect(try text(file, at: 8) == "of f")
        #expect(try text(file, at: 100) == "")
        try file.checkUnchanged(12)
    }

    @Test(.timeLimit(.minutes(15)), arguments: [true, false])
    func `A file on which another program holds a lease is sent once that program gives it up`(
        _ isEarly: Bool
    ) throws {
        make("f")
        let early = isEarly ? nil : try tree("f")
        let lease = FileLease(of: OpenDescriptor(open(path("f"), O_RDWR)))
        try #require(lease.isHeld())
        // Not a task, since opening the file blocks the thread of this one.
        var releasing = pthread_t()
        let started = pthread_create(
            &releasing, nil,
            { lease in
                let lease = Unmanaged<FileLease>.fromOpaque(lease!).takeUnretainedValue()
                while lease.isHeld() { sched_yield() }
                return nil
            }, Unmanaged.passUnretained(lease).toOpaque())
        try #require(started == 0)
        let tree = try early ?? tree("f")
        #expect(try text(tree.open(0)) == "content of f")
        pthread_join(releasing, nil)
    }

    private static let changes: [(String, @Sendable (String) -> Void)] = [
        ("grown", { append("x", $0) }),
        ("rewritten", { utimensat(AT_FDCWD, $0, nil, 0) }),
        ("removed", { unlink($0) }),
        (
            "replaced by a file that looks the same",
            { path in
                var status = stat()
                stat(path, &status)
                let text = TemporaryFolder.text(of: path)
                rename(path, path + "-before")
                append(text, path)
                var times = [status.st_atim, status.st_mtim]
                utimensat(AT_FDCWD, path, &times, 0)
            }
        ),
        (
            "replaced by a link to itself",
            { path in
                rename(path, path + "-before")
                symlink(path + "-before", path)
            }
        ),
    ]

    private static func append(_ text: String, _ path: String) {
        let file = OpenDescriptor(open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600))
        _ = Array(text.utf8).withUnsafeBytes { file.write($0) }
    }

    @Test(arguments: changes.indices)
    func `A file that changed since it was offered is not opened`(_ index: Int) throws {
        make("d/", "d/f")
        let tree = try tree("d")
        Self.changes[index].1(path("d/f"))
        let refusal = failure { _ = try tree.open(1) }
        #expect(refusal?.fault.reason == .changed, "\(Self.changes[index].0)")
    }

    @Test func `A file in a folder that became a link is not opened`() throws {
        make("d/", "d/e/", "d/e/f")
        let tree = try tree("d")
        rename(path("d/e"), path("elsewhere"))
        symlink(path("elsewhere"), path("d/e"))
        #expect(failure { _ = try tree.open(2) }?.fault.reason == .changed)
    }

    @Test func `A file that changes while it is read, or is read in part, is reported as changed`() throws {
        make("f")
        let file = try tree("f").open(0)
        #expect(failure { try file.checkUnchanged(11) }?.fault.reason == .changed)
        Self.append("x", path("f"))
        #expect(failure { try file.checkUnchanged(12) }?.fault.reason == .changed)
    }

    // MARK: What can be read only once

    @Test(arguments: [
        ("/proc/version", "version"), ("/sys/class/net/lo/mtu", "mtu"),
        ("/proc/sys/kernel/random", "random/boot_id"),
    ])
    func `A file that the kernel makes up has no size, and its real content`(path: String, name: String)
        throws
    {
        let tree = try SourceTree([.path(path)], giveUp: .zero)
        let index = try #require(tree.items.firstIndex { $0.path == name })
        #expect(tree.items[index].size == nil && tree.items[index].modified == nil)
        let file = try tree.open(index)
        #expect(!file.isSeekable)
        let folder = path[...path.lastIndex(of: "/")!]
        #expect(try text(file) == TemporaryFolder.text(of: "\(folder)\(name)"))
    }

    @Test func `An empty file and a file with a hole have their sizes`() throws {
        _ = files.file("empty", "")
        _ = files.file("hole", "")
        truncate(path("hole"), 10_000)
        make("d/")
        rename(path("empty"), path("d/empty"))
        rename(path("hole"), path("d/hole"))
        #expect(try tree("d").items.map(\.size) == [0, 0, 10_000])
    }

    @Test func `What is written into a pipe can be read once, in pieces, up to the end`() throws {
        try #require(mkfifo(path("pipe"), 0o600) == 0)
        let tree = try tree("pipe")
        #expect(tree.items.map(\.size) == [nil])
        let file = try tree.open(0)
        var writer: OpenDescriptor? = OpenDescriptor(
            open(path("pipe"), O_WRONLY | O_NONBLOCK | O_CLOEXEC))
        _ = Array("ab".utf8).withUnsafeBytes { writer?.write($0) }
        #expect(try text(file) == "ab")
        _ = Array("c".utf8).withUnsafeBytes { writer?.write($0) }
        writer = nil
        #expect(try text(file, at: 2) == "c")
        #expect(try text(file, at: 3) == "")
        #expect(throws: FileFailure.self) { try text(tree.open(0)) }
    }

    @Test func `The wait for a program that writes into a pipe ends`() throws {
        try #require(mkfifo(path("pipe"), 0o600) == 0)
        let file = try tree("pipe").open(0)
        let refusal = failure { _ = try text(file) }
        #expect(refusal?.description.contains("nobody has written") == true)
        #expect(refusal?.fault.reason == .cancelled)
    }
}
