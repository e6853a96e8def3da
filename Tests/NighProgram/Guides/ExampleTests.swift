import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// The program of a package in Examples, run by several users, each of whom has a folder for data, in which the program
/// runs. They find each other on the loopback interface.
final class ExampleProgram {
    static let transports = "tcp:interface=lo,mdns=embedded"

    let path: String
    private var users: [TemporaryFolder] = []

    /// Builds the package.
    init(_ name: String) throws { path = try BuiltPackages.build("Examples/\(name)") + "/\(name)" }

    /// The folder of a user.
    func folder(of user: Int) -> TemporaryFolder {
        while users.count <= user { users.append(TemporaryFolder()) }
        return users[user]
    }

    /// Starts the program with the words of `line`. It prints to a socket, which the C library would buffer.
    func start(_ line: String, as user: Int, environment: [String: String] = [:]) throws -> Child {
        let folder = folder(of: user).path
        let variables = ["XDG_DATA_HOME": "\(folder)/.data", "NIGH_TRANSPORTS": Self.transports]
        return try Child(
            "/usr/bin/env",
            ["-C", folder, "stdbuf", "-oL", path] + line.split(separator: " ").map(String.init),
            environment: variables.merging(environment) { $1 }, reads: true)
    }
}

extension Child {
    /// Waits for a line of standard output that is `text` and nothing else, after the first `count` lines.
    func line(exactly text: String, after count: Int) throws {
        var occurrence = lines.prefix(count).count { $0.contains(text) } + 1
        while try line(with: text, occurrence: occurrence) != text { occurrence += 1 }
    }

    /// Types a line, and waits until each of `readers` shows one with `words`.
    func type(_ text: String, andSee words: String, at readers: Child...) throws {
        type(text)
        for reader in readers { try reader.line(with: words) }
    }

    /// Ends its input, and expects that it ends well.
    func leave() throws {
        closeInput()
        #expect(try end().status == 0)
    }
}

/// Ends programs as Ctrl-C does, and expects that they end well.
func interrupt(_ children: Child...) throws {
    for child in children {
        child.send(SIGINT)
        #expect(try child.end().status == 0, "\(child.call)")
    }
}

/// Runs the programs in Examples as their readers do. The guides and the README show their code.
@Suite(.callsPrograms) struct ExampleTests {
    private let network = ExampleProgram.transports

    @Test(arguments: ["FourActors", "Whiteboard"])
    func `Examples with tests pass them, in virtual time`(_ name: String) throws {
        try BuiltPackages.test(name, in: "Examples/\(name)")
    }

    @Test func `Greeter compiles, with which the guide to actors begins`() throws {
        _ = try BuiltPackages.build("Examples/Greeter")
    }

    @Test func `The measured programs of the benchmarks need only what any program gets`() throws {
        _ = try BuiltPackages.build("Benchmarks")
    }

    @Test func `Camera is watched by two who see whole pictures`() throws {
        let camera = try ExampleProgram("Camera")
        let filming = try camera.start("film \(network)", as: 0)
        let watchers = try (1...2).map { try camera.start("watch \(network)", as: $0) }
        for watcher in watchers { try watcher.line(with: "25 pictures seen") }
        try interrupt(watchers[1], watchers[0], filming)
    }

    @Test func `Doorkeeper leaves three knocks to the program, and declines the next ones itself`() throws {
        let doorkeeper = try ExampleProgram("Doorkeeper")
        let house = try doorkeeper.start("tcp:interface=lo,mdns=off Lynx", as: 0)
        let address = try house.line(with: "open at ").dropFirst("open at ".count)
        let user = NighUser()
        for number in 0..<6 {
            let reason = number < 3 ? "you are not expected" : "knock at most 3 times a minute"
            let name = number < 5 ? "Otter" : "Lynx"
            try user.run("ping \(address) -c 1 --name \(name) \(byAddress)", status: 1, says: reason)
        }
        try house.leave()
        #expect(house.lines.count { $0 == "Otter knocks" } == 3)
        #expect(house.lines.last == "3 were turned away")
    }

    @Test(arguments: [false, true])
    func `DropFolder sends files, over TCP or a plugin's transport`(_ isPlugin: Bool) throws {
        let (unix, plugins) = (try UnixPlugin(), TemporaryFolder())
        try unix.install(to: "\(plugins.path)/unix.so")
        let program = try ExampleProgram("DropFolder")
        _ = program.folder(of: 0).file("letter.txt", "a letter")
        let children = try (0..<2).map { user in
            try program.start(
                "\(program.folder(of: user).path) \(isPlugin ? unix.spec : network)", as: user,
                environment: ["NIGH_PLUGIN_PATH": isPlugin ? plugins.path : "/nonexistent"])
        }
        let arrived = "\(program.folder(of: 1).path)/from others/letter.txt"
        try children[1].line(with: "received \(arrived)")
        #expect(TemporaryFolder.text(of: arrived) == "a letter")
        try interrupt(children[0], children[1])
    }

    @Test func `FourActors is played by two processes, and a third one watches`() throws {
        let game = try ExampleProgram("FourActors")
        let host = try game.start("host --name Puma --bot --transport \(network)", as: 0)
        try host.line(with: "waiting for a player")
        let watch = try game.start("watch --transport \(network)", as: 1)
        try watch.line(with: "watching the table of Puma")
        let guest = try game.start("join --transport \(network)", as: 2)
        try guest.line(with: "your turn: type a column")
        try guest.type("eight", andSee: "there is no such column", at: guest)
        try guest.type("1", andSee: "red's turn", at: guest, watch)
        guest.send(SIGINT)
        for program in [guest, host, watch] { #expect(try program.end().status == 0) }
        for program in [host, watch] { #expect(program.lines.contains("yellow has left: nobody has won")) }
    }

    @Test func `HostAndJoin shows a sorted list of hosts that have no guest yet`() throws {
        let program = try ExampleProgram("HostAndJoin")
        let names = ["host Puma", "host Boar", "join Lynx", "join Hare"]
        let children = try names.enumerated().map { try program.start("\($1) \(network)", as: $0) }
        let (puma, boar, lynx, hare) = (children[0], children[1], children[2], children[3])
        for guest in [lynx, hare] { try guest.line(with: "hosts: 1 Boar, 2 Puma") }
        let seen = hare.lines.count
        try lynx.type("2", andSee: "connected to Lynx", at: puma)
        try lynx.line(with: "connected to Puma")
        try hare.line(exactly: "hosts: 1 Boar", after: seen)
        try lynx.type("my move", andSee: "Lynx: my move", at: puma)
        try puma.type("mine", andSee: "Puma: mine", at: lynx)
        // Whoever leaves, the other is told.
        try lynx.leave()
        try puma.line(with: "Lynx has left")
        #expect(try puma.end().status == 0)
        try interrupt(hare, boar)
    }

    @Test func `Lobby seats as many as it has seats, and begins a game that nobody finds any more`() throws {
        let start = try LobbyPlayers()
        let puma = try start("host Puma 2")
        let lynx = try start("join Lynx")
        try lynx.line(with: "hosts: 1 Puma")
        // A second table comes later, and the list stays sorted.
        let boar = try start("host Boar 2")
        try lynx.line(with: "hosts: 1 Boar, 2 Puma")
        try lynx.type("2", andSee: "at the table: Lynx", at: lynx)
        let (hare, wolf) = (try start("join Hare"), try start("join Wolf"))
        for other in [hare, wolf] { try other.line(with: "hosts: 1 Boar, 2 Puma") }
        try hare.type("2", andSee: "at the table: Hare, Lynx", at: lynx)
        try wolf.type("2", andSee: "Puma is not to be joined", at: wolf)
        try lynx.type("hello", andSee: "Lynx: hello", at: puma, lynx, hare)

        let seen = wolf.lines.count
        try puma.type("start", andSee: "the game begins", at: puma, lynx, hare)
        try wolf.line(exactly: "hosts: 1 Boar", after: seen)
        let late = try start("join Late")
        try late.line(exactly: "hosts: 1 Boar", after: 0)

        try puma.type("good night", andSee: "Puma: good night", at: lynx, hare)
        try puma.type("end", andSee: "Puma has gone", at: lynx, hare)
        #expect(try puma.end().status == 0)
        #expect(!late.lines.contains { $0.contains("Puma") })
        for child in [lynx, late, boar, hare, wolf] { child.type("end") }
        for child in [lynx, late, boar, hare, wolf] { #expect(try child.end().status == 0) }
    }

    @Test func `Lobby notices players that are killed and hosts that are stopped`() throws {
        let start = try LobbyPlayers()
        let puma = try start("host Puma 2")
        let (lynx, hare) = (try start("join Lynx"), try start("join Hare"))
        for guest in [lynx, hare] {
            try guest.line(with: "hosts: 1 Puma")
            guest.type("1")
        }
        try puma.line(with: "at the table: Hare, Lynx")
        let seen = puma.lines.count
        lynx.send(SIGKILL)
        try puma.line(exactly: "at the table: Hare", after: seen)
        puma.send(SIGSTOP)
        try hare.line(with: "Puma has gone")
        puma.send(SIGCONT)
        for child in [puma, hare] { child.type("end") }
        for child in [puma, hare] { #expect(try child.end().status == 0) }
    }

    @Test func `PeerBrowser invites one who declines and then accepts, and sends a file`() throws {
        let program = try ExampleProgram("PeerBrowser")
        let content = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        try content.write(to: URL(filePath: "\(program.folder(of: 0).path)/film"))
        let (puma, lynx) = (try program.start("Puma", as: 0), try program.start("Lynx", as: 1))
        try puma.line(with: "1 Lynx")
        puma.type("1")
        try puma.line(with: "1 Lynx", "connecting")
        try lynx.line(with: "Puma invites you")
        lynx.type("n")
        try puma.line(with: "1 Lynx", "not connected")
        puma.type("1")
        try lynx.line(with: "Puma invites you", occurrence: 2)
        lynx.type("y")
        try puma.line(with: "1 Lynx", "  connected")
        try lynx.line(with: "Puma is connected")
        puma.type("film")
        try puma.line(with: "film to Lynx", "%")
        try lynx.line(with: "film from Puma: is here as received-film")
        try puma.line(with: "film to Lynx: sent")
        #expect(try Data(contentsOf: URL(filePath: "\(program.folder(of: 1).path)/received-film")) == content)
        try puma.leave()
        try lynx.line(with: "Puma is not connected")
        lynx.type("q")
        #expect(try lynx.end().status == 0)
    }

    /// The part of a line that names a peer with the beginning of its hash.
    private func peer(in line: String) -> Substring { line[(line.firstIndex(of: "<") ?? line.endIndex)...] }

    @Test func `PeerManager connects both ways, and is the same peer when it returns`() throws {
        let program = try ExampleProgram("PeerManager")
        let (puma, lynx) = (try program.start("Puma", as: 0), try program.start("Lynx", as: 1))
        let who = peer(in: try puma.line(with: "this is"))
        #expect(peer(in: try lynx.line(with: "connected to <", "Puma")) == who)
        try puma.line(with: "connected to <", "Lynx")
        try puma.type("good morning", andSee: "Puma, note 1: good morning", at: lynx)
        try lynx.type("good evening", andSee: "Lynx, note 1: good evening", at: puma)
        try puma.leave()
        try lynx.line(with: "not connected to Puma")

        let again = try program.start("Puma", as: 0)
        #expect(peer(in: try again.line(with: "this is")) == who)
        #expect(peer(in: try lynx.line(with: "connected to <", "Puma", occurrence: 2)) == who)
        try again.leave()
        try lynx.leave()

        let down = try program.start("Puma", as: 0, environment: ["NIGH_TRANSPORTS": "tcp:interface=nosuch0"])
        try down.line(with: "not advertised:")
        try down.leave()
    }

    @Test func `PeerPicker connects two after one has declined, and is closed with q`() throws {
        let program = try ExampleProgram("PeerPicker")
        let (puma, lynx) = (try program.start("Puma", as: 0), try program.start("Lynx", as: 1))
        try puma.line(with: "1 Lynx")
        try lynx.line(with: "1 Puma")
        try puma.type("1", andSee: "Puma wants to connect", at: lynx)
        lynx.type("n")
        try puma.line(with: "Lynx", "declined")
        puma.type("1")
        try lynx.line(with: "Puma wants to connect", occurrence: 2)
        try lynx.type("y", andSee: "Connected to Lynx", at: puma)
        try lynx.line(with: "Connected to Puma")
        try puma.type("good morning", andSee: "Puma: good morning", at: lynx)
        try lynx.type("and you", andSee: "Lynx: and you", at: puma)
        try puma.leave()
        #expect(try lynx.end().status == 0)
        let closing = try program.start("Puma", as: 0)
        try closing.line(with: "Looking for others")
        closing.type("q")
        #expect(try closing.end().status == 0)
    }

    @Test func `Primes answers another process, and refuses what is too much`() throws {
        let program = try ExampleProgram("Primes")
        let server = try program.start("serve 0 \(network)", as: 0)
        for (user, end, line) in [
            (1, "100000", "9592 primes below 100000, says serve"),
            (2, "10000001", "ask for 10000000 at most"),
        ] {
            let client = try program.start("ask \(end) \(network)", as: user)
            try client.line(with: line)
            #expect(try client.end().status == 0)
            try server.line(with: "ask asks for the primes below \(end)")
        }
        try interrupt(server)
    }

    @Test func `Share passes on a line and a file, and reports a file that it cannot send`() throws {
        let program = try ExampleProgram("Share")
        let letter = program.folder(of: 0).file("letter.txt", "a letter")
        let (puma, lynx) = (
            try program.start("Puma \(network)", as: 0), try program.start("Lynx \(network)", as: 1)
        )
        try puma.line(with: "Lynx is here")
        try lynx.line(with: "Puma is here")
        try puma.type("good morning", andSee: "Puma: good morning", at: lynx)
        try puma.type("/send nowhere.txt", andSee: "nowhere.txt", at: puma)
        try puma.type("/send \(letter)", andSee: "letter.txt is here", at: lynx)
        try puma.line(with: "Lynx has")
        #expect(TemporaryFolder.text(of: program.folder(of: 1).path + "/letter.txt") == "a letter")
        try puma.leave()
        try lynx.line(with: "Puma is gone")
        try interrupt(lynx)
    }

    @Test func `TeamChat shows lines to the present members of one team only`() throws {
        let program = try ExampleProgram("TeamChat")
        let children = try ["Puma red", "Lynx red", "Hare blue"].enumerated().map {
            try program.start("\($1) \(network)", as: $0)
        }
        let (puma, lynx, hare) = (children[0], children[1], children[2])
        try puma.line(with: #"red | ["you", "Lynx"]"#)
        try lynx.line(with: #"red | ["you", "Puma"]"#)
        try puma.type("for red only", andSee: "red | Puma: for red only", at: lynx)
        hare.type("/join red")
        try hare.line(with: "red | [", "Puma", "Lynx")
        try puma.line(with: "red | [", "Hare", "Lynx")
        try puma.type("for all", andSee: "red | Puma: for all", at: lynx, hare)
        try interrupt(puma, lynx, hare)
    }
}

/// Players of Examples/Lobby whose tables no other test finds.
private final class LobbyPlayers {
    private let program: ExampleProgram
    private let name = "lobby-\(UInt16.random(in: 0 ... .max))"
    private var count = 0

    init() throws { program = try ExampleProgram("Lobby") }

    func callAsFunction(_ line: String) throws -> Child {
        count += 1
        return try program.start(line, as: count, environment: ["LOBBY": name])
    }
}

/// Examples/Hello, the first program that a reader sees.
@Suite(.callsPrograms, .serialized) struct HelloTests {
    private let network = ExampleProgram.transports

    @Test func `It carries lines, and a signal ends it unless it was started to ignore it`() throws {
        let program = try ExampleProgram("Hello")
        // Both are programs of one user.
        let puma = try Child(
            "/bin/sh", ["-c", "trap '' INT; exec stdbuf -oL '\(program.path)' Puma \(network)"],
            environment: ["XDG_DATA_HOME": "\(program.folder(of: 0).path)/.data"], reads: true)
        let lynx = try program.start("Lynx \(network)", as: 0)
        #expect(try puma.line(with: " is connected over ").hasPrefix("Lynx ("))
        #expect(try lynx.line(with: " is connected over ").hasPrefix("Puma ("))
        try puma.type("good morning", andSee: "Puma: good morning", at: lynx)
        puma.send(SIGINT)
        try lynx.type("and \"you\" \u{1F43E}", andSee: "Lynx: and \"you\" \u{1F43E}", at: puma)
        puma.send(SIGTERM)
        #expect(try puma.end().status == 0)
        try interrupt(lynx)
    }

    @Test(
        arguments: [
            ("bluetooth:adapter=hci60000", "bluetooth cannot be used: "),
            (
                "pigeon",
                "there is no transport \"pigeon\"; known are: bluetooth, memory, nats, serial, tcp, web"
            ),
        ])
    func `It says that its transport does not work, and ends`(_ transport: String, _ words: String) throws {
        let hello = try ExampleProgram("Hello")
        let puma = try hello.start("Puma \(transport)", as: 0)
        try puma.line(with: words)
        try puma.leave()
    }

    @Test func `It runs over memory, where it finds nobody, and ends with its input`() throws {
        let hello = try ExampleProgram("Hello")
        let puma = try hello.start("Puma memory", as: 0)
        puma.type("anybody?")
        try puma.leave()
        #expect(!puma.lines.contains { $0.contains("connected") })
    }

    @Test func `The README shows it, and it has at most 20 lines`() throws {
        func content(_ path: String) throws -> String {
            try String(contentsOfFile: "\(BuiltPackages.root)/\(path)", encoding: .utf8)
        }
        let program = try content("Examples/Hello/Sources/Hello/main.swift")
        #expect(program.split(separator: "\n", omittingEmptySubsequences: false).count <= 21)
        let readme = try content("README.md")
        #expect(readme.contains("```swift\n\(program)```\n"))
        let shown = try content("Examples/Hello/Package.swift").replacing(
            #"path: "../..")],"#, with: #"path: "../nigh")],  // Nigh's sources"#)
        #expect(readme.contains("```swift\n\(shown)```\n"))
    }
}
