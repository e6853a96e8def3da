import ChildPrograms
import Glibc
import NighCore
import Testing

@testable import nigh

/// Tests `nigh pair` and `nigh peers` with two users.
@Suite(.callsPrograms) struct PairingCommandTests {
    private let puma = NighUser()
    private let lynx = NighUser()
    private let service = "p\(UInt32.random(in: .min ... .max))"

    private func arguments(_ more: String...) -> [String] {
        ["pair", "-t", "tcp:interface=lo,mdns=embedded", "-s", service, "--json-lines"] + more
    }

    /// Starts both, waits until both show digits, and checks that the digits are the same.
    private func meet() throws -> (waiting: Child, asking: Child) {
        let waiting = try puma.start(arguments("-n", "Puma"), reads: true)
        let asking = try lynx.start(arguments("-n", "Lynx", "Puma"), reads: true)
        let digits = try [waiting, asking].map { child in
            let line = try child.line(with: "\"digits\"")
            return String(line.drop { !$0.isNumber }.prefix(6))
        }
        #expect(digits[0] == digits[1] && digits[0].count == 6)
        return (waiting, asking)
    }

    @Test("Two who confirm are paired, know each other from then on, and can be forgotten")
    func agreed() throws {
        let (waiting, asking) = try meet()
        waiting.type("y")
        asking.type("yes")
        let calls = try [NighCall(finishing: waiting), NighCall(finishing: asking)]
        for call in calls {
            #expect(call.status == 0, "\(call)")
            try call.expectSchema("pair", lines: true)
            #expect(try call.objects().last?["paired"] as? Bool == true)
        }
        let known = try lynx.run("peers", "--json")
        try known.expectSchema("peers")
        try lynx.run("peers", "--json-lines").expectSchema("peers", lines: true)
        let peer = try #require((try known.object()["peers"] as? [[String: Any]])?.first)
        #expect(peer["name"] as? String == "Puma" && peer["paired"] as? Bool == true)
        #expect(peer["id"] as? String == (try puma.run("identity", "--json").object()["id"] as? String))
        let table = try puma.run("peers", "--paired")
        #expect(table.lines.last?.hasPrefix("Lynx  ") == true, "\(table)")

        let unpaired = try lynx.run("peers", "unpair", "Puma", "--json")
        #expect(unpaired.status == 0)
        try unpaired.expectSchema("peers")
        #expect(try lynx.run("peers", "--paired", "--json").object()["count"] as? Int == 0)
        #expect(try lynx.run("peers", "--paired").lines == ["No peer is paired."])
        #expect(
            try lynx.run("peers", "forget", "Puma").lines == [
                "Puma (\(peer["short_id"] ?? "")) is forgotten."
            ])
        #expect(try lynx.run("peers").lines == ["No peer is known yet."])
        let again = try lynx.run("peers", "forget", "Puma", "--json")
        #expect(again.status == 1)
        try again.expectSchema("peers")
    }

    @Test("If one denies, nobody is paired, and both get the reason")
    func refused() throws {
        let (waiting, asking) = try meet()
        waiting.type("n")
        asking.type("y")
        for child in [waiting, asking] {
            let call = try NighCall(finishing: child)
            #expect(call.status == 1, "\(call)")
            try call.expectSchema("pair", lines: true)
            #expect(call.errors.count { $0.contains("digits") } == 1, "\(call.errors)")
        }
        #expect(try lynx.run("peers", "--paired", "--json").object()["count"] as? Int == 0)
    }

    @Test("If the waiting side is interrupted while the other is asked, nobody is paired")
    func interrupted() throws {
        let (waiting, asking) = try meet()
        waiting.send(SIGINT)
        #expect(try waiting.end().status == 1)
        #expect(try asking.end().status == 1)
    }

    @Test(
        "A stranger that asks and gives up does not disturb the waiting side, which is paired with the next")
    func abandoned() async throws {
        let port = try FreePort.find()
        let waiting = try puma.start(
            "pair", "-n", "Puma", "-t", "tcp:interface=lo,mdns=off,port=\(port)", "-v", reads: true)
        try waiting.error(with: "listens at")
        let address = "tcp://127.0.0.1:\(port)"
        let stranger = try StrangerInTests()
        stranger.start()
        let id = try await stranger.session.invite(
            at: #require(TransportAddress(address)), context: Purpose.pair.context)
        for _ in 0..<10 { await stranger.abandonPairing(with: id) }
        await stranger.end()
        let asking = try lynx.start("pair", address, "-t", "tcp:interface=lo,mdns=off", reads: true)
        for child in [waiting, asking] {
            try child.line(with: "should show the same digits")
            child.type("y")
        }
        for child in [waiting, asking] {
            let call = try NighCall(finishing: child)
            #expect(call.status == 0, "\(call)")
            #expect(!call.errors.contains { $0.contains("not paired") }, "\(call.errors)")
        }
    }

    @Test("If nobody comes in time, the status is 1; a missing peer is not found")
    func nobody() throws {
        let waiting = try puma.run(arguments("--timeout", "1s"))
        #expect(waiting.status == 1)
        #expect(waiting.errors.contains { $0.contains("nigh pair") }, "\(waiting)")
        let asking = try lynx.run(arguments("--timeout", "1s", "Puma"))
        #expect(asking.status == 1)
        #expect(asking.errors.contains { $0.contains("no peer is visible") }, "\(asking)")
    }

    @Test("Without a terminal, too, the waiting side says what to run on the other device, ready for a shell")
    func suggestion() throws {
        let waiting = try puma.run(
            "pair", "-n", "Anna's laptop", "--timeout", "1s", "-t", "tcp:interface=lo,mdns=off")
        #expect(waiting.errors.first?.hasSuffix(#"nigh pair 'Anna'\''s laptop'"#) == true, "\(waiting)")
    }

    @Test("The output of a failure matches the schema, also as one object")
    func failedAsObject() throws {
        let call = try puma.run("pair", "-t", "tcp:interface=lo,mdns=off", "--timeout", "1s", "--json")
        #expect(call.status == 1)
        try call.expectSchema("pair")
        let down = try puma.run("pair", "-t", "bluetooth:adapter=hci60000", "--timeout", "2s", "--json-lines")
        #expect(down.status == 3)
        try down.expectSchema("pair", lines: true)
    }

    @Test("Arguments that make pairing impossible are refused at once, with status 2")
    func misuse() throws {
        for more in [["--identity", "ephemeral"], ["--security", "none"], ["Puma", "Lynx"], ["tcp://"]] {
            let call = try puma.run(["pair"] + more)
            #expect(call.status == 2 && call.lines.isEmpty && call.errors.count == 1, "\(call)")
        }
    }
}
