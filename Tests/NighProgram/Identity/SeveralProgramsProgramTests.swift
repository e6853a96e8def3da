import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// Tests the programs of two paired people that run side by side on both devices.
@Suite(.callsPrograms) struct SeveralProgramsProgramTests {
    private let service = "s\(UInt32.random(in: .min ... .max))"
    private var session: [String] { ["-t", "tcp:interface=lo,mdns=embedded", "-s", service] }
    private let arrived = TemporaryFolder()

    /// A user with a name.
    private func user(_ name: String) throws -> (user: NighUser, id: String) {
        let user = NighUser()
        #expect(try user.run("identity", "rename", name).status == 0)
        return (user, try #require(try user.run("identity", "--json").object()["id"] as? String))
    }

    /// Pairs the two, as they do it at their terminals.
    private func pair(_ waiting: NighUser, _ asking: NighUser) throws {
        let programs = [
            try waiting.start(["pair", "--json-lines"] + session, reads: true),
            try asking.start(["pair", "Puma", "--json-lines"] + session, reads: true),
        ]
        for program in programs { try program.line(with: "\"digits\"") }
        for program in programs { program.type("y") }
        for program in programs {
            let call = try NighCall(finishing: program)
            #expect(call.status == 0, "\(call)")
            expectNoAlarm(call.errors)
        }
    }

    /// Starts everything that a user can leave running: a receiver, a host of measurements, a chat and a table.
    private func startAll(_ user: NighUser, into folder: String) throws -> [Child] {
        [
            try user.start(["receive", "--accept", "paired", "--into", folder] + session, reads: true),
            try user.start(["host", "--security", "paired"] + session, reads: true),
            try user.start(["chat"] + session, reads: true),
            try Child(
                "fourinarow", ["host", "--plain", "-t", "tcp:interface=lo,mdns=embedded"],
                environment: user.environment, reads: true),
        ]
    }

    private func expectNoAlarm(_ text: [String], _ place: SourceLocation = #_sourceLocation) {
        for alarm in ["somebody", "temporary", "not paired", "SOMEBODY"] {
            #expect(!text.contains { $0.contains(alarm) }, "\(text)", sourceLocation: place)
        }
    }

    @Test("Programs of two paired people that all run at once reach each other, paired and without an alarm")
    func sideBySide() throws {
        let (puma, pumasID) = try user("Puma")
        let (lynx, lynxsID) = try user("Lynx")
        let file = TemporaryFolder()
        try Data("a letter".utf8).write(to: URL(fileURLWithPath: file.path + "/letter"))
        let pumas = try startAll(puma, into: arrived.path)
        try pumas[0].error(with: "waiting for files")
        try pumas[1].line(with: "waits for nigh ping")
        let lynxs = try startAll(lynx, into: file.path)
        try lynxs[0].error(with: "waiting for files")
        try pair(puma, lynx)

        let sent = try lynx.run(["send", "Puma", file.path + "/letter"] + session)
        #expect(sent.status == 0, "\(sent)")
        #expect(try String(contentsOfFile: arrived.path + "/letter", encoding: .utf8) == "a letter")
        let ping = try lynx.run(["ping", "Puma", "-c", "1", "--security", "paired"] + session)
        #expect(ping.status == 0, "\(ping)")
        let chat = try lynx.start(["chat", "Puma"] + session, reads: true)
        try chat.line(with: "Puma", "has joined")
        chat.type("to all my friends")
        try pumas[2].line(with: "Lynx: to all my friends")
        chat.type("/quit")
        let chatted = try NighCall(finishing: chat)
        let game = try Child(
            "fourinarow", ["join", "Puma", "--plain", "-t", "tcp:interface=lo,mdns=embedded"],
            environment: lynx.environment, reads: true)
        try pumas[3].line(with: "Lynx wants to play")
        game.send(SIGTERM)
        let discovered = try lynx.run(["discover", "--once", "--json"] + session)
        let peers = try #require(try discovered.object()["peers"] as? [[String: Any]])
        #expect(
            peers.count == 6 && Set(peers.compactMap { $0["name"] as? String }) == ["Puma", "Lynx"],
            "\(peers)")
        #expect(Set(peers.compactMap { $0["identity"] as? String }) == [pumasID, lynxsID])
        #expect(peers.allSatisfy { $0["trust"] as? String == "paired" })
        #expect(peers.count { $0["own"] as? Bool == true } == 3)
        try discovered.expectSchema("discover")
        let users = try #require(try puma.run("identity", "--json").object()["users"] as? [[String: Any]])
        #expect(users.count == 4 && users.count { $0["own_key"] as? Bool == true } == 2, "\(users)")

        expectNoAlarm(sent.errors + sent.lines + ping.errors + ping.lines + chatted.errors + chatted.lines)
        for program in pumas + lynxs {
            program.send(SIGTERM)
            let (_, errors) = try program.end()
            expectNoAlarm(errors + program.lines)
        }
        let known = try puma.run("peers", "--json-lines").objects()
        #expect(known.compactMap { $0["id"] as? String } == [lynxsID], "\(known)")
    }
}
