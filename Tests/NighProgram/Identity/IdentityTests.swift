import ChildPrograms
import Glibc
import NighCore
import NighLoop
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh identity`.
@Suite(.callsPrograms) struct IdentityCommandTests {
    private let user = NighUser()

    @Test func `The same identity is shown twice, in every form`() throws {
        let json = try user.run("identity --json").json
        let id = try #require(json["id"].string)
        #expect(json["file"].string == "\(user.dataFolder)/identity.pem" && json["in_use"].bool == false)
        #expect(try user.run("identity").lines.contains("PeerID  \(id)"))
        #expect(try user.run("identity --json-lines").summary["id"].string == id)
    }

    @Test func `A chosen name is saved, and an invalid name is refused`() throws {
        try user.run("identity rename --json", "Puma in the kitchen")
        #expect(try user.run("identity --json").json["name"].string == "Puma in the kitchen")
        try user.fail("identity rename", String(repeating: "x", count: 64), status: 2)
        try user.fail("identity rename", " \u{200B}", status: 2, says: "something to see")
        #expect(TemporaryFolder.mode(of: "\(user.dataFolder)/name") == 0o600)
    }

    @Test(arguments: ["new --yes", "export"])
    func `What is not a plain file is neither read nor moved away`(_ subcommand: String) throws {
        let path = "\(user.folder.path)/pipe"
        try #require(mkfifo(path, 0o600) == 0)
        try user.run("identity \(subcommand) --identity \(path)", status: 1, says: "not a regular file")
        var about = stat()
        #expect(lstat(path, &about) == 0 && about.st_mode & S_IFMT == S_IFIFO)
    }

    @Test func `A new identity is another peer, needs a confirmation, and keeps the old one`() throws {
        let old = try user.id()
        try user.run("identity new", status: 1)
        // Ctrl-C at the question is no confirmation.
        let windows = try TerminalWindows(of: "nigh")
        try user.openTerminal("identity new", in: windows)
        try windows.wait("w", shows: "Create a new identity? [y/N]")
        try windows.press("w", "C-c")
        try windows.wait("w", shows: "ended with 1")
        #expect(try user.id() == old)
        let new = try user.run("identity new --yes --json").json
        #expect(new["id"].string != nil && new["id"].string != old)
        let kept = try #require(new["old_file"].string)
        #expect(try user.run("identity --identity \(kept) --json").json["id"].string == old)
        #expect(try user.run("identity new --yes --json").json["old_file"].string != kept)
    }

    @Test func `Another program computes the same PeerID from the exported key`() throws {
        try user.fail("identity export")
        let id = try user.id()
        let key = try user.run("identity export").lines.joined(separator: "\n") + "\n"
        let script = "openssl pkey -pubin -in \(user.folder.file("key.pem", key)) -outform DER | sha256sum"
        let sum = try #require(try Child.run("/bin/sh", ["-c", script]).first).prefix(64)
        let bytes = stride(from: 0, to: 64, by: 2).compactMap {
            UInt8(sum.dropFirst($0).prefix(2), radix: 16)
        }
        #expect(PeerID(bytes: bytes)?.description == id)
        try user.run("identity export --json")
    }

    @Test func `A file that others may read is refused, with advice`() throws {
        try user.run("identity")
        #expect(chmod("\(user.dataFolder)/identity.pem", 0o644) == 0)
        try user.run("identity --json", status: 1, says: "chmod 600")
    }

    @Test func `An identity that a program uses is reported, and not replaced`() throws {
        let named = "--identity \(user.folder.path)/other.pem"
        let host = try Listener("host \(named)", of: user)
        let waiting = try user.start("pair \(byAddress) -v", reads: true)
        // It claims the identity before it listens. Until then, the check of `nigh identity` could make the claim fail.
        try waiting.error(with: "listens at")
        for options in ["", named] {
            #expect(try user.run("identity --json \(options)").json["in_use"].bool == true)
            try user.run("identity new --yes \(options)", status: 1, says: "end it first")
        }
        try host.end()
        try waiting.finish(after: SIGINT, status: 1)
        #expect(try user.run("identity --json \(named)").json["in_use"].bool == false)
    }
}

/// Tests `nigh pair` and `nigh peers` with two users.
@Suite(.callsPrograms) struct PairingCommandTests {
    private let puma = NighUser()
    private let lynx = NighUser()
    private let session = NighUser.meetingPlace()

    /// Starts both, waits until both show digits, and checks that the digits are the same.
    private func meet() throws -> (waiting: Child, asking: Child) {
        let waiting = try puma.start("pair -n Puma --json-lines \(session)", reads: true)
        let asking = try lynx.start("pair Puma -n Lynx --json-lines \(session)", reads: true)
        let digits = try [waiting, asking].map {
            String(try $0.line(with: "\"digits\"").drop { !$0.isNumber }.prefix(6))
        }
        #expect(digits[0] == digits[1] && digits[0].count == 6)
        return (waiting, asking)
    }

    @Test func `Two who confirm are paired, know each other from then on, and can be forgotten`() throws {
        let (waiting, asking) = try meet()
        waiting.type("y")
        asking.type("yes")
        for child in [waiting, asking] { #expect(try child.finish().summary["paired"].bool == true) }
        let peer = try lynx.run("peers --json").json["peers"][0]
        #expect(peer["name"].string == "Puma" && peer["paired"].bool == true)
        #expect(try peer["id"].string == puma.id())
        try lynx.run("peers --json-lines")
        let table = try puma.run("peers --paired")
        #expect(table.lines.last?.hasPrefix("Lynx  ") == true, "\(table)")

        try lynx.run("peers unpair Puma --json")
        #expect(try lynx.run("peers --paired --json").json["count"].int == 0)
        #expect(try lynx.run("peers --paired").lines == ["No peer is paired."])
        let forgotten = try lynx.run("peers forget Puma").lines
        #expect(forgotten == ["Puma (\(peer["short_id"])) is forgotten."])
        #expect(try lynx.run("peers").lines == ["No peer is known yet."])
        try lynx.run("peers forget Puma --json", status: 1)
    }

    @Test func `If one denies, nobody is paired, and both get the reason`() throws {
        let (waiting, asking) = try meet()
        waiting.type("n")
        asking.type("y")
        for child in [waiting, asking] {
            let call = try child.finish(status: 1)
            #expect(call.errors.count { $0.contains("digits") } == 1, "\(call.errors)")
        }
        #expect(try lynx.run("peers --paired --json").json["count"].int == 0)
    }

    @Test func `If the waiting side is interrupted while the other is asked, nobody is paired`() throws {
        let (waiting, asking) = try meet()
        try waiting.finish(after: SIGINT, status: 1)
        try asking.finish(status: 1)
    }

    @Test
    func
        `A stranger that asks and gives up does not disturb the waiting side, which is paired with the next`()
        async throws
    {
        let port = try BoundSocket.freePort()
        let waiting = try puma.start("pair -n Puma -v \(byAddress),port=\(port)", reads: true)
        try waiting.error(with: "listens at")
        let stranger = try ForeignSession(role: .client)
        let id = try await stranger.call("tcp://127.0.0.1:\(port)", for: InvitationPurpose.pair.context)
        for _ in 0..<10 {
            // It withdraws at once, before either side has digits.
            await withCheckedContinuation { continuation in
                stranger.loop.execute {
                    stranger.session.pair(id) { _ in continuation.resume() }
                    stranger.session.peer(id).confirmPairing(digitsAgree: false)
                }
            }
        }
        await stranger.end()
        let asking = try lynx.start("pair tcp://127.0.0.1:\(port) \(byAddress)", reads: true)
        for child in [waiting, asking] {
            try child.line(with: "should show the same digits")
            child.type("y")
        }
        for child in [waiting, asking] {
            let call = try child.finish()
            #expect(!call.error.contains("not paired"), "\(call.errors)")
        }
    }

    @Test func `If nobody comes in time, the status is 1; a missing peer is not found`() throws {
        let waiting = try puma.start("pair --json --timeout 1s \(session)", "-n", "Anna's laptop")
        try lynx.run(
            "pair Puma --json-lines --timeout 1s \(session)", status: 1, says: "looking for Puma: no ")
        // Without a terminal, too, it says what to run on the other device, ready for a shell.
        let words = try lynx.run("pair --timeout 1s \(byAddress)", "-n", "Anna's laptop", status: 1)
        #expect(words.errors.first?.hasSuffix(#"nigh pair 'Anna'\''s laptop'"#) == true, "\(words)")
        try waiting.finish(status: 1, says: "nigh pair")
    }
}
