import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// Examples/Hello, the first program that a reader sees.
@Suite("The hello program", .callsPrograms, .serialized) struct HelloTests {
    private let user = TemporaryFolder()

    /// Runs the program with its lines as they come.
    private func hello(_ name: String, _ transports: String) throws -> Child {
        let program = try BuiltPackages.build("Examples/Hello") + "/Hello"
        // It prints to a pipe, which the C library would buffer.
        return try Child(
            "/usr/bin/stdbuf", ["-oL", program, name, transports], environment: ["XDG_DATA_HOME": user.path],
            reads: true)
    }

    @Test("carries lines between two processes of one user over TCP")
    func tcp() throws {
        let puma = try hello("Puma", "tcp:interface=lo,mdns=embedded")
        let lynx = try hello("Lynx", "tcp:interface=lo,mdns=embedded")
        #expect(try puma.line(with: " is connected over ").hasPrefix("Lynx ("))
        #expect(try lynx.line(with: " is connected over ").hasPrefix("Puma ("))
        puma.type("good morning")
        lynx.type("and \"you\" \u{1F43E}")
        try lynx.line(with: "Puma: good morning")
        try puma.line(with: "Lynx: and \"you\" \u{1F43E}")
        puma.closeInput()
        #expect(try puma.end().status == 0)
        // Ctrl-C ends it in good order, too.
        lynx.send(SIGINT)
        #expect(try lynx.end().status == 0)
    }

    @Test("leaves a signal alone that it was started to ignore, and ends with one that it was not")
    func ignoredSignal() throws {
        let program = try BuiltPackages.build("Examples/Hello") + "/Hello"
        let puma = try Child(
            "/bin/sh",
            ["-c", "trap '' INT; exec stdbuf -oL '\(program)' Puma tcp:interface=lo,mdns=embedded"],
            environment: ["XDG_DATA_HOME": user.path], reads: true)
        let lynx = try hello("Lynx", "tcp:interface=lo,mdns=embedded")
        for child in [puma, lynx] { try child.line(with: " is connected over ") }
        puma.send(SIGINT)
        lynx.type("still there?")
        try puma.line(with: "Lynx: still there?")
        puma.send(SIGTERM)
        #expect(try puma.end().status == 0)
        lynx.closeInput()
        #expect(try lynx.end().status == 0)
    }

    @Test("runs over memory, where it finds nobody, and ends with its input")
    func memory() throws {
        let puma = try hello("Puma", "memory")
        puma.type("anybody?")
        puma.closeInput()
        #expect(try puma.end().status == 0 && !puma.lines.contains { $0.contains("connected") })
    }

    @Test("says that its transport does not work, and ends with its input")
    func down() throws {
        let puma = try hello("Puma", "bluetooth:adapter=hci60000")
        try puma.line(with: "bluetooth cannot be used: ")
        puma.closeInput()
        #expect(try puma.end().status == 0)
    }

    @Test("reports a transport that does not exist")
    func unknown() throws {
        let puma = try hello("Puma", "pigeon")
        #expect(try puma.end().status == 0)
        #expect(
            puma.lines == [
                "checking the settings: there is no transport \"pigeon\"; "
                    + "known are: bluetooth, memory, nats, serial, tcp, web"
            ])
    }

    @Test("is shown by the README, and has at most 20 lines")
    func quoted() throws {
        func content(_ path: String) throws -> String {
            try String(contentsOfFile: "\(BuiltPackages.root)/\(path)", encoding: .utf8)
        }
        let program = try content("Examples/Hello/Sources/Hello/main.swift")
        #expect(program.split(separator: "\n", omittingEmptySubsequences: false).count <= 21)
        let readme = try content("README.md")
        #expect(readme.contains("```swift\n\(program)```\n"))
        let manifest = try content("Examples/Hello/Package.swift")
        let shown = manifest.replacing(
            #"path: "../..")],"#, with: #"path: "../nigh")],  // Nigh's sources"#)
        #expect(readme.contains("```swift\n\(shown)```\n"))
    }
}
