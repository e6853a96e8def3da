import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests the questions that `nigh receive` asks its user.
@Suite(.callsPrograms) struct FileQuestionTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    private let options = [
        "-t", "tcp:interface=lo,mdns=embedded", "-s", "f\(UInt32.random(in: .min ... .max))",
    ]

    /// Opens a terminal in which a receiver asks its user.
    private func asking(_ arguments: String = "") throws -> TerminalWindows {
        let windows = try TerminalWindows(of: "nigh")
        try windows.open(
            "w", "receive --into \(inbox.path) -n Puma \(arguments) \(options.joined(separator: " "))",
            environment: "XDG_DATA_HOME=\(receiver.folder.path)")
        return windows
    }

    private func offer(_ name: String, by user: NighUser) throws -> Child {
        try file(name, bytes: 10)
        return try user.start(["send", "Puma", path(name), "-n", "Lynx", "-v"] + options)
    }

    @Test("The question about several files and folders says how many, how large, and their names")
    func several() throws {
        let windows = try asking("--once")
        try makeFolder("photos")
        try file("a.txt", bytes: 10)
        let sending = try sender.start(
            ["send", "Puma", path("photos"), path("a.txt"), "-n", "Lynx"] + options)
        try windows.wait("w", shows: "): 4 files and 3 folders (1.5 MiB in all): ")
        try windows.press("w", "y", "Enter")
        #expect(try NighCall(finishing: sending).status == 0)
        try windows.wait("w", shows: "ended with 0")
        #expect(try names() == ["a.txt", "photos"])
    }

    @Test("The question of a withdrawn offer disappears, and the next one is asked")
    func withdrawn() throws {
        let windows = try asking()
        let first = try offer("first", by: sender)
        try windows.wait("w", shows: "): \"first\" (10 bytes)? [y/n]")
        let (other, third) = (NighUser(), NighUser())
        let second = try offer("second", by: other)
        try second.error(with: "is connected")
        let last = try offer("third", by: third)
        try last.error(with: "is connected")
        for (name, child) in [("second", second), ("first", first)] {
            child.send(SIGINT)
            #expect(try NighCall(finishing: child).status == 1)
            try windows.wait("w", shows: "\"\(name)\" from Lynx: ")
        }
        try windows.wait("w", shows: "): \"third\" (")
        #expect(try !windows.text("w").contains("): \"second\""))
        try windows.wait("third is taken") {
            try windows.press("w", "y", "Enter")
            return try names() == ["third"]
        }
        #expect(try NighCall(finishing: last).status == 0)
    }

    @Test("The offer of a paired device is shown although a stranger has taken the only place")
    func paired() throws {
        let id = try #require(try sender.run("identity", "--json").object()["id"] as? String)
        #expect(try receiver.run("identity").status == 0)
        try Data("nigh-peers 1\npaired \(id) 2026-11-21 2026-11-22 \"Lynx\"\n".utf8).write(
            to: URL(fileURLWithPath: "\(receiver.dataFolder)/peers"))
        let windows = try asking("--once")
        let stranger = try offer("strange", by: NighUser())
        try windows.wait("w", shows: "): \"strange\" (")
        let friend = try offer("friendly", by: sender)
        try windows.wait("w", shows: "): \"friendly\" (")
        let sentAway = try NighCall(finishing: stranger)
        #expect(sentAway.status == 1, "\(sentAway)")
        #expect(sentAway.errors.joined().contains("a paired device took its place"), "\(sentAway)")
        try windows.wait("the paired device's is taken") {
            try windows.press("w", "y", "Enter")
            return try names() == ["friendly"]
        }
        #expect(try NighCall(finishing: friend).status == 0)
    }

    @Test("Other events are printed on lines of their own, and the question is repeated below")
    func linesOfTheirOwn() throws {
        let windows = try asking("--verbose")
        let first = try offer("first", by: sender)
        try windows.wait("w", shows: "): \"first\" (10 bytes)? [y/n]")
        let other = NighUser()
        let second = try offer("second", by: other)
        try windows.wait("w") { try windows.text("w").components(separatedBy: "): \"first\" (").count > 2 }
        for line in try windows.text("w").split(separator: "\n") {
            if line.contains("[y/n]") {
                #expect(line.hasSuffix("[y/n]") && line.hasPrefix("Accept "), "\(line)")
            }
        }
        try windows.wait("the question is last") { try windows.text("w").hasSuffix("[y/n]") }
        for child in [first, second] { child.send(SIGINT) }
    }

    @Test("An answer from a pipe is followed by a line of its own")
    func pipedAnswer() throws {
        #expect(try sender.run("identity").status == 0)
        let child = try sender.start("identity", "new", reads: true)
        child.type("n")
        let call = try NighCall(finishing: child)
        #expect(call.errors.count == 2 && call.errors[0].hasSuffix("[y/N] "), "\(call)")
    }
}
