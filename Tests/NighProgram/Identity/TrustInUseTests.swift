import ChildPrograms
import Foundation
import Glibc
import NighCore
import NighTestKit
import Testing

@testable import nigh

/// Tests how running commands use the trust store, and how they react when it changes.
@Suite(.callsPrograms) struct TrustInUseTests {
    private let puma = NighUser()
    private let lynx = NighUser()
    private let files = TemporaryFolder()
    private static let transportOptions = ["-t", "tcp:interface=lo,mdns=off"]

    private func id(of user: NighUser) throws -> String {
        try #require(try user.run("identity", "--json").object()["id"] as? String)
    }

    /// Writes these lines to the trust store of `user`.
    private func write(_ lines: String..., knownTo user: NighUser) throws {
        let text = (["nigh-peers 1"] + lines).joined(separator: "\n") + "\n"
        try FileManager.default.createDirectory(
            atPath: user.dataFolder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700]
        )
        try Data(text.utf8).write(to: URL(fileURLWithPath: user.dataFolder + "/peers"))
        #expect(chmod(user.dataFolder + "/peers", 0o600) == 0)
    }

    private func address(in line: String) throws -> String {
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return try #require((object?["addresses"] as? [String])?.first)
    }

    @Test("`nigh peers unpair` ends a running `nigh host --security paired` and its guest, with the reason")
    func unpairedHost() throws {
        let guest = try id(of: lynx)
        try write("paired \(guest) 2026-11-21 2026-11-21 \"Lynx\"", knownTo: puma)
        let host = try HostInTests(of: puma, "--name", "Puma", "--security", "paired")
        let ping = try lynx.start(
            ["ping", host.address, "--name", "Lynx", "-i", "50ms", "--json-lines"] + Self.transportOptions)
        try ping.line(with: "\"reply\"")
        #expect(try puma.run("peers", "unpair", "Lynx").status == 0)
        // Without the check, `ping` would go on forever.
        try host.child.line(with: "\"left\"", "not paired")
        try ping.line(with: "not paired")
        ping.send(SIGINT)
        _ = try ping.end()
        let again = try lynx.run(
            ["ping", host.address, "--name", "Lynx", "-c", "1", "--wait", "5m"] + Self.transportOptions)
        #expect(again.status == 1 && again.errors.joined().contains("not paired"), "\(again)")
        #expect(try host.end().status == 0)
    }

    @Test("`nigh peers unpair` ends a transfer to `nigh receive --accept paired`, and both report the reason")
    func unpairedSender() throws {
        let guest = try id(of: lynx)
        try write("paired \(guest) 2026-11-21 2026-11-21 \"Lynx\"", knownTo: puma)
        let receiving = try puma.start(
            ["receive", "--accept", "paired", "--json-lines", "--into", files.path] + Self.transportOptions)
        let address = try address(in: receiving.line(with: "\"ready\""))
        // The sender's input has no end, so the transfer would go on forever.
        let sending = try lynx.start(
            ["send", address, "-", "--as", "notes", "--name", "Lynx"]
                + Self.transportOptions,
            reads: true)
        sending.type("first line")
        try receiving.line(with: "\"start\"")
        #expect(try puma.run("peers", "unpair", "Lynx").status == 0)
        try receiving.line(with: "\"failure\"", "pairing was removed")
        let sent = try sending.end()
        #expect(sent.status == 1 && sent.errors.joined().contains("pairing was removed"), "\(sent)")
        receiving.send(SIGINT)
        _ = try receiving.end()
    }

    @Test(
        "A known name with another key is reported by ping, host, send and receive, before anything is sent"
    )
    func knownName() throws {
        let (other, short) = try { () throws -> (String, String) in
            let id = try NighUser().run("identity", "--json").object()
            return (try #require(id["id"] as? String), try #require(id["short_id"] as? String))
        }()
        try write("known \(other) 2026-11-21 2026-11-21 \"Lynx\"", knownTo: puma)
        try write("paired \(other) 2026-11-21 2026-11-21 \"Puma\"", knownTo: lynx)
        let host = try puma.start(
            ["host", "--name", "Puma", "--once", "--json-lines"] + Self.transportOptions)
        let address = try address(in: host.line(with: "\"listening\""))
        let ping = try lynx.run(
            ["ping", address, "-c", "1", "--timeout", "1m", "--name", "Lynx"] + Self.transportOptions)
        #expect(ping.status == 0)
        let warning = "with another key (\(short))"
        #expect(ping.errors.contains { $0.contains("you know Puma \(warning)") }, "\(ping)")
        let hosted = try NighCall(finishing: host)
        #expect(hosted.errors.contains { $0.contains("you know Lynx \(warning)") }, "\(hosted)")

        // These two have now met and know each other's keys, so the next case needs two users that have not met.
        let (owl, wren) = (NighUser(), NighUser())
        try write("known \(other) 2026-11-21 2026-11-21 \"Wren\"", knownTo: owl)
        try write("known \(other) 2026-11-21 2026-11-21 \"Owl\"", knownTo: wren)
        let receiving = try owl.start(
            ["receive", "--accept", "any", "--once", "--json-lines", "--name", "Owl", "--into", files.path]
                + Self.transportOptions)
        let place = try self.address(in: receiving.line(with: "\"ready\""))
        let file = files.file("sent", "hello")
        let sent = try wren.run(["send", place, file, "--name", "Wren"] + Self.transportOptions)
        #expect(sent.errors.contains { $0.contains("you know Owl \(warning)") }, "\(sent)")
        let received = try NighCall(finishing: receiving)
        #expect(received.errors.contains { $0.contains("you know Wren \(warning)") }, "\(received)")
    }

    @Test("A known name with another key is marked in chat, on both sides")
    func knownNameInChat() throws {
        let other = try id(of: NighUser())
        try write("known \(other) 2026-11-21 2026-11-21 \"Lynx\"", knownTo: puma)
        try write("known \(other) 2026-11-21 2026-11-21 \"Puma\"", knownTo: lynx)
        let options = [
            "-t", "tcp:interface=lo,mdns=embedded", "-s", "t\(UInt32.random(in: .min ... .max))",
        ]
        let waiting = try puma.start(["chat", "-n", "Puma"] + options, reads: true)
        let guest = try lynx.start(["chat", "Puma", "-n", "Lynx"] + options, reads: true)
        try waiting.error(with: "you know Lynx with another key")
        try guest.error(with: "you know Puma with another key")
        guest.closeInput()
        #expect(try guest.end().status == 0)
        waiting.closeInput()
        #expect(try waiting.end().status == 0)
    }

    @Test("A known name with another key is marked in the question of receive")
    func knownNameAtATerminal() throws {
        let other = try id(of: NighUser())
        try write("known \(other) 2026-11-21 2026-11-21 \"Lynx\"", knownTo: puma)
        let windows = try TerminalWindows(of: "nigh")
        let port = try FreePort.find()
        try windows.open(
            "w", "receive --into \(files.path) -t tcp:interface=lo,mdns=off,port=\(port)",
            environment: "LANG=C.UTF-8 XDG_DATA_HOME=\(puma.folder.path)")
        try windows.wait("w", shows: "waiting for files")
        let file = files.file("sent", "hello")
        let sending = try lynx.start(
            ["send", "tcp://127.0.0.1:\(port)", file, "--name", "Lynx"] + Self.transportOptions)
        try windows.wait("w", shows: "Accept from Lynx")
        let question = try windows.text("w").replacing("\n", with: "")
        #expect(question.contains("you know Lynx with another key"), "\(question)")
        try windows.press("w", "n", "Enter")
        #expect(try sending.end().status == 1)
        try windows.press("w", "C-c")
        try windows.wait("w", shows: "ended with")
    }
}
