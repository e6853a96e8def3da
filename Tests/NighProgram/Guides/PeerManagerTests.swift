import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Examples/PeerManager, a program for MultipeerConnectivity.
@Suite("The peer manager", .callsPrograms) struct PeerManagerTests {
    private let users = (0..<2).map { _ in TemporaryFolder() }

    private func start(_ user: Int, _ name: String, transports: String = "tcp:interface=lo,mdns=embedded")
        throws -> Child
    {
        let program = try BuiltPackages.build("Examples/PeerManager") + "/PeerManager"
        return try Child(
            "/usr/bin/stdbuf", ["-oL", program, name],
            environment: ["XDG_DATA_HOME": users[user].path, "NIGH_TRANSPORTS": transports], reads: true)
    }

    /// The part of a line that names a peer with the beginning of its hash.
    private func peer(in line: String) -> Substring { line[(line.firstIndex(of: "<") ?? line.endIndex)...] }

    @Test("connects both ways with one session a peer, and is the same peer when it is started again")
    func twoPrograms() throws {
        let (puma, lynx) = (try start(0, "Puma"), try start(1, "Lynx"))
        let who = peer(in: try puma.line(with: "this is"))
        #expect(peer(in: try lynx.line(with: "connected to <", "Puma")) == who)
        try puma.line(with: "connected to <", "Lynx")
        puma.type("good morning")
        try lynx.line(with: "Puma, note 1: good morning")
        lynx.type("good evening")
        try puma.line(with: "Lynx, note 1: good evening")
        puma.closeInput()
        #expect(try puma.end().status == 0)
        try lynx.line(with: "not connected to Puma")

        let again = try start(0, "Puma")
        #expect(peer(in: try again.line(with: "this is")) == who)
        #expect(peer(in: try lynx.line(with: "connected to <", "Puma", occurrence: 2)) == who)
        for child in [again, lynx] {
            child.closeInput()
            #expect(try child.end().status == 0)
        }
    }

    @Test("is told that nothing starts where no transport is up")
    func noTransport() throws {
        let puma = try start(0, "Puma", transports: "tcp:interface=nosuch0")
        try puma.line(with: "not advertised:")
        puma.closeInput()
        #expect(try puma.end().status == 0)
    }
}
