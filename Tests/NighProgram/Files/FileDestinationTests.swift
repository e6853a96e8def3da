import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests where `nigh receive` writes, what it refuses to replace, and what others may do to a file that is on its way.
@Suite(.callsPrograms) struct FileDestinationTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    @Test func `A destination that is not a plain file is never replaced, and its kind is reported`() throws {
        try #require(mkfifo(received("pipe"), 0o600) == 0)
        try #require(mkdir(received("folder"), 0o700) == 0)
        try #require(symlink("/dev/null", received("device")) == 0)
        try #require(symlink(files.file("file", "old"), received("link")) == 0)
        func kind(_ path: String) -> mode_t {
            var about = stat()
            return lstat(path, &about) == 0 ? about.st_mode & S_IFMT : 0
        }
        for (name, words) in [
            ("pipe", "is a pipe"), ("folder", "is a directory"), ("device", "is a device"),
            ("link", "is a symbolic link"),
        ] {
            let before = kind(received(name))
            try receiver.fail(
                "receive --accept any --force -o \(received(name)) --json \(byAddress)", says: words)
            #expect(kind(received(name)) == before)
        }
        let record = "--record \(received("pipe")) --record-overwrite"
        try receiver.run(
            "receive --accept any --into \(files.path) \(record) \(byAddress)", status: 1,
            says: "not a plain file")
        #expect(kind(received("pipe")) == S_IFIFO)
        try receiver.fail("receive --accept any -o \(files.file("file", "old")) \(byAddress)")
    }

    /// An action of another program on the file `big` half way, and the receiver's complaint about it; nil if it has
    /// none.
    enum Meddling: CaseIterable {
        case reads, writes, replaces, removesFolder

        var complaint: String? {
            switch self {
            case .reads: nil
            case .writes: "is not what was sent"
            case .replaces: "was removed or replaced"
            case .removesFolder: "was moved or removed"
            }
        }
    }

    private func meddle(_ meddling: Meddling, _ half: String) throws {
        switch meddling {
        case .reads:
            try Child.run("/bin/cp", [data(of: "big"), path("copy")])
            let part = try content(path("copy"))
            #expect(!part.isEmpty && Data("\(half)\n".utf8).starts(with: part))
        case .writes:
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: data(of: "big")))
            try handle.write(contentsOf: Data("changed".utf8))
            try handle.close()
        case .replaces: try #require(rename(inbox.file("other", "of another program"), data(of: "big")) == 0)
        case .removesFolder: try FileManager.default.removeItem(atPath: inbox.path)
        }
    }

    @Test(arguments: Meddling.allCases)
    func `A file is what was sent, whatever others do to its part`(_ meddling: Meddling) throws {
        let half = (0..<120_000).map { String($0) }.joined()
        let waiting = try receive("--once --force")
        let sending = try startSending("-", to: waiting, "--as big --json")
        sending.type(half)
        try waitForBytes(waiting)
        try meddle(meddling, half)
        sending.type(half)
        sending.closeInput()
        try sending.finish(status: meddling == .reads ? 0 : 1)
        try waiting.child.line(with: "\"transfer\"")
        let got = try waiting.child.finish(after: SIGINT, status: nil)
        if let complaint = meddling.complaint {
            #expect(got.lines.joined().contains(complaint), "\(got)")
            #expect(access(received("big"), F_OK) != 0)
        } else {
            #expect(try content(received("big")) == Data("\(half)\n\(half)\n".utf8))
            #expect(try names() == ["big"])
        }
    }

    @Test(arguments: [true, false])
    func `A partial file that was removed is not reported as kept`(_ wholeFolder: Bool) throws {
        try file("big", bytes: 4_000_000)
        let waiting = try receive()
        let sending = try startSending("big", to: waiting, Self.endlessly)
        try waitForBytes(waiting)
        try FileManager.default.removeItem(atPath: wholeFolder ? inbox.path : received("big.part"))
        try sending.finish(after: SIGINT, status: 1)
        #expect(try waiting.child.json(with: "\"failure\"")["part"].isNull)
    }
}
