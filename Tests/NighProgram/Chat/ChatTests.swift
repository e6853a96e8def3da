import ChildPrograms
import Foundation
import NighCore
import NighTestKit
import Terminal
import Testing

@testable import nigh

/// Tests `nigh chat` as two users run it, and its parts.
@Suite(.callsPrograms) struct ChatTests {
    private let puma = NighUser()
    private let lynx = NighUser()
    private let session = NighUser.meetingPlace()

    /// Starts a chat in which Puma waits and Lynx comes, and waits until Lynx sees that.
    private func meet(waiting options: String = "", coming more: String = "") throws -> (
        waiting: Child, guest: Child
    ) {
        let waiting = try puma.start("chat -n Puma \(session) \(options)", reads: true)
        let guest = try lynx.start("chat Puma -n Lynx \(session) \(more)", reads: true)
        try guest.line(with: "Puma", "has joined, over tcp")
        return (waiting, guest)
    }

    @Test func `Each side shows what the other types, and both leave cleanly`() throws {
        let (waiting, guest) = try meet(waiting: "--json-lines")
        try waiting.line(with: "\"joined\"")
        try guest.type("Hello\u{1B}[2J there", andSee: "Hello", at: waiting)
        try waiting.type("Who \"are\" you?", andSee: "Puma: Who \"are\" you?", at: guest)
        waiting.type("/who")
        try waiting.line(with: "\"who\"", "Lynx")
        guest.type("/who")
        try guest.line(with: "Puma (", "is connected")
        waiting.type("")
        waiting.type("\u{1B}]0;mine\u{7}\u{202E}txet")
        let line = try guest.line(with: "txet")
        // Control characters are made harmless.
        #expect(
            line.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control && $0.value != 0x202E }
        )
        let lines = (0..<200).map { $0 == 7 ? "" : "line \($0)" }
        for line in lines { guest.type(line) }
        guest.closeInput()
        #expect(try guest.finish().errors.isEmpty)
        try waiting.line(with: "line 199")
        try waiting.line(with: "\"left\"")
        waiting.type("/quit")
        let call = try waiting.finish()
        #expect(call.summary["heard"].int == 201 && call.summary["said"].int == 3)
        let texts = call.objects("line").compactMap { $0["text"].string }
        #expect(texts.suffix(200) == lines && texts.dropLast(200).contains(""))
    }

    @Test func `With --mesh, two who have called a third one stay connected without it`() throws {
        let (waiting, second) = try meet(waiting: "--mesh", coming: "--mesh")
        let third = try NighUser().start("chat Puma -n Hare --mesh \(session)", reads: true)
        try second.line(with: "Hare", "has joined, over tcp")
        try third.line(with: "Lynx", "has joined, over tcp")
        waiting.type("/quit")
        try waiting.finish()
        try third.line(with: "Puma", "has left")
        try third.type("Only us now", andSee: "Hare: Only us now", at: second)
        third.closeInput()
        try third.finish()
        try second.line(with: "Hare", "has left")
        try second.finish()
    }

    @Test func `A host that carries the chat gets none of its lines, and stays connected to both`() throws {
        let carrier = try Listener("host --name Hare --relays everyone")
        let options = "-s nigh \(byAddress) --relays everyone --through \(carrier.address)"
        let waiting = try puma.start("chat -n Puma \(options)", reads: true)
        let guest = try lynx.start("chat Puma -n Lynx \(options)", reads: true)
        try guest.line(with: "Puma", "has joined, through Hare (")
        try guest.type("for Puma only", andSee: "Lynx: for Puma only", at: waiting)
        guest.type("/who")
        try guest.line(with: "Hare (", "is connected over tcp, but not in this chat")
        guest.closeInput()
        try guest.finish()
        waiting.type("/quit")
        try waiting.finish()
        let host = try carrier.end()
        #expect(host.errors.isEmpty, "\(host)")
        let changes = host.objects("guest").map { "\($0["change"]) \($0["peer"]["purpose"])" }
        #expect(changes.sorted() == ["came join", "came join", "left join", "left join"])
        #expect(host.summary["joined_by"].int == 2)
    }

    @Test(arguments: [SIGINT, SIGKILL])
    func `A chat ends when the invited peer leaves or is killed`(_ signal: Int32) throws {
        let waiting = try puma.start("chat -n Puma --json \(session)", reads: true)
        let guest = try lynx.start("chat Puma -n Lynx --json-lines \(session)", reads: true)
        try guest.line(with: "\"joined\"")
        try waiting.finish(after: signal, status: signal == SIGINT ? 0 : -SIGKILL)
        let left = try guest.finish(status: signal == SIGINT ? 0 : 1)
        #expect(signal == SIGKILL || left.lines.contains { $0.contains("\"left\"") }, "\(left)")
    }

    @Test func `The first signal waits for all lines; a second ends the program at once`() throws {
        let (waiting, guest) = try meet(waiting: "--json-lines")
        try waiting.line(with: "\"joined\"")
        guest.send(SIGSTOP)
        try waiting.type("Are you there?", andSee: "Are you there?", at: waiting)
        waiting.send(SIGINT)
        // A different signal, because two of the same kind could be merged into one.
        try waiting.finish(after: SIGTERM, status: -SIGTERM)
    }

    @Test func `Two signals at once end the program, but not before its terminal is as it was`() throws {
        let windows = try TerminalWindows(of: "nigh")
        let file = "\(lynx.folder.path)/process"
        try windows.open(
            "w", "chat -n Lynx \(session)",
            environment: """
                LANG=C.UTF-8 XDG_DATA_HOME=\(lynx.folder.path) sh -c 'echo $$ >\(file); exec "$0" "$@"'
                """)
        try windows.wait("w", shows: "\n>")
        let process = try #require(pid_t(String(contentsOfFile: file, encoding: .utf8).dropLast()))
        // It finds both when it goes on.
        for signal in [SIGSTOP, SIGINT, SIGTERM, SIGCONT] { kill(process, signal) }
        // Nobody is connected, so it may have left in good order before the second one ends it.
        try windows.wait("the end") {
            let text = try windows.text("w")
            return [0, 128 + SIGTERM].contains { text.hasSuffix("ended with \($0)") }
        }
        try windows.press("w", "typed", "Enter")
        // A terminal echoes what is typed, and then `cat` prints the line.
        try windows.wait("w", shows: "typed\ntyped")
    }

    @Test func `A missing peer, or nobody to receive a line, gives status 1`() throws {
        try lynx.fail("chat Puma --wait 1s --json \(session)")
        let talking = try lynx.start("chat \(session)", reads: true)
        talking.type("Hello?")
        talking.closeInput()
        #expect(try talking.finish(status: 1).lines == ["not sent: nobody is connected"])
    }

    @Test func `At a terminal, other people's lines leave the typed line intact`() throws {
        let windows = try TerminalWindows(of: "nigh")
        let waiting = try puma.start("chat -n Puma \(session)", reads: true)
        try lynx.openTerminal("chat Puma -n Lynx \(session)", in: windows)
        try windows.wait("w", shows: "has joined")
        try windows.press("w", "Hal", "f a")
        try windows.wait("w", shows: "> Half a")
        waiting.type("in between")
        try windows.wait("w", shows: "Puma: in between")
        #expect(try windows.text("w").split(separator: "\n").last == "> Half a")
        try windows.press("w", " line", "Enter")
        try waiting.line(with: "Lynx: Half a line")
        try windows.wait("w", shows: "you: Half a line")
        try windows.press("w", "C-d")
        try windows.wait("w", shows: "ended with 0")
        #expect(try windows.text("w").contains("Puma: in between"))
        waiting.closeInput()
        try waiting.finish()
    }

    @Test func `Lines have a maximum length, and invalid bytes are not read as a line`() {
        #expect(ChatMessage.lines(of: "é") == [[1, 0xC3, 0xA9]])
        #expect(ChatMessage.lines(of: "") == [[1]])
        let typed = "x" + String(repeating: "é", count: 3_000)
        let lines = ChatMessage.lines(of: typed)
        let heard = lines.compactMap { line -> String? in
            if case .line(let text) = ChatMessage(ByteSlice(line)) { text } else { nil }
        }
        #expect(lines.count == 2 && heard.joined() == typed)
        let longest = [1] + [UInt8](repeating: 65, count: ChatMessage.longestLine)
        #expect(ChatMessage(ByteSlice(longest)) != nil)
        #expect(ChatMessage(ByteSlice(longest + [65])) == nil)
        #expect(ChatMessage(ByteSlice([])) == .unknown, "it says nothing, and breaks nothing off")
        #expect(ChatMessage(ByteSlice([1])) == .line(""))
        #expect(ChatMessage(ByteSlice([1, 0xFF])) == nil)
        #expect(ChatMessage(ByteSlice([2, 0xFF])) == .unknown)
    }

    @Test func `A long piped line is cut between scalars, and bytes that are no scalar do not stop it`() {
        for text in ["aé", "a漢", "a👋"] {
            let bytes = Array(text.utf8)
            for count in 1..<bytes.count {
                #expect(PlainChatInterface.endOfScalars(in: Array(bytes[..<count])) == 1)
            }
            #expect(PlainChatInterface.endOfScalars(in: bytes) == bytes.count)
        }
        #expect(PlainChatInterface.endOfScalars(in: [0x80, 0x80, 0x80, 0x80, 0x80]) == 5)
        #expect(PlainChatInterface.endOfScalars(in: [0x41, 0xFF]) == 2)
        #expect(PlainChatInterface.endOfScalars(in: [0xF0]) == 1)
    }

    @Test func `What a terminal has shown is kept within bounds, the last lines in any case`() {
        var short = ShownLines()
        for number in 0..<20_000 { short.add(Line("\(number)")) }
        #expect(short.lines.count == 10_000 && short.lines.last?.text(colours: false) == "19999")
        var long = ShownLines()
        let line = Line(String(repeating: "x", count: ChatMessage.longestLine))
        for _ in 0..<10_000 { long.add(line) }
        #expect(long.lines.count == ShownLines.mostColumns / line.columns)
    }

    @Test func `A line that begins with one slash is a command, and with two it is text`() {
        #expect(ChatInput("/who") == .listMembers)
        #expect(ChatInput("/quit\r") == .quit)
        #expect(ChatInput("//who") == .say("/who"))
        #expect(ChatInput("/whom") == .unknown("/whom"))
        #expect(ChatInput("") == .say("") && ChatInput("  ") == .say("  "))
        #expect(ChatInput("hi") == .say("hi"))
    }
}
