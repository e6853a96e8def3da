import ChildPrograms
import Foundation
import NighRecord
import NighTestKit
import Testing

@testable import fourinarow

/// Tests the program as a person starts it from a shell, where no other player is needed.
struct CommandLineTests {
    /// Keeps the program off all networks but loopback.
    private static let alone = "--transport tcp:interface=lo,mdns=off --identity ephemeral"
    private static let person = "--plain \(alone)"
    /// The machine plays against itself until it is ended.
    private static let machine = "bot --against 1 --level 1 --pause 0ms --transport memory"

    /// Starts the program with these words.
    private static func start(
        _ arguments: String, environment: [String: String] = [:], reads: Bool = true
    ) throws -> Child {
        try Child(
            "fourinarow", arguments.split(separator: " ").map(String.init), environment: environment,
            reads: reads)
    }

    private static func endsWell(_ child: Child, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let (status, errors) = try child.end()
        #expect(status == 0 && errors.isEmpty, "\(status): \(errors)", sourceLocation: sourceLocation)
    }

    @Test func `The table of arguments has no contradictions`() {
        #expect(GameCommand.program.problems == [])
    }

    @Test(
        arguments: [
            ("--nonsense", "there is no option --nonsense (see fourinarow --help)"),
            ("join 192.168.1.7", "tcp://192.168.1.7:4000"),
            ("join tcp://", "is not an address such as"), ("--name \t", "something to see"),
            ("bot --level 10", "--level"), ("bot --level 0", "--level"), ("bot --games 0", "--games"),
            ("bot --seed -1", "a seed is a whole number, 0 or more"),
            ("bot --at Puma --against 3", "--at and --against do not go together"),
            ("bot --watch --against 3", "--watch and --against do not go together"),
            ("bot --web --at Puma", "leave out --at and --watch"),
            ("bot --web --watch", "leave out --at and --watch"), ("join --web", "--web"),
            ("bot --transport memory", "memory reaches nobody outside this program"),
            ("bot --transport tcp,memory", "memory reaches nobody outside this program"),
            ("host --plain --transport memory", "memory reaches nobody outside this program"),
            ("--plain --transport memory:hub=x,tcp", "memory reaches nobody outside this program"),
            ("bot --plain", "--plain is an option of fourinarow"), ("host Puma", "unexpected \"Puma\""),
            ("bot --transport pigeon", "there is no transport \"pigeon\""),
            ("host --transport tcp:port=x", "port"),
        ])
    func `A wrong command line ends with status 2 and one sentence that points to the help`(
        _ arguments: String, _ words: String
    ) throws {
        let child = try Self.start(arguments, reads: false)
        let (status, errors) = try child.end()
        #expect(status == 2 && child.lines.isEmpty)
        try #require(errors.count == 1)
        #expect(errors[0].hasPrefix("fourinarow: ") && errors[0].contains(words), "\(errors)")
        #expect(errors[0].contains("--help"), "\(errors)")
    }

    @Test(
        arguments: [
            ("--help", ["usage: fourinarow "]), ("bot --name Puma -h", ["usage: fourinarow bot "]),
            ("help join", ["usage: fourinarow join "]), ("manual", [".TH \"FOURINAROW\""]),
            ("completion bash", ["host", "join", "watch", "bot", "level", "transport"]),
        ])
    func `Help, the manual and a completion script are printed on request`(
        _ arguments: String, _ words: [String]
    ) throws {
        let child = try Self.start(arguments, reads: false)
        try Self.endsWell(child)
        let text = child.lines.joined(separator: "\n")
        for word in words { #expect(text.localizedCaseInsensitiveContains(word), "\(text)") }
    }

    // MARK: The end of the program

    enum Ending: CaseIterable {
        case interrupt, termination, hangUp, endOfInput, quit, closedOutput

        func happen(to child: Child) {
            switch self {
            case .interrupt: child.send(SIGINT)
            case .termination: child.send(SIGTERM)
            case .hangUp: child.send(SIGHUP)
            case .endOfInput: child.closeInput()
            case .quit: child.type("q")
            case .closedOutput:
                child.stopListening()
                child.type("?")
            }
        }
    }

    @Test(arguments: Ending.allCases)
    func `A signal, the end of the input, q or an output that nobody reads ends the program`(
        _ ending: Ending
    ) throws {
        let child = try Self.start(Self.person)
        try child.line(with: "You are ", ", with the ID ")
        child.type("?")
        try child.line(with: "q: leave the table; in the lobby: end the program")
        ending.happen(to: child)
        try Self.endsWell(child)
    }

    @Test(arguments: [Ending.interrupt, .termination, .closedOutput])
    func `The machine that plays itself ends, too`(_ ending: Ending) throws {
        let child = try Self.start(Self.machine)
        try child.line(with: "game 2, ")
        ending.happen(to: child)
        try Self.endsWell(child)
    }

    @Test(arguments: ["--help", "completion bash", "manual", machine])
    func `A full disk is reported as an error, with status 1`(_ arguments: String) throws {
        let program = BuiltPrograms.path(of: "fourinarow")
        let (status, errors) = try Child("/bin/sh", ["-c", "exec \(program) \(arguments) >/dev/full"]).end()
        #expect(status == 1)
        #expect(
            errors == ["fourinarow: writing to the standard output: No space left on device"], "\(errors)")
    }

    // MARK: Tables

    @Test(arguments: zip(["join", "watch"], [alone, "--transport tcp:interface=lo --identity ephemeral"]))
    func `A table at an address is joined at once, although discovery sees nothing`(
        _ command: String, _ over: String
    ) throws {
        let host = try Self.start("host --name Puma \(Self.person)")
        let line = try host.line(with: "From elsewhere it is reached at tcp://127.0.0.1:")
        let address = try #require(line.split(separator: " ").last)
        let guest = try Self.start("\(command) \(address) --plain --name Ocelot \(over)")
        try guest.line(with: "Looking for a table at \(address)")
        if command == "join" {
            try host.line(with: "Ocelot wants to play")
            host.type("y")
        }
        try guest.line(with: "at the table of Puma")
        for child in [guest, host] {
            child.send(SIGINT)
            try Self.endsWell(child)
        }
    }

    @Test func `With --web a table has a code for phones, and no address of browsers for others`() throws {
        let child = try Self.start(
            "host --plain --ascii --name Puma --transport web:port=0,interface=lo --identity ephemeral --web")
        try child.line(with: "You host a table")
        try child.line(with: "To play in the browser of a phone, open http://", "/#")
        try child.line(with: "Not encrypted")
        #expect(!child.lines.contains { $0.contains("web://") })
        child.type("p")
        try child.line(with: "For the next phone, open http://")
        child.closeInput()
        try Self.endsWell(child)
    }

    // MARK: Files

    @Test func `A damaged file with the user's name does not matter to those who give another name`() throws {
        let folder = TemporaryFolder()
        try FileManager.default.createDirectory(
            atPath: "\(folder.path)/nigh", withIntermediateDirectories: false)
        _ = folder.file("nigh/name", "\0")
        let child = try Self.start("\(Self.person) --name Puma", environment: ["XDG_DATA_HOME": folder.path])
        try child.line(with: "You are Puma")
        child.closeInput()
        try Self.endsWell(child)
    }

    @Test func `The machine plays itself with an identity from a file, and records the game`() throws {
        let folder = TemporaryFolder()
        let path = "\(folder.path)/game.nigh"
        let child = try Self.start(
            "\(Self.machine) --games 1 --identity \(folder.path)/identity.pem --record \(path)")
        try Self.endsWell(child)
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
        let again = try Self.start("bot --against 1 --record \(path)", reads: false)
        let (status, errors) = try again.end()
        #expect(status == 1 && errors.count == 1, "what is there already is not written over: \(errors)")
    }
}
