import ChildPrograms
import Foundation
import Glibc
import NighLoop
import NighCore
import NighTestKit
import Testing

@testable import nigh

/// Tests commands whose peer is found but cannot be reached.
@Suite(.callsPrograms) struct UnluckyCallTests {
    private static let transport = "tcp:interface=lo,mdns=embedded"

    private let puma = NighUser()
    private let lynx = NighUser()
    private let service = "u\(UInt32.random(in: .min ... .max))"
    private var session: [String] { ["-t", Self.transport, "-s", service] }

    /// Faults that refuse the first call and let the second through.
    private static let refusesOnce: String = {
        let seed = (2...UInt64.max).first { seed in
            var chance = SeededGenerator(seed: seed)
            return Int.random(in: 0..<2, using: &chance) == 0 && Int.random(in: 0..<2, using: &chance) == 1
        }
        return "refuse=1/2,seed=\(seed ?? 0)"
    }()

    private func pumaID() throws -> String {
        try #require(try puma.run("identity", "--json").object()["id"] as? String)
    }

    @Test(
        "A peer that cannot be reached at first is called again",
        arguments: [
            ["host", "ping", "Puma", "-c", "1", "-i", "0", "--timeout", "1m"],
            ["host", "bench", "Puma", "--seconds", "0.2", "--warm-up", "0", "-d", "up"],
            ["host", "trace", "--connect", "Puma", "--duration", "100ms"],
            ["receive", "send", "Puma", "-", "--as", "nothing"],
            ["chat", "chat", "Puma"],
        ])
    func again(_ words: [String]) throws {
        let more = words[0] == "receive" ? ["--accept", "any", "--into", puma.folder.path] : []
        let waiting = try puma.start(
            [words[0], "-n", "Puma", "-t", Self.transport] + more
                + (words[0] == "host" ? [service] : ["-s", service]), reads: true)
        let call = try NighCall(
            finishing: lynx.start(
                Array(words.dropFirst()) + session + ["-v", "--inject", Self.refusesOnce]))
        #expect(call.status == 0, "\(call)")
        #expect(call.errors.count { $0.contains("nobody listens there") } == 1, "\(call.errors)")
        waiting.send(SIGINT)
        _ = try waiting.end()
    }

    @Test("Two devices are paired although the first call is refused")
    func pairing() throws {
        let waiting = try puma.start(["pair", "-n", "Puma"] + session, reads: true)
        let asking = try lynx.start(
            ["pair", "Puma", "--inject", Self.refusesOnce, "-v"] + session, reads: true)
        for child in [waiting, asking] {
            try child.line(with: "should show the same digits")
            child.type("y")
        }
        for child in [waiting, asking] {
            let call = try NighCall(finishing: child)
            #expect(call.status == 0, "\(call)")
        }
    }

    @Test("A peer that is never reached is given up in time, and the error names the time that was spent")
    func never() throws {
        let host = try puma.start(["host", service, "-n", "Puma", "-v", "-t", Self.transport])
        _ = try host.error(with: "others see this session")
        let start = ContinuousClock.now
        let call = try lynx.run(
            ["ping", "Puma", "--wait", "15s", "--json", "-v", "--inject", "refuse=all"] + session)
        #expect(call.status == 1)
        #expect(ContinuousClock.now - start > .seconds(14))
        try call.expectSchema("ping")
        let error = try #require(try call.object()["error"] as? [String: Any])
        #expect(error["cause"] as? String == "refused", "\(error)")
        #expect((error["text"] as? String)?.contains(#/; tried for [0-9.]+ s/#) == true, "\(error)")
        // The pauses are 250 ms, 500 ms, 1 s and then 2 s at most. There are fewer if finding the peer took long.
        #expect(
            (2...15).contains(call.errors.count { $0.contains("can be invited again: ") }), "\(call.errors)")
        host.send(SIGINT)
        _ = try host.end()
    }

    @Test("An address is called once: that nobody listens there is an answer")
    func address() throws {
        let address = "tcp://127.0.0.1:\(try FreePort.find())"
        let start = ContinuousClock.now
        let call = try lynx.run("ping", address, "--wait", "1h", "-t", HostInTests.transport)
        #expect(call.status == 1 && call.errors.count == 1, "\(call)")
        #expect(ContinuousClock.now - start < .seconds(600))
        #expect(!call.errors.joined().contains("tried for"))
    }

    @Test("A forged announcement that arrives first does not hide the real peer")
    func forged() throws {
        let id = try pumaID()
        let forger = try Forger(
            try #require(PeerID(id)), try #require(ServiceName(service)), over: Self.transport)
        forger.waitForAnnouncement()
        let child = try lynx.start(
            ["ping", id, "-c", "1", "--timeout", "1m", "--wait", "50s", "--json"] + session)
        forger.wait(for: 2)
        let host = try puma.start(["host", service, "-n", "Puma", "-t", Self.transport])
        try host.line(with: "Puma (")
        forger.end()
        let call = try NighCall(finishing: child)
        #expect(call.status == 0, "\(call)")
        #expect(((try call.object()["peer"]) as? [String: Any])?["name"] as? String == "Puma")
        host.send(SIGINT)
        _ = try host.end()
    }

    private func refuser(
        _ answer: @escaping @Sendable (_ number: Int, Invitation) -> Void
    ) throws -> Refuser {
        try Refuser(try #require(ServiceName(service)), over: Self.transport, answer: answer)
    }

    @Test("A peer that declines is not called again, even if it is called by name")
    func declined() async throws {
        let refuser = try refuser { $1.decline(because: "never") }
        let call = try lynx.run(["ping", "Refuser", "--wait", "50s"] + session)
        #expect(call.status == 1 && call.errors.contains { $0.contains("never") }, "\(call)")
        #expect(!call.errors.joined().contains("tried for"))
        #expect(refuser.callCount == 1)
        await refuser.end()
    }

    @Test("A peer that names a retry time is called again at that time")
    func named() async throws {
        let refuser = try refuser { number, invitation in
            guard number == 1 else { return invitation.accept() }
            invitation.decline(because: "busy", retryAfter: .seconds(1))
        }
        let call = try lynx.run(["ping", "Refuser", "-c", "1", "--timeout", "1m", "--wait", "50s"] + session)
        #expect(call.status == 0, "\(call)")
        let calls = try refuser.calls(2)
        #expect(calls.count == 2 && calls[1] - calls[0] >= .seconds(1))
        await refuser.end()
    }
}
