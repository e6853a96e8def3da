import ChildPrograms
import Foundation
import NighRecord
import NighTestKit
import Testing

@testable import fourinarow

/// Tests the program as a person starts it from a shell, where no other player is needed.
@Suite struct CommandLineTests {
    /// Keeps the program off all networks but loopback.
    private static let alone = ["--transport", "tcp:interface=lo,mdns=off", "--identity", "ephemeral"]

    @Test("The table of arguments has no contradictions")
    func table() { #expect(GameCommand.program.problems == []) }

    @Test(
        "A wrong command line ends with status 2 and one sentence that points to the help",
        arguments: [
            (["--nonsense"], "there is no option --nonsense (see fourinarow --help)"),
            (["play"], "(see fourinarow --help)"),
            (["hots"], "did you mean host?"), (["hots", "--help"], "did you mean host?"),
            (["join", "192.168.1.7"], "tcp://192.168.1.7:4000"),
            (["join", "tcp://"], "is not an address such as"),
            (["--name", " "], "something to see"),
            (["bot", "--level", "10"], "--level"),
            (["bot", "--level", "0"], "--level"),
            (["bot", "--games", "0"], "--games"),
            (["bot", "--pause", "soon"], "--pause"),
            (["bot", "--seed", "-1"], "a seed is a whole number, 0 or more"),
            (["bot", "--at", "Puma", "--against", "3"], "--at and --against do not go together"),
            (["bot", "--watch", "--against", "3"], "--watch and --against do not go together"),
            (["bot", "--web", "--at", "Puma"], "leave out --at and --watch"),
            (["bot", "--web", "--watch"], "leave out --at and --watch"),
            (["join", "--web"], "--web"),
            (["bot", "--transport", "memory"], "memory reaches nobody outside this program"),
            (["bot", "--transport", "tcp,memory"], "memory reaches nobody outside this program"),
            (["host", "--plain", "--transport", "memory"], "memory reaches nobody outside this program"),
            (["--plain", "--transport", "memory:hub=x,tcp"], "memory reaches nobody outside this program"),
            (["bot", "--plain"], "--plain is an option of fourinarow"),
            (["host", "Puma"], "unexpected \"Puma\""),
            (["join", "Puma", "Lynx"], "unexpected \"Lynx\""),
            (["--name", ""], "--name"),
            (["--name"], "--name needs a value"),
            (["--transport", "pigeon"], "there is no transport \"pigeon\""),
            (["bot", "--transport", "pigeon"], "there is no transport \"pigeon\""),
            (["host", "--transport", "tcp:port=x"], "port"),
            (["completion"], "SHELL"),
            (["completion", "tcsh"], "tcsh"),
            (["manual", "now"], "unexpected \"now\""),
        ] as [([String], String)])
    func wrongCalls(_ arguments: [String], _ words: String) throws {
        let child = try Child("fourinarow", arguments)
        let (status, errors) = try child.end()
        #expect(status == 2)
        #expect(errors.count == 1)
        #expect(errors.first?.hasPrefix("fourinarow: ") == true)
        #expect(errors.first?.contains(words) == true, "\(errors)")
        #expect(errors.first?.contains("--help") == true, "\(errors)")
        #expect(child.lines.isEmpty)
    }

    @Test(
        "Help is not an error, on every level",
        arguments: [
            ["--help"], ["-h"], ["help"], ["host", "--help"], ["join", "--help"], ["watch", "-h"],
            ["bot", "--help"],
            ["completion", "--help"], ["manual", "--help"], ["help", "bot"],
            ["bot", "--name", "Puma", "--help"],
        ])
    func help(_ arguments: [String]) throws {
        let child = try Child("fourinarow", arguments)
        let (status, errors) = try child.end()
        #expect(status == 0)
        #expect(errors.isEmpty)
        let command = arguments.first { !$0.hasPrefix("-") && $0 != "help" }
        let whole = ["fourinarow", command].compactMap(\.self).joined(separator: " ")
        #expect(child.lines.first?.hasPrefix("usage: \(whole)") == true, "\(child.lines)")
        #expect(child.lines.allSatisfy { $0.count <= 80 })
    }

    @Test("Each shell gets a script that names what can be completed", arguments: ["bash", "zsh", "fish"])
    func completion(_ shell: String) throws {
        let child = try Child("fourinarow", ["completion", shell])
        let (status, errors) = try child.end()
        #expect(status == 0)
        #expect(errors.isEmpty)
        let script = child.lines.joined(separator: "\n")
        for word in ["host", "join", "watch", "bot", "level", "transport"] { #expect(script.contains(word)) }
    }

    @Test("The manual page is one that man can show")
    func manual() throws {
        let child = try Child("fourinarow", ["manual"])
        let (status, errors) = try child.end()
        #expect(status == 0)
        #expect(errors.isEmpty)
        #expect(child.lines.contains { $0.hasPrefix(".TH") && $0.lowercased().contains("fourinarow") })
    }

    @Test(
        "In the lobby, Ctrl-C and similar signals end the program cleanly",
        arguments: [SIGINT, SIGTERM, SIGHUP])
    func signalsInTheLobby(_ signal: Int32) throws {
        let child = try Child("fourinarow", ["--plain"] + Self.alone, reads: true)
        try child.line(with: "You are ", ", with the ID ")
        child.send(signal)
        try endsWell(child)
    }

    @Test(
        "A table at an address is joined at once, although discovery sees nothing",
        arguments: ["join", "watch"],
        [alone, ["--transport", "tcp:interface=lo", "--identity", "ephemeral"]])
    func joinAddress(_ command: String, _ over: [String]) throws {
        let host = try Child("fourinarow", ["host", "--plain", "--name", "Puma"] + Self.alone, reads: true)
        let line = try host.line(with: "From elsewhere it is reached at tcp://127.0.0.1:")
        let address = try #require(line.split(separator: " ").last).description
        let guest = try Child(
            "fourinarow", [command, address, "--plain", "--name", "Ocelot"] + over, reads: true)
        try guest.line(with: "Looking for a table at \(address)")
        if command == "join" {
            try host.line(with: "Ocelot wants to play")
            host.type("y")
        }
        try guest.line(with: "at the table of Puma")
        for child in [guest, host] {
            child.send(SIGINT)
            try endsWell(child)
        }
    }

    @Test("With --web a table has a code for phones, and the address for browsers is not one for others")
    func code() throws {
        let child = try Child(
            "fourinarow",
            ["host", "--plain", "--ascii", "--name", "Puma", "--transport", "web:port=0,interface=lo"]
                + ["--identity", "ephemeral", "--web"], reads: true)
        try child.line(with: "You host a table")
        try child.line(with: "To play in the browser of a phone, open http://", "/#")
        try child.line(with: "Not encrypted")
        #expect(!child.lines.contains { $0.contains("web://") })
        child.type("p")
        try child.line(with: "For the next phone, open http://")
        child.closeInput()
        try endsWell(child)
    }

    @Test("The end of the input ends the program")
    func closedInput() throws {
        let child = try Child("fourinarow", ["--plain"] + Self.alone, reads: true)
        try child.line(with: "You are ")
        child.closeInput()
        try endsWell(child)
    }

    @Test("? lists the commands, and q ends the program")
    func typedQuit() throws {
        let child = try Child("fourinarow", ["--plain"] + Self.alone, reads: true)
        child.type("?")
        try child.line(with: "q: leave the table; in the lobby: end the program")
        child.type("q")
        try endsWell(child)
    }

    @Test("The program ends when nobody reads its output")
    func closedOutput() throws {
        let child = try Child("fourinarow", ["--plain"] + Self.alone, reads: true)
        try child.line(with: "You are ")
        child.stopListening()
        child.type("?")
        try endsWell(child)
    }

    @Test(
        "A full disk is reported as an error, with status 1",
        arguments: [
            "--help", "help bot", "completion bash", "manual",
            "bot --against 1 --level 1 --pause 0ms --transport memory",
        ])
    func fullDisk(_ arguments: String) throws {
        let program = BuiltPrograms.path(of: "fourinarow")
        let (status, errors) = try Child("/bin/sh", ["-c", "exec \(program) \(arguments) >/dev/full"]).end()
        #expect(status == 1)
        #expect(
            errors == ["fourinarow: writing to the standard output: No space left on device"], "\(errors)")
    }

    @Test("The bot that plays itself also ends when nobody reads its output")
    func closedOutputOfTheMachine() throws {
        let child = try Child(
            "fourinarow",
            ["bot", "--against", "1", "--level", "1", "--pause", "0ms", "--transport", "memory"])
        try child.line(with: "game 2, ")
        child.stopListening()
        try endsWell(child)
    }

    @Test("Ctrl-C ends the bot that plays itself", arguments: [SIGINT, SIGTERM])
    func signalsToTheMachine(_ signal: Int32) throws {
        let child = try Child(
            "fourinarow",
            ["bot", "--against", "1", "--level", "1", "--pause", "1ms", "--transport", "memory"])
        try child.line(with: "game 1, ")
        child.send(signal)
        try endsWell(child)
    }

    @Test("The bot plays against itself also if its identity comes from a file")
    func identityOfTheMachine() throws {
        let folder = TemporaryFolder()
        let child = try Child(
            "fourinarow",
            [
                "bot", "--against", "1", "--level", "1", "--games", "1", "--pause", "0ms", "--transport",
                "memory", "--identity", "\(folder.path)/identity.pem",
            ])
        try child.line(with: "game 1, ")
        try endsWell(child)
    }

    @Test("A damaged file with the user's name does not matter to those who give another name")
    func damagedName() throws {
        let folder = TemporaryFolder()
        try FileManager.default.createDirectory(
            atPath: "\(folder.path)/nigh", withIntermediateDirectories: false)
        try Data([0]).write(to: URL(filePath: "\(folder.path)/nigh/name"))
        let child = try Child(
            "fourinarow", ["--plain", "--name", "Puma"] + Self.alone,
            environment: ["XDG_DATA_HOME": folder.path], reads: true)
        try child.line(with: "You are Puma")
        child.closeInput()
        try endsWell(child)
    }

    @Test("A game is recorded if requested, to its last word")
    func record() throws {
        let folder = TemporaryFolder()
        let path = "\(folder.path)/game.nigh"
        let child = try Child(
            "fourinarow",
            [
                "bot", "--against", "1", "--level", "1", "--games", "1", "--pause", "0ms", "--transport",
                "memory", "--record", path,
            ])
        try endsWell(child)
        var reader = RecordReader()
        reader.feed(try [UInt8](Data(contentsOf: URL(filePath: path))))
        var contents: [RecordEntry.Content] = []
        while let entry = try reader.next() { contents.append(entry.content) }
        #expect(reader.unreadByteCount == 0)
        let moves = contents.count { if case .frame(let frame) = $0 { frame.length > 0 } else { false } }
        #expect(moves > 8, "a game has seven discs and more")
        guard case .opened? = contents.first, case .ended? = contents.last else {
            Issue.record("it begins and ends with a link: \(contents.count) entries")
            return
        }
        let again = try Child("fourinarow", ["bot", "--against", "1", "--record", path])
        let (status, errors) = try again.end()
        #expect(status == 1 && errors.count == 1, "what is there already is not written over: \(errors)")
    }

    private func endsWell(_ child: Child, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let (status, errors) = try child.end()
        #expect(status == 0, sourceLocation: sourceLocation)
        #expect(errors.isEmpty, sourceLocation: sourceLocation)
    }
}
