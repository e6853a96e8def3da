import ChildPrograms
import Foundation
import NighLoop
import NighCore
import NighTestKit
import Testing

@testable import nigh

/// Tests when `nigh send` and `nigh ping` retry a peer that has refused them.
@Suite(.callsPrograms) struct RefusedSendTests {
    private static let way = ["-t", HostInTests.transport]

    private let user = NighUser()
    private let files = TemporaryFolder()

    @Test("Somebody who names a time is asked again then, and not before")
    func named() async throws {
        let refuser = try Refuser { $2.decline($1, words: "busy", retryAfter: .seconds(2)) }
        let sending = try user.start(
            ["send", refuser.reached(), files.file("a.txt", "text"), "--json-lines"] + Self.way)
        let calls = try refuser.calls(2)
        #expect(calls[1] - calls[0] >= .seconds(2))
        sending.send(SIGINT)
        #expect(try NighCall(finishing: sending).status == 1)
        await refuser.end()
    }

    @Test("Without a time the answer is no, at once and once")
    func final() async throws {
        let refuser = try Refuser { $2.decline($1, words: "never") }
        let call = try user.run(["send", refuser.reached(), files.file("a.txt", "text")] + Self.way)
        #expect(call.status == 1 && call.errors.contains { $0.contains("never") }, "\(call)")
        #expect(refuser.callCount == 1)
        await refuser.end()
    }

    @Test("A time beyond --give-up is not waited for")
    func tooLate() async throws {
        let refuser = try Refuser {
            $2.decline($1, words: "tomorrow", retryAfter: .seconds(86_400))
        }
        let call = try user.run(["send", refuser.reached(), files.file("a.txt", "text")] + Self.way)
        #expect(call.status == 1, "\(call)")
        #expect(call.errors.contains { $0.contains("ask again in 86400 s") }, "\(call)")
        #expect(refuser.callCount == 1)
        await refuser.end()
    }

    @Test(
        "Only what a peer has not refused for good is tried again",
        arguments: [NighError.Cause.full, .busy, .declined("")])
    func refusals(cause: NighError.Cause) {
        var error = NighError(.inviting, cause)
        #expect(!error.mayPass)
        error.retryAfter = .seconds(2)
        #expect(error.mayPass)
    }

    @Test("nigh ping that has lost its conversation waits as long as it is told before it asks for another")
    func rejoining() async throws {
        let refuser = try Refuser { number, invitation, session in
            guard number == 1 else { return session.decline(invitation, retryAfter: .seconds(2)) }
            session.accept(invitation)
        }
        let pinging = try user.start(["ping", refuser.reached(), "--json-lines"] + Self.way)
        _ = try pinging.line(with: "\"reply\"")
        refuser.leaveEverybody()
        let calls = try refuser.calls(3)
        #expect(calls[2] - calls[1] >= .seconds(2))
        pinging.send(SIGINT)
        _ = try NighCall(finishing: pinging)
        await refuser.end()
    }
}
