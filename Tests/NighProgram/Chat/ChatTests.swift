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
    private let service = "c\(UInt32.random(in: .min ... .max))"
    private var session: [String] { ["-t", "tcp:interface=lo,mdns=embedded", "-s", service] }

    @Test("Each side shows what the other types, also at the end, and both leave cleanly")
    func lines() throws {
        let waiting = try puma.start(["chat", "-n", "Puma", "--json-lines"] + session, reads: true)
        let guest = try lynx.start(["chat", "Puma", "-n", "Lynx"] + session, reads: true)
        try guest.line(with: "Puma", "has joined, over tcp")
        try waiting.line(with: "\"joined\"")
        guest.type("Hello\u{1B}[2J there")
        try waiting.line(with: "Hello")
        waiting.type("Who \"are\" you?")
        try guest.line(with: "Puma: Who \"are\" you?")
        waiting.type("/who")
        try waiting.line(with: "\"who\"", "Lynx")
        guest.type("/who")
        try guest.line(with: "Puma (", "is connected")
        for number in 0..<199 { guest.type("line \(number)") }
        try waiting.line(with: "line 198")
        guest.type("line 199")
        guest.closeInput()
        let left = try NighCall(finishing: guest)
        #expect(left.status == 0 && left.errors.isEmpty, "\(left)")
        try waiting.line(with: "line 199")
        try waiting.line(with: "\"left\"")
        waiting.type("/quit")
        let call = try NighCall(finishing: waiting)
        #expect(call.status == 0, "\(call)")
        try call.expectSchema("chat", lines: true)
        let summary = try #require(try call.objects().last)
        #expect(summary["heard"] as? Int == 201 && summary["said"] as? Int == 1)
    }

    @Test("With --mesh, two who have called the same third one stay connected to each other without it")
    func mesh() throws {
        let hare = NighUser()
        let waiting = try puma.start(["chat", "-n", "Puma", "--mesh"] + session, reads: true)
        let second = try lynx.start(["chat", "Puma", "-n", "Lynx", "--mesh"] + session, reads: true)
        try second.line(with: "Puma", "has joined, over tcp")
        let third = try hare.start(["chat", "Puma", "-n", "Hare", "--mesh"] + session, reads: true)
        try second.line(with: "Hare", "has joined, over tcp")
        try third.line(with: "Lynx", "has joined, over tcp")
        waiting.type("/quit")
        #expect(try NighCall(finishing: waiting).status == 0)
        try third.line(with: "Puma", "has left")
        third.type("Only us now")
        try second.line(with: "Hare: Only us now")
        third.closeInput()
        #expect(try NighCall(finishing: third).status == 0)
        try second.line(with: "Hare", "has left")
        #expect(try NighCall(finishing: second).status == 0)
    }

    @Test("A host that carries the chat gets none of its lines, and stays connected to both")
    func carried() throws {
        let carrier = try HostInTests(of: NighUser(), "--name", "Hare", "--relays", "everyone")
        let options = [
            "-s", "nigh", "-t", HostInTests.transport, "--relays", "everyone", "--through", carrier.address,
        ]
        let waiting = try puma.start(["chat", "-n", "Puma"] + options, reads: true)
        let guest = try lynx.start(["chat", "Puma", "-n", "Lynx"] + options, reads: true)
        try guest.line(with: "Puma", "has joined, through Hare (")
        guest.type("for Puma only")
        try waiting.line(with: "Lynx: for Puma only")
        guest.type("/who")
        try guest.line(with: "Hare (", "is connected over tcp, but not in this chat")
        guest.closeInput()
        #expect(try NighCall(finishing: guest).status == 0)
        waiting.type("/quit")
        #expect(try NighCall(finishing: waiting).status == 0)
        let host = try carrier.end()
        #expect(host.status == 0 && host.errors.isEmpty, "\(host)")
        let guests = try host.objects().filter { $0["type"] as? String == "guest" }
        let changes = guests.map {
            "\($0["change"] ?? "") \(($0["peer"] as? [String: Any])?["purpose"] ?? "")"
        }
        #expect(changes.sorted() == ["came join", "came join", "left join", "left join"])
        #expect(try host.objects().last?["joined_by"] as? Int == 2)
    }

    @Test("An empty line is sent and shown as an empty line, and so are the lines after it")
    func emptyLine() throws {
        let waiting = try puma.start(["chat", "-n", "Puma", "--json-lines"] + session, reads: true)
        let guest = try lynx.start(["chat", "Puma", "-n", "Lynx"] + session, reads: true)
        try guest.line(with: "has joined")
        for line in ["first", "", "last"] { guest.type(line) }
        try waiting.line(with: "last")
        waiting.type("")
        waiting.type("bye")
        try guest.line(with: "Puma: bye")
        guest.closeInput()
        #expect(try NighCall(finishing: guest).status == 0)
        waiting.closeInput()
        let call = try NighCall(finishing: waiting)
        let lines = try call.objects().filter { $0["type"] as? String == "line" }
        #expect(lines.map { $0["text"] as? String } == ["first", "", "last", "", "bye"])
    }

    @Test("An invited peer that leaves ends the conversation; control characters are made harmless")
    func harmless() throws {
        let waiting = try puma.start(["chat", "-n", "Puma", "--json"] + session, reads: true)
        let guest = try lynx.start(["chat", "Puma", "-n", "Lynx"] + session, reads: true)
        try guest.line(with: "has joined")
        waiting.type("\u{1B}]0;mine\u{7}\u{202E}txet")
        let line = try guest.line(with: "Puma: ")
        #expect(
            line.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control && $0.value != 0x202E }
        )
        waiting.send(SIGINT)
        let call = try NighCall(finishing: waiting)
        #expect(call.status == 0)
        try call.expectSchema("chat")
        let left = try NighCall(finishing: guest)
        #expect(left.status == 0 && left.lines.contains { $0.contains("has left") }, "\(left)")
    }

    @Test("The first signal waits until all lines have arrived; a second ends the program at once")
    func secondSignal() throws {
        let waiting = try puma.start(["chat", "-n", "Puma", "--json-lines"] + session, reads: true)
        let guest = try lynx.start(["chat", "Puma", "-n", "Lynx"] + session, reads: true)
        try waiting.line(with: "\"joined\"")
        guest.send(SIGSTOP)
        waiting.type("Are you there?")
        try waiting.line(with: "Are you there?")
        waiting.send(SIGINT)
        // A different signal, because two of the same kind could be merged into one.
        waiting.send(SIGTERM)
        #expect(try NighCall(finishing: waiting).status == -SIGTERM)
    }

    @Test("Two signals at once end the program, but not before its terminal is as it was")
    func signalsAtOnce() throws {
        let windows = try TerminalWindows(of: "nigh")
        let file = "\(lynx.folder.path)/process"
        try windows.open(
            "w", "chat -n Lynx \(session.joined(separator: " "))",
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

    @Test("A side that is killed is reported as gone, with status 1")
    func killed() throws {
        let waiting = try puma.start(["chat", "-n", "Puma"] + session, reads: true)
        let guest = try lynx.start(["chat", "Puma", "-n", "Lynx", "--json"] + session, reads: true)
        try waiting.line(with: "has joined")
        waiting.send(SIGKILL)
        _ = try NighCall(finishing: waiting)
        let left = try NighCall(finishing: guest)
        #expect(left.status == 1, "\(left)")
        try left.expectSchema("chat")
    }

    @Test("A missing peer, or nobody to receive a line, gives status 1; a wrong command line gives 2")
    func alone() throws {
        let nobody = try lynx.run(["chat", "Puma", "--wait", "1s", "--json"] + session)
        #expect(nobody.status == 1 && nobody.errors.count == 1, "\(nobody)")
        try nobody.expectSchema("chat")
        let talking = try lynx.start(["chat"] + session, reads: true)
        talking.type("Hello?")
        talking.closeInput()
        let call = try NighCall(finishing: talking)
        #expect(call.status == 1 && call.lines == ["not sent: nobody is connected"], "\(call)")
        #expect(try lynx.run("chat", "a", "b").status == 2)
        #expect(try lynx.run("chat", "-t", "bluetooth:adapter=hci60000", "x").status == 3)
        let waiting = try lynx.start("chat", "-t", "bluetooth:adapter=hci60000", reads: true)
        #expect(try NighCall(finishing: waiting).status == 3)
        #expect(try lynx.run("chat", "--help").lines.contains { $0.contains("nigh chat") })
    }

    @Test("At a terminal, other people's lines leave the typed line intact, and stay after the end")
    func terminal() throws {
        let windows = try TerminalWindows(of: "nigh")
        let waiting = try puma.start(["chat", "-n", "Puma"] + session, reads: true)
        try windows.open(
            "w", "chat Puma -n Lynx \(session.joined(separator: " "))",
            environment: "LANG=C.UTF-8 XDG_DATA_HOME=\(lynx.folder.path)")
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
        #expect(try NighCall(finishing: waiting).status == 0)
    }

    @Test("Lines have a maximum length, and invalid bytes are not read as a line")
    func messages() {
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

    @Test("A long piped line is cut between scalars, and bytes that are no scalar do not stop it")
    func scalars() {
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

    @Test("What a terminal has shown is kept within bounds, the last lines in any case")
    func shown() {
        var short = ShownLines()
        for number in 0..<20_000 { short.add(Line("\(number)")) }
        #expect(short.lines.count == 10_000 && short.lines.last?.text(colours: false) == "19999")
        var long = ShownLines()
        let line = Line(String(repeating: "x", count: ChatMessage.longestLine))
        for _ in 0..<10_000 { long.add(line) }
        #expect(long.lines.count == ShownLines.mostColumns / line.columns)
    }

    @Test("A line that begins with one slash is a command, and with two it is text")
    func commands() {
        #expect(ChatInput("/who") == .listMembers)
        #expect(ChatInput("/quit\r") == .quit)
        #expect(ChatInput("//who") == .say("/who"))
        #expect(ChatInput("/whom") == .unknown("/whom"))
        #expect(ChatInput("") == .say("") && ChatInput("  ") == .say("  "))
        #expect(ChatInput("hi") == .say("hi"))
    }
}
