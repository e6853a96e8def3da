import ChildPrograms
import Foundation
import NighCore
import NighTestKit
import Testing

@testable import nigh

/// Tests how running commands use the trust store, and how they react when it changes.
@Suite(.callsPrograms) struct TrustInUseTests {
    private let puma = NighUser()
    private let lynx = NighUser()
    private let files = TemporaryFolder()
    private static let dates = "2026-11-21 2026-11-21"

    @Test func `Unpairing ends the conversation of a host for paired devices, with the reason`() throws {
        try puma.know("paired \(lynx.id()) \(Self.dates) \"Lynx\"")
        let host = try Listener("host --name Puma --security paired", of: puma)
        let ping = "ping \(host.address) --name Lynx \(byAddress)"
        let pinging = try lynx.start("\(ping) -i 50ms --json-lines")
        try pinging.line(with: "\"reply\"")
        try puma.run("peers unpair Lynx")
        // Without the check, `ping` would go on forever.
        try host.child.line(with: "\"left\"", "not paired")
        try pinging.line(with: "not paired")
        try pinging.finish(after: SIGINT, status: nil)
        try lynx.run("\(ping) -c 1 --wait 5m", status: 1, says: "not paired")
        try host.end()
    }

    @Test func `Unpairing ends a transfer between paired devices, and both report the reason`() throws {
        try puma.know("paired \(lynx.id()) \(Self.dates) \"Lynx\"")
        let receiving = try Listener("receive --accept paired --into \(files.path)", of: puma)
        // The sender's input has no end, so the transfer would go on forever.
        let sending = try lynx.start(
            "send \(receiving.address) - --as notes --name Lynx \(byAddress)", reads: true)
        sending.type("first line")
        try receiving.child.line(with: "\"start\"")
        try puma.run("peers unpair Lynx")
        try receiving.child.line(with: "\"failure\"", "pairing was removed")
        try sending.finish(status: 1, says: "pairing was removed")
    }

    /// Two users who know each other's names with another key, Lynx also that of a paired device if `trust` says so.
    private func strangers(_ trust: String = "known") throws -> (
        puma: NighUser, lynx: NighUser, warning: String
    ) {
        let (puma, lynx, other) = (NighUser(), NighUser(), try NighUser().run("identity --json").json)
        let (id, short) = (try #require(other["id"].string), try #require(other["short_id"].string))
        try puma.know("known \(id) \(Self.dates) \"Lynx\"")
        try lynx.know("\(trust) \(id) \(Self.dates) \"Puma\"")
        return (puma, lynx, "with another key (\(short))")
    }

    @Test(arguments: [true, false])
    func `A known name with another key is reported by ping, host, send and receive`(_ isPing: Bool) throws {
        let (puma, lynx, warning) = try strangers(isPing ? "paired" : "known")
        let serving = isPing ? "host" : "receive --accept any --into \(files.path)"
        let server = try Listener("\(serving) --name Puma --once", of: puma)
        let calling = isPing ? "ping -c 1 --timeout 1m" : "send \(files.file("sent", "hello")) --to"
        try lynx.run(
            "\(calling) \(server.address) --name Lynx \(byAddress)", says: "you know Puma \(warning)")
        try server.child.finish(says: "you know Lynx \(warning)")
    }

    @Test func `A known name with another key is marked in chat, on both sides`() throws {
        let (puma, lynx, warning) = try strangers()
        let session = NighUser.meetingPlace()
        let waiting = try puma.start("chat -n Puma \(session)", reads: true)
        let guest = try lynx.start("chat Puma -n Lynx \(session)", reads: true)
        try waiting.error(with: "you know Lynx \(warning)")
        try guest.error(with: "you know Puma \(warning)")
        for child in [guest, waiting] { try child.leave() }
    }

    @Test func `A known name with another key is marked in the question of receive`() throws {
        let (puma, lynx, _) = try strangers()
        let windows = try TerminalWindows(of: "nigh")
        let port = try BoundSocket.freePort()
        try puma.openTerminal("receive --into \(files.path) \(byAddress),port=\(port)", in: windows)
        try windows.wait("w", shows: "waiting for files")
        let file = files.file("sent", "hello")
        let sending = try lynx.start("send tcp://127.0.0.1:\(port) \(file) --name Lynx \(byAddress)")
        try windows.wait("w", shows: "Accept from Lynx")
        let question = try windows.text("w").replacing("\n", with: "")
        #expect(question.contains("you know Lynx with another key"), "\(question)")
        try windows.press("w", "n", "Enter")
        try sending.finish(status: 1)
    }
}

/// Tests the programs of two paired people that run side by side on both devices.
@Suite(.callsPrograms) struct SeveralProgramsProgramTests {
    private let session = NighUser.meetingPlace()

    /// A user with a name.
    private func user(_ name: String) throws -> (user: NighUser, id: String) {
        let user = NighUser()
        try user.run("identity rename \(name)")
        return (user, try user.id())
    }

    /// Pairs the two, as they do it at their terminals.
    private func pair(_ waiting: NighUser, _ asking: NighUser) throws {
        let programs = [
            try waiting.start("pair --json-lines \(session)", reads: true),
            try asking.start("pair Puma --json-lines \(session)", reads: true),
        ]
        for program in programs { try program.line(with: "\"digits\"") }
        for program in programs { program.type("y") }
        for program in programs { expectNoAlarm(try program.finish().errors) }
    }

    /// Starts everything that a user can leave running: a receiver, a host of measurements, a chat and a table.
    private func startAll(_ user: NighUser, into folder: String) throws -> [Child] {
        try ["receive --accept paired --into \(folder)", "host --security paired", "chat"].map {
            try user.start("\($0) \(session)", reads: true)
        } + [try table("host", of: user)]
    }

    private func table(_ words: String..., of user: NighUser) throws -> Child {
        try Child(
            "fourinarow", words + ["--plain", "-t", "tcp:interface=lo,mdns=embedded"],
            environment: user.environment, reads: true)
    }

    private func discoverOnce(_ user: NighUser) throws -> [JSONValue] {
        try user.run("discover --once --json \(session)").json["peers"].list
    }

    private func expectNoAlarm(_ text: [String], _ place: SourceLocation = #_sourceLocation) {
        for alarm in ["somebody", "temporary", "not paired", "SOMEBODY"] {
            #expect(!text.contains { $0.contains(alarm) }, "\(text)", sourceLocation: place)
        }
    }

    @Test func `All programs of two paired people reach each other without an alarm`() throws {
        let (puma, pumasID) = try user("Puma")
        let (lynx, lynxsID) = try user("Lynx")
        let (arrived, files) = (TemporaryFolder(), TemporaryFolder())
        let letter = files.file("letter", "a letter")
        let pumas = try startAll(puma, into: arrived.path)
        try pumas[0].error(with: "waiting for files")
        try pumas[1].line(with: "waits for nigh ping")
        let lynxs = try startAll(lynx, into: files.path)
        try lynxs[0].error(with: "waiting for files")
        try pair(puma, lynx)

        let sent = try lynx.run("send Puma \(letter) \(session)")
        #expect(TemporaryFolder.text(of: arrived.path + "/letter") == "a letter")
        let ping = try lynx.run("ping Puma -c 1 --security paired \(session)")
        let chat = try lynx.start("chat Puma \(session)", reads: true)
        try chat.line(with: "Puma", "has joined")
        try chat.type("to all my friends", andSee: "Lynx: to all my friends", at: pumas[2])
        chat.type("/quit")
        let chatted = try chat.finish(status: nil)
        let game = try table("join", "Puma", of: lynx)
        try pumas[3].line(with: "Lynx wants to play")
        game.send(SIGTERM)
        // A busy machine may answer a search too late.
        var peers = try discoverOnce(lynx)
        for _ in 0..<10 where peers.count < 6 { peers = try discoverOnce(lynx) }
        #expect(
            peers.count == 6 && Set(peers.compactMap { $0["name"].string }) == ["Puma", "Lynx"], "\(peers)")
        #expect(Set(peers.compactMap { $0["identity"].string }) == [pumasID, lynxsID])
        #expect(peers.allSatisfy { $0["trust"].string == "paired" })
        #expect(peers.count { $0["own"].bool == true } == 3)
        let users = try puma.run("identity --json").json["users"].list
        #expect(users.count == 4 && users.count { $0["own_key"].bool == true } == 2, "\(users)")

        for call in [sent, ping, chatted] { expectNoAlarm(call.errors + call.lines) }
        for program in pumas + lynxs {
            let call = try program.finish(after: SIGTERM, status: nil)
            expectNoAlarm(call.errors + call.lines)
        }
        let known = try puma.run("peers --json-lines").objects.compactMap { $0["id"].string }
        #expect(known == [lynxsID], "\(known)")
    }
}
