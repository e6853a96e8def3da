import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Examples/PeerPicker, a picker in the terminal.
@Suite("The peer picker in a terminal", .callsPrograms) struct PeerPickerTests {
    private func start(_ name: String) throws -> Child {
        let program = try BuiltPackages.build("Examples/PeerPicker") + "/PeerPicker"
        return try Child(
            "/usr/bin/stdbuf", ["-oL", program, name],
            environment: ["NIGH_TRANSPORTS": "tcp:interface=lo,mdns=embedded"], reads: true)
    }

    @Test("connects two who choose and accept, after one of them has declined first")
    func chat() throws {
        let puma = try start("Puma")
        let lynx = try start("Lynx")
        try puma.line(with: "1 Lynx")
        try lynx.line(with: "1 Puma")
        puma.type("1")
        try lynx.line(with: "Puma wants to connect")
        lynx.type("n")
        try puma.line(with: "Lynx", "declined")
        puma.type("1")
        try lynx.line(with: "Puma wants to connect", occurrence: 2)
        lynx.type("y")
        try puma.line(with: "Connected to Lynx")
        try lynx.line(with: "Connected to Puma")
        puma.type("good morning")
        try lynx.line(with: "Puma: good morning")
        lynx.type("and you")
        try puma.line(with: "Lynx: and you")
        puma.closeInput()
        for child in [puma, lynx] { #expect(try child.end().status == 0) }
    }

    @Test("is closed with q")
    func closing() throws {
        let puma = try start("Puma")
        try puma.line(with: "Looking for others")
        puma.type("q")
        #expect(try puma.end().status == 0)
    }
}
