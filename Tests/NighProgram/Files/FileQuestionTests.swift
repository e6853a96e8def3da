import ChildPrograms
import Foundation
import NighCore
import NighTestKit
import Testing

@testable import nigh

/// Tests the questions that `nigh receive` asks its user. TransferTextTests has their words.
@Suite(.callsPrograms) struct FileQuestionTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    private let session = NighUser.meetingPlace()

    /// Opens a terminal in which a receiver asks its user.
    private func asking(_ options: String = "") throws -> TerminalWindows {
        let windows = try TerminalWindows(of: "nigh")
        try receiver.openTerminal("receive --into \(inbox.path) -n Puma \(options) \(session)", in: windows)
        return windows
    }

    private func offer(_ name: String, by user: NighUser = NighUser()) throws -> Child {
        try file(name, bytes: 10)
        return try user.start("send Puma \(path(name)) -n Lynx -v \(session)")
    }

    @Test(arguments: [true, false])
    func `A person at a terminal is asked, again after any other answer`(_ isWanted: Bool) throws {
        let windows = try asking("--once")
        try makeFolder("photos")
        try file("a.txt", bytes: 10)
        let sending = try sender.start("send Puma \(path("photos")) \(path("a.txt")) -n Lynx \(session)")
        try windows.wait("w", shows: "): 4 files and 3 folders (1.5 MiB in all): ")
        try windows.press("w", "what", "Enter")
        try windows.press("w", isWanted ? "y" : "n", "Enter")
        try sending.finish(
            status: isWanted ? 0 : 1, says: isWanted ? nil : "the receiver's user declined it")
        if !isWanted { try windows.press("w", "C-c") }
        try windows.wait("w", shows: "ended with \(isWanted ? 0 : 1)")
        #expect(try names() == (isWanted ? ["a.txt", "photos"] : []))
    }

    @Test func `The question of a withdrawn offer disappears, and the next one is asked`() throws {
        let windows = try asking()
        let first = try offer("first")
        try windows.wait("w", shows: "): \"first\" (10 bytes)? [y/n]")
        let second = try offer("second")
        try second.error(with: "is connected")
        let last = try offer("third")
        try last.error(with: "is connected")
        for (name, child) in [("second", second), ("first", first)] {
            try child.finish(after: SIGINT, status: 1)
            try windows.wait("w", shows: "\"\(name)\" from Lynx: ")
        }
        try windows.wait("w", shows: "): \"third\" (")
        #expect(try !windows.text("w").contains("): \"second\""))
        try accept("third", in: windows)
        try last.finish()
    }

    private func accept(_ name: String, in windows: TerminalWindows) throws {
        try windows.wait("\(name) is taken") {
            try windows.press("w", "y", "Enter")
            return try names() == [name]
        }
    }

    @Test func `The offer of a paired device is shown although a stranger has taken the only place`() throws {
        try receiver.run("identity")
        try receiver.know("paired \(sender.id()) 2026-11-21 2026-11-22 \"Lynx\"")
        let windows = try asking("--once")
        let stranger = try offer("strange")
        try windows.wait("w", shows: "): \"strange\" (")
        let friend = try offer("friendly", by: sender)
        try windows.wait("w", shows: "): \"friendly\" (")
        try stranger.finish(status: 1, says: "a paired device took its place")
        try accept("friendly", in: windows)
        try friend.finish()
    }

    @Test func `Other events are printed on lines of their own, and the question is repeated below`() throws {
        let windows = try asking("--verbose")
        let first = try offer("first")
        try windows.wait("w", shows: "): \"first\" (10 bytes)? [y/n]")
        let second = try offer("second")
        try windows.wait("w") { try windows.text("w").components(separatedBy: "): \"first\" (").count > 2 }
        for line in try windows.text("w").split(separator: "\n") where line.contains("[y/n]") {
            #expect(line.hasSuffix("[y/n]") && line.hasPrefix("Accept "), "\(line)")
        }
        try windows.wait("the question is last") { try windows.text("w").hasSuffix("[y/n]") }
        for child in [first, second] { child.send(SIGINT) }
    }
}

/// Tests the order in which `nigh receive` asks its questions, and which answers count.
@Suite struct QuestionQueueTests {
    private func question(_ number: Int, isPaired: Bool = false) -> QuestionQueue.Question {
        .init(number: number, text: "Take \(number)?", isPaired: isPaired)
    }

    private func time(_ milliseconds: Int64) -> Moment { Moment(nanoseconds: milliseconds * 1_000_000) }

    @Test func `The questions of senders that leave are removed, however many there were`() {
        var queue = QuestionQueue()
        for number in 0..<300 { queue.add(question(number)) }
        queue.add(question(300))
        let wasOpen = (0..<300).map { queue.withdraw($0, at: time(0)) }
        #expect(wasOpen.allSatisfy { $0 } && queue.open == question(300))
        let isStillThere = queue.withdraw(7, at: time(0))
        #expect(!isStillThere)
    }

    @Test func `Questions come one after the other, paired devices first, and the open question stays`() {
        var queue = QuestionQueue()
        for number in 0..<3 { queue.add(question(number)) }
        queue.add(question(10, isPaired: true))
        queue.add(question(11, isPaired: true))
        queue.add(question(3))
        var asked: [Int] = []
        while let next = queue.takeAnswered(at: time(0)) { asked.append(next.number) }
        #expect(asked == [0, 10, 11, 1, 2, 3])
    }

    @Test func `An answer to a withdrawn question does not count for the next`() {
        var queue = QuestionQueue()
        for number in 0..<3 { queue.add(question(number)) }
        let wasOpen = queue.withdraw(0, at: time(10_000))
        let early = queue.takeAnswered(at: time(10_999))
        let next = queue.takeAnswered(at: time(11_000))
        #expect(wasOpen && early == nil && next == question(1))
        // Withdrawing a question that was not being asked has no effect on the one that is.
        queue.add(question(4))
        let wasAskedAbout = queue.withdraw(4, at: time(12_000))
        let last = queue.takeAnswered(at: time(12_000))
        #expect(!wasAskedAbout && last == question(2))
    }
}
