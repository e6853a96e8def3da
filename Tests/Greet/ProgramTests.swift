import ChildPrograms
import Glibc
import Testing

/// The program as a person starts it, in processes of its own that reach each other over loopback.
@Suite(.serialized)
struct ProgramTests {
    private static let transport = "tcp:interface=lo,mdns=embedded"
    private static let withoutDiscovery = "tcp:interface=lo,mdns=off"
    /// Of this run alone, so that it meets nobody else's.
    private static let service = "greet-\(getpid())"

    private func start(_ name: String, over transport: String = transport, _ more: [String] = []) throws
        -> Child
    {
        try Child("greet", ["--name", name, "--service", Self.service, "--transport", transport] + more)
    }

    @Test(arguments: ["memory", transport]) func twoInOneProgramMeetTalkAndLeave(_ transport: String) throws {
        let child = try Child("greet", ["--service", Self.service, "--transport", transport])
        let (status, errors) = try child.end()
        #expect(status == 0)
        #expect(errors == [])
        for (one, other) in [("Puma", "Lynx"), ("Lynx", "Puma")] {
            #expect(child.lines.contains("\(one)  hears from \(other): \"Hello \(one), \(other) here!\""))
            #expect(child.lines.contains("\(one)  has left"))
        }
    }

    @Test func programsFindEachOtherGreetOnceAndSayGoodbye() throws {
        let children = try ["Puma", "Lynx", "Wolf"].map { ($0, try start($0)) }
        for (name, child) in children {
            for (other, _) in children where other != name {
                try child.line(with: "\(name)  hears from \(other): \"Hello \(name), \(other) here!\"")
                try child.line(with: "there and back from \(other)")
                try child.line(with: "sees \(other)")
            }
        }
        let (puma, lynx, wolf) = (children[0].1, children[1].1, children[2].1)
        lynx.send(SIGINT)
        #expect(try lynx.end().status == 0)
        #expect(lynx.lines.last == "Lynx  has left")
        for child in [puma, wolf] {
            try child.line(with: "talks to Lynx no more: the peer left")
            try child.line(with: "no longer sees Lynx")
            child.send(SIGTERM)
            #expect(try child.end().status == 0)
        }
        for (name, child) in children {
            for (other, _) in children where other != name {
                let greetings = child.lines.filter { $0.contains("hears from \(other)") }
                #expect(greetings.count == 1, "\(name) was greeted by \(other): \(greetings)")
            }
        }
    }

    @Test func aHostInTheTransportsOptionsIsMetWithoutDiscovery() throws {
        let puma = try start("Puma", over: Self.withoutDiscovery)
        let address = try #require(address(of: puma).split(separator: "/").last)
        let parts = address.split(separator: ":")
        let spec = "\(Self.withoutDiscovery),host=\(parts[0]),port=\(parts[1])"
        let lynx = try Child("greet", ["--service", Self.service, "--transport", spec])
        try lynx.line(with: "sees Puma")
        try lynx.line(with: "hears from Puma")
        try puma.line(with: "hears from")
        puma.send(SIGINT)
        #expect(try puma.end().status == 0)
        try lynx.line(with: "no longer sees Puma")
        try lynx.line(with: "has trouble", "nobody listens there")
        lynx.send(SIGINT)
        #expect(try lynx.end().status == 0)
    }

    @Test func anAddressIsEnoughToMeet() throws {
        let puma = try start("Puma", over: Self.withoutDiscovery)
        let lynx = try start("Lynx", over: Self.withoutDiscovery, ["--connect", address(of: puma)])
        try lynx.line(with: "hears from Puma")
        try puma.line(with: "hears from Lynx")
    }

    @Test func anIdentityFileMakesItTheSamePeerAgain() throws {
        let path = "/tmp/greet-\(getpid()).pem"
        defer { unlink(path) }
        let said = try (0..<2).map { _ in
            let child = try start("Puma", over: Self.withoutDiscovery, ["--identity", path])
            let line = try child.line(with: "is here as")
            child.send(SIGINT)
            #expect(try child.end().status == 0)
            return line
        }
        #expect(said[0] == said[1])
    }

    @Test func whoeverCannotBeReachedIsToldAndTriedAgain() throws {
        let child = try start("Puma", over: Self.withoutDiscovery, ["--connect", "tcp://127.0.0.1:1"])
        try child.line(
            with: "could not reach tcp://127.0.0.1:1", "nobody listens there", "tries again in 2 s")
        try child.line(with: "could not reach tcp://127.0.0.1:1", "tries again in 4 s")
    }

    /// What has a connection already goes on, and whoever knocks is let in again later.
    @Test func runningOutOfDescriptorsStopsNothingElse() throws {
        let puma = try start("Puma", over: Self.withoutDiscovery)
        let address = try address(of: puma)
        let lynx = try start("Lynx", over: Self.withoutDiscovery, ["--connect", address])
        try puma.line(with: "hears from Lynx")
        try puma.limitDescriptors(to: 3)
        let wolf = try start("Wolf", over: Self.withoutDiscovery, ["--connect", address])
        try puma.line(with: "has trouble", "raise `ulimit -n`")
        lynx.send(SIGINT)
        #expect(try lynx.end().status == 0)
        try puma.line(with: "talks to Lynx no more: the peer left")
        try puma.limitDescriptors(to: 200)
        try puma.line(with: "can be called at", address, occurrence: 2)
        try wolf.line(with: "hears from Puma")
    }

    private func address(of child: Child) throws -> String {
        let said = try child.line(with: "can be called at", "tcp://127.0.0.1:")
        return String(try #require(said.split { $0 == " " || $0 == "," }.first { $0.contains("127.0.0.1") }))
    }

    /// The other is stopped, so that leaving waits for it.
    @Test func theSecondInterruptEndsItAtOnce() throws {
        let puma = try start("Puma")
        let lynx = try start("Lynx")
        try puma.line(with: "hears from Lynx")
        try lynx.line(with: "hears from Puma")
        try puma.line(with: "there and back")
        lynx.send(SIGSTOP)
        puma.send(SIGINT)
        try puma.line(with: "leaves")
        puma.send(SIGINT)
        #expect(try puma.end().status == 130)
    }

    @Test func itLeavesWhenNobodyReadsWhatItSays() throws {
        let puma = try start("Puma")
        try puma.line(with: "can be called")
        puma.stopListening()
        // Gives it something to say.
        let lynx = try start("Lynx")
        #expect(try puma.end().status == 0)
        withExtendedLifetime(lynx) {}
    }

    @Test(arguments: [
        ["--nonsense"], ["--name"], ["--transport", "pigeon"], ["--transport", "tcp:port=x"],
    ])
    func wrongFlagsAreAnsweredInOneSentence(_ arguments: [String]) throws {
        let child = try Child("greet", arguments)
        let (status, errors) = try child.end()
        #expect(status == 2)
        #expect(errors.count == 1)
        #expect(errors.first?.hasPrefix("greet: ") == true)
        #expect(child.lines.isEmpty)
    }

    @Test(arguments: ["--help", "--transport memory"])
    func whatCannotBeWrittenIsToldAndNoSuccess(_ arguments: String) throws {
        let program = BuiltPrograms.path(of: "greet")
        let (status, errors) = try Child("/bin/sh", ["-c", "exec \(program) \(arguments) >/dev/full"]).end()
        #expect(status == 1)
        #expect(
            errors.contains("greet: writing to the standard output: No space left on device"), "\(errors)")
    }

    @Test func helpIsNoMistake() throws {
        let child = try Child("greet", ["--help"])
        #expect(try child.end().status == 0)
        #expect(child.lines.first?.hasPrefix("usage: greet") == true)
    }
}
