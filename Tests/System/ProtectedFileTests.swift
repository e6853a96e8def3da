import Glibc
import NighTestKit
import Testing

@testable import NighCore
@testable import NighSystem

/// Which files are read and written, whatever is in them. Identity, name and known peers are all kept in such files.
@Suite struct ProtectedFileTests {
    private let folder = TemporaryFolder()
    private var path: String { folder.path + "/nigh/file" }

    private func file(
        _ path: String? = nil, isReplaced: Bool = true, lockTimeout: Moment.Span = .seconds(10)
    ) -> ProtectedFile {
        let kind = ProtectedFile.Kind(
            stage: .trusting, name: "test file", maximumByteCount: 100, tooLarge: "it is too large",
            forbiddenMode: 0o022, exposed: "others may write it", isReplaced: isReplaced,
            replaceAdvice: "remove it")
        return ProtectedFile(path: path ?? self.path, kind: kind, lockTimeout: lockTimeout)
    }

    private let content = SecretBytes(copying: Array("content".utf8))

    private func write(_ file: ProtectedFile) throws {
        try file.withLock { () throws(NighError) in try file.replace(with: content) }
    }

    private func text(_ file: ProtectedFile) throws -> String? {
        try file.read()?.withBytes { String(decoding: $0, as: UTF8.self) }
    }

    /// The sentence of the error.
    private func refusal(_ body: @autoclosure () throws -> some Any) -> String {
        let error = #expect(throws: NighError.self) { _ = try body() }
        #expect(error?.stage == .trusting)
        return error.map { "\($0)" } ?? ""
    }

    @Test func `What is written belongs to its user alone, in a folder that keeps its mode`() throws {
        #expect(try file().read() == nil)
        #expect(TemporaryFolder.names(in: folder.path).isEmpty, "reading makes no file")
        chmod(folder.path, 0o755)
        for (name, isCreated) in [("created", true), ("replaced", false)] {
            let file = file("\(folder.path)/\(name)/nigh/file")
            if isCreated { try file.create(content) } else { try write(file) }
            #expect(TemporaryFolder.mode(of: file.path) == 0o600)
            #expect(TemporaryFolder.mode(of: "\(folder.path)/\(name)") == 0o700)
            #expect(TemporaryFolder.mode(of: "\(folder.path)/\(name)/nigh") == 0o700)
            #expect(
                TemporaryFolder.names(in: "\(folder.path)/\(name)/nigh")
                    == (isCreated ? ["file"] : [".file.lock", "file"]))
            #expect(try text(file) == "content")
            // A file that exists is not created again.
            try file.create(SecretBytes(copying: [1]))
            #expect(try text(file) == "content")
        }
        #expect(TemporaryFolder.mode(of: folder.path) == 0o755)
    }

    @Test(arguments: [0o620, 0o602, 0o666] as [mode_t])
    func `A file that others may write is refused, and one that they may read becomes private`(
        mode: mode_t
    ) throws {
        let file = file(folder.file("Ada's file", "text", mode: mode))
        let sentence = refusal(try file.read())
        #expect(sentence.contains("others may write it (mode \(String(mode, radix: 8)))"))
        #expect(sentence.hasSuffix("`chmod 600 '\(folder.path)/Ada'\\''s file'`"), "it can be pasted")
        #expect(TemporaryFolder.mode(of: file.path) == mode, "the file's owner decides, not this program")
        chmod(file.path, 0o644)
        #expect(try text(file) == "text")
        try write(file)
        #expect(TemporaryFolder.mode(of: file.path) == 0o600)
    }

    @Test func `A file that others could replace is neither read nor written`() throws {
        try write(file())
        let inner = folder.path + "/nigh"
        for place in [inner, folder.path] {
            chmod(place, 0o777)
            for path in [path, inner + "/new"] {
                let file = file(path)
                let refusals = [
                    path == self.path ? refusal(try file.read()) : "", refusal(try file.create(content)),
                    refusal(try write(file)),
                ]
                for sentence in refusals where !sentence.isEmpty {
                    #expect(sentence.contains("others may write"))
                    #expect(sentence.hasSuffix("`chmod go-w \(place)`"))
                }
            }
            chmod(place, 0o1777)
            #expect(try text(file()) == "content")
            chmod(place, 0o700)
        }
        #expect(TemporaryFolder.names(in: inner) == [".file.lock", "file"])
    }

    @Test func `A file of another user is refused`() {
        // Only root can give a file away. Other users take /etc/passwd, which belongs to root.
        var path = "/etc/passwd"
        if geteuid() == 0 {
            path = folder.file("file", "text")
            #expect(chown(path, 12_345, 12_345) == 0)
        }
        let sentence = refusal(try file(path).read())
        #expect(sentence.contains("it belongs to user") && sentence.contains("`chown \(geteuid()) \(path)`"))
    }

    @Test func `Only a regular file with something in it, and not too much, is read`() throws {
        #expect(mkdir(folder.path + "/directory", 0o700) == 0)
        #expect(mkfifo(folder.path + "/pipe", 0o600) == 0)
        for path in [folder.path + "/directory", folder.path + "/pipe", "/dev/null"] {
            #expect(refusal(try file(path).read()).contains("it is not a regular file"), "\(path)")
        }
        #expect(refusal(try file(folder.file("a", "")).read()).contains("it is empty"))
        let most = String(repeating: "x", count: 100)
        #expect(try text(file(folder.file("b", most))) == most)
        #expect(refusal(try file(folder.file("c", most + "x")).read()).contains("it is too large"))
    }

    @Test func `A link is followed unless the file is replaced, and nothing is written through one`() throws {
        try write(file())
        let target = folder.file("elsewhere", "text")
        for name in [".file.draft", ".file.lock", "file"] {
            let link = "\(folder.path)/nigh/\(name)"
            unlink(link)
            #expect(symlink(target, link) == 0)
            switch name {
            case ".file.draft": try write(file())
            case ".file.lock":
                #expect(refusal(try write(file())).contains("cannot open \(link)"))
                unlink(link)
            default:
                #expect(refusal(try file().read()).contains("it is a symbolic link"))
                #expect(try text(file(isReplaced: false)) == "text")
                chmod(target, 0o666)
                #expect(refusal(try file(isReplaced: false).read()).contains("others may write it"))
            }
            #expect(TemporaryFolder.text(of: target) == "text")
        }
    }

    @Test func `A folder that cannot be made is reported`() {
        let inTheWay = folder.file("inTheWay", "")
        let sentence = refusal(try file(inTheWay + "/file").read())
        #expect(sentence.contains("cannot open \(inTheWay)/file: Not a directory"))
        #expect(
            refusal(try file("/proc/nigh/file").create(content)).contains(
                "cannot create the folder /proc/nigh"))
    }

    @Test func `The user's own file is where the XDG specification says`() throws {
        let home = "/home/ada/.local/share/nigh"
        for (data, folder) in [("/data", "/data/nigh"), (nil, home), ("", home), ("relative", home)] {
            #expect(DataFolder.path(dataHome: data, home: "/home/ada") == folder)
        }
        #expect(try IdentityFile(dataFolder: nil, homeFolder: "/home/ada").path == home + "/identity.pem")
        let error = #expect(throws: NighError.self) { try IdentityFile(dataFolder: nil, homeFolder: "") }
        #expect(error?.stage == .identity && error?.advice?.contains("HOME") == true)
    }

    @Test func `A lock that is never released is an error`() throws {
        let file = file(lockTimeout: .milliseconds(5))
        try write(file)
        let lock = open(folder.path + "/nigh/.file.lock", O_RDWR | O_CLOEXEC)
        #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
        #expect(refusal(try write(file)).contains("another program has held \(folder.path)/nigh/.file.lock"))
        // A process that another test starts at this moment may hold the descriptor for a while.
        #expect(flock(lock, LOCK_UN) == 0)
        close(lock)
        try write(file)
    }

    /// As when another thread of the program starts a process, which holds the descriptor until its `exec`.
    @Test func `A lock is released even if another process has its descriptor`() throws {
        let file = file(lockTimeout: .milliseconds(5))
        var others: [Int32] = []
        defer { for descriptor in others { close(descriptor) } }
        try file.withLock {
            var lock = stat()
            #expect(stat(folder.path + "/nigh/.file.lock", &lock) == 0)
            for descriptor in Int32(3)..<65_536 where others.isEmpty {
                var status = stat()
                guard fstat(descriptor, &status) == 0, status.st_ino == lock.st_ino,
                    status.st_dev == lock.st_dev
                else { continue }
                others.append(fcntl(descriptor, F_DUPFD_CLOEXEC, 3))
            }
        }
        #expect(!others.isEmpty)
        #expect(throws: Never.self) { try file.withLock {} }
    }
}

@Suite struct NameFileTests {
    private let folder = TemporaryFolder()

    @Test func `A saved name is read again, and a new name replaces it`() throws {
        let file = NameFile(path: "\(folder.path)/name")
        #expect(try file.read() == nil)
        for text in ["Puma", "Лось im Wald"] {
            let name = try #require(DisplayName(exactly: text))
            try file.save(name)
            #expect(try file.read() == name)
        }
    }

    @Test func `The first line is the name, and an invalid name is reported with advice`() throws {
        for text in ["Puma", "Puma\nor Lynx\n", "Puma\r\nor Lynx\r\n"] {
            #expect(try NameFile(path: folder.file("name", text)).read()?.description == "Puma")
        }
        for text in ["\n", " \u{200B}\n", "\u{7}\n", "\(String(repeating: "x", count: 64))\n"] {
            let file = NameFile(path: folder.file("name", text))
            let error = #expect(throws: NighError.self) { try file.read() }
            #expect(error?.advice?.contains("remove it") == true)
        }
    }
}
