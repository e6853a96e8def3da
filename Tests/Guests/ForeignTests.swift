import ChildPrograms
import NighTestKit
import Testing

@Suite("A guest in Python, written from the protocol's page alone") struct ForeignTests {
    private let folder = TemporaryFolder()
    private static let script = BuiltPackages.root + "/Tests/Guests/Foreign/guest"

    private func guest(_ address: String, _ name: String) throws -> Child {
        try Child(Self.script, ["--connect", "127.0.0.1", address, name], reads: true)
    }

    @Test func `A guest in Python sends and hears each line once and in order over three cuts`() throws {
        let host = try GuestHost("nigh", ["chat"], in: folder)
        let wire = try CuttableWire(toPort: host.port)
        let guest = try guest(host.url.replacing(":\(host.port)/", with: ":\(wire.port)/"), "Änne 🐆")
        try guest.error(with: "joined Puma")
        try host.program.line(with: "Änne 🐆", "has joined, over web")
        // More than one message holds.
        let long = String(repeating: "ä🐆", count: 2_000)
        var said: [String] = []
        for round in 0...3 {
            for number in 0..<100 {
                said.append("\(round).\(number) wörter 🐆")
                host.program.type(said.last!)
                guest.type(said.last!)
                // Lines of both sides are under way.
                if round > 0 && number == 50 { try wire.cut() }
            }
            if round > 0 { try guest.error(with: "resumed", occurrence: round) }
        }
        guest.type(long)
        for line in ["", "the end"] {
            said.append(line)
            host.program.type(line)
            guest.type(line)
        }
        try guest.line(with: "heard: the end")
        guest.closeInput()
        let (status, errors) = try guest.end()
        #expect(status == 0, "\(errors)")
        try host.program.line(with: "Änne 🐆", "has left")
        #expect(guest.lines == said.map { "heard: \($0)" })
        let heard = host.program.lines.compactMap { $0.wholeMatch(of: #/Änne 🐆: (.*)/#).map { String($0.1) } }
        let parts = heard.filter { $0.hasPrefix("ä🐆") || $0.hasPrefix("🐆ä") }
        #expect(parts.joined() == long)
        #expect(heard.filter { !parts.contains($0) } == said)
    }

    @Test func `A guest in Python shows why it is refused with an unknown or a used code`() throws {
        let host = try GuestHost("nigh", ["chat"], in: folder)
        let token = String(repeating: "a", count: 26)
        let unknown = try guest("\(host.url.prefix { $0 != "#" })#\(token)", "Anna").end()
        #expect(unknown.errors == ["the host refused: This code is not known here. Scan the code again."])
        #expect(unknown.status == 1)
        let first = try guest(host.url, "Anna")
        try first.error(with: "joined Puma")
        let used = try guest(host.url, "Bert").end()
        let words = "This code was used already. Each code lets in one device: scan a new one."
        #expect(used.errors == ["the host refused: \(words)"])
        #expect(used.status == 1)
    }
}
