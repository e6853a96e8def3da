import ChildPrograms
import Glibc
import NighCore
import NighLoop
import NighTestKit
import Testing

@testable import nigh

/// Tests commands whose peer is found but cannot be reached, or refuses them.
@Suite(.callsPrograms) struct UnluckyCallTests {
    private let puma = NighUser()
    private let lynx = NighUser()
    private let files = TemporaryFolder()
    private let service = "u\(UInt32.random(in: .min ... .max))"
    private var session: String { "\(byName) -s \(service)" }
    private var letter: String { files.file("a.txt", "text") }

    /// Faults that refuse the first call and let the second through.
    private static let refusesOnce: String = {
        let seed = (2...UInt64.max).first { seed in
            var chance = SeededGenerator(seed: seed)
            return Int.random(in: 0..<2, using: &chance) == 0 && Int.random(in: 0..<2, using: &chance) == 1
        }
        return "-v --inject refuse=1/2,seed=\(seed ?? 0)"
    }()

    // MARK: Peers that cannot be reached

    @Test(
        arguments: [
            ("host", "ping Puma -c 1 -i 0 --timeout 1m"),
            ("host", "bench Puma --seconds 0.2 --warm-up 0 -d up"),
            ("host", "trace --connect Puma --duration 100ms"),
            ("receive --accept any --into /nonexistent", "send Puma - --as nothing"), ("chat", "chat Puma"),
        ])
    func `A peer that cannot be reached at first is called again`(_ waits: String, _ calls: String) throws {
        let waits = waits.replacing("/nonexistent", with: puma.folder.path)
        let waiting = try puma.start("\(waits) -n Puma \(session)", reads: true)
        let call = try lynx.run("\(calls) \(session) \(Self.refusesOnce)")
        #expect(call.errors.count { $0.contains("nobody listens there") } == 1, "\(call.errors)")
        try waiting.finish(after: SIGINT, status: nil)
    }

    @Test func `Two devices are paired although the first call is refused`() throws {
        let devices = [
            try puma.start("pair -n Puma \(session)", reads: true),
            try lynx.start("pair Puma \(session) \(Self.refusesOnce)", reads: true),
        ]
        for device in devices {
            try device.line(with: "should show the same digits")
            device.type("y")
        }
        for device in devices { try device.finish() }
    }

    @Test func `A peer that is never reached is given up in time, which the error names`() throws {
        let host = try puma.start("host -n Puma -v \(session)")
        try host.error(with: "others see this session")
        let start = ContinuousClock.now
        let call = try lynx.run("ping Puma --wait 15s --json -v --inject refuse=all \(session)", status: 1)
        #expect(ContinuousClock.now - start > .seconds(14))
        let error = call.json["error"]
        #expect(error["cause"].string == "refused", "\(error)")
        #expect(error["text"].string?.contains(#/; tried for [0-9.]+ s/#) == true, "\(error)")
        // The pauses are 250 ms, 500 ms, 1 s and then 2 s at most. There are fewer if finding the peer took long.
        let pauses = call.errors.count { $0.contains("can be invited again: ") }
        #expect((2...15).contains(pauses), "\(call.errors)")
        try host.finish(after: SIGINT)
    }

    @Test func `An address is called once: that nobody listens there is an answer`() throws {
        let start = ContinuousClock.now
        let call = try lynx.fail("ping tcp://127.0.0.1:\(try BoundSocket.freePort()) --wait 1h \(byAddress)")
        #expect(ContinuousClock.now - start < .seconds(600))
        #expect(!call.error.contains("tried for"))
    }

    // MARK: Peers that refuse

    /// A session called "Refuser" that is found by its name.
    private func refuser(_ answer: @escaping @Sendable (_ number: Int, Invitation) -> Void) throws
        -> ForeignSession
    {
        try ForeignSession(
            "Refuser", service: #require(ServiceName(service)), over: "tcp:interface=lo,mdns=embedded",
            answer: answer)
    }

    @Test func `A peer that declines is not called again, even if it is called by name`() async throws {
        let refuser = try refuser { $1.decline(because: "never") }
        let call = try lynx.run("ping Refuser --wait 50s \(session)", status: 1, says: "never")
        #expect(!call.error.contains("tried for"))
        #expect(try refuser.invitations(1).count == 1)
        await refuser.end()
    }

    @Test(arguments: ["ping Refuser -c 1 --timeout 1m --wait 50s", "send Refuser"])
    func `A peer that names a retry time is called then, not before`(_ line: String) async throws {
        let refuser = try refuser { number, invitation in
            guard number > 1 else { return invitation.decline(because: "busy", retryAfter: .seconds(2)) }
            invitation.accept()
        }
        if line.hasPrefix("send") {
            // It accepts the invitation, and takes no files.
            try lynx.run("\(line) \(letter) --json \(session)", status: 1, says: "update nigh there")
        } else {
            try lynx.run("\(line) \(session)")
        }
        let calls = try refuser.invitations(2)
        #expect(calls.count == 2 && calls[1] - calls[0] >= .seconds(2))
        await refuser.end()
    }

    @Test(arguments: [(Duration.zero, "never"), (.seconds(86_400), "wait at least 86400 s")])
    func `A refusal is final without a retry time in reach`(_ time: Duration, _ words: String) async throws {
        let refuser = try ForeignSession { $1.decline(because: "never", retryAfter: time) }
        try lynx.run("send \(refuser.address) \(letter) \(byAddress)", status: 1, says: words)
        #expect(try refuser.invitations(1).count == 1)
        await refuser.end()
    }

    @Test func `A receiver that leaves at each offer is not called for longer than --wait`() async throws {
        let refuser = try ForeignSession(leavesAtOffers: true)
        let call = try lynx.run("send \(refuser.address) \(letter) --give-up 3s \(byAddress)", status: 1)
        // If a call takes the last of the time, its error names the time.
        #expect(call.error.contains("--wait") || call.error.contains("tried for"), "\(call)")
        await refuser.end()
    }

    @Test(arguments: [true, false])
    func `A send to a busy receiver can be resumed, a declined one cannot`(_ isBusy: Bool) async throws {
        let refuser = try ForeignSession(leavesAtOffers: true) { number, invitation in
            guard number > 1 else { return invitation.accept() }
            invitation.decline(because: "busy", retryAfter: isBusy ? .seconds(86_400) : .zero)
        }
        try lynx.run("send \(refuser.address) \(letter) \(byAddress)", status: 1, says: "busy")
        let list = try lynx.run("transfers --json --into \(files.path)").json
        #expect(list["count"].int == (isBusy ? 1 : 0), "\(list)")
        await refuser.end()
    }

    @Test(arguments: [NighError.Cause.full, .busy, .declined("")])
    func `Only a refusal with a retry time is tried again`(cause: NighError.Cause) {
        var error = NighError(.inviting, cause)
        #expect(!error.isRetryable)
        error.retryAfter = .seconds(2)
        #expect(error.isRetryable)
    }

    @Test func `nigh ping waits for the named retry time before it asks again`() async throws {
        let refuser = try ForeignSession { number, invitation in
            if number == 2 { invitation.decline(retryAfter: .seconds(2)) } else { invitation.accept() }
        }
        let pinging = try lynx.start("ping \(refuser.address) --json-lines \(byAddress)")
        try pinging.line(with: "\"reply\"")
        refuser.session.disconnectAll()
        let calls = try refuser.invitations(3)
        #expect(calls[2] - calls[1] >= .seconds(2))
        try pinging.finish(after: SIGINT, status: nil)
        await refuser.end()
    }
}
