import ChildPrograms
import Foundation
import NighLoop
import NighCore
import NighTestKit
import Testing

@testable import nigh

/// Tests when `nigh send` and `nigh ping` retry a peer that has refused them.
@Suite(.callsPrograms) struct RefusedSendTests {
    private static let transportOptions = ["-t", HostInTests.transport]

    private let user = NighUser()
    private let files = TemporaryFolder()

    @Test("A receiver that names a retry time is asked again at that time, and not before")
    func named() async throws {
        let refuser = try Refuser { $1.decline(because: "busy", retryAfter: .seconds(2)) }
        let sending = try user.start(
            ["send", refuser.reached(), files.file("a.txt", "text"), "--json-lines"] + Self.transportOptions)
        let calls = try refuser.calls(2)
        #expect(calls[1] - calls[0] >= .seconds(2))
        sending.send(SIGINT)
        #expect(try NighCall(finishing: sending).status == 1)
        await refuser.end()
    }

    @Test("Without a retry time a refusal is final, and the receiver is asked once")
    func final() async throws {
        let refuser = try Refuser { $1.decline(because: "never") }
        let call = try user.run(
            ["send", refuser.reached(), files.file("a.txt", "text")] + Self.transportOptions)
        #expect(call.status == 1 && call.errors.contains { $0.contains("never") }, "\(call)")
        #expect(refuser.callCount == 1)
        await refuser.end()
    }

    @Test("A peer that takes no files in this way is named, with the advice to update it")
    func tooOld() async throws {
        let refuser = try Refuser { $1.accept() }
        let call = try user.run(
            ["send", refuser.reached(), files.file("a.txt", "text"), "--json"] + Self.transportOptions)
        #expect(call.status == 1 && call.errors.joined().contains("update nigh there"), "\(call)")
        try call.expectSchema("send")
        await refuser.end()
    }

    @Test("A retry time beyond --give-up is not waited for")
    func tooLate() async throws {
        let refuser = try Refuser {
            $1.decline(because: "tomorrow", retryAfter: .seconds(86_400))
        }
        let call = try user.run(
            ["send", refuser.reached(), files.file("a.txt", "text")] + Self.transportOptions)
        #expect(call.status == 1, "\(call)")
        #expect(call.errors.contains { $0.contains("wait at least 86400 s") }, "\(call)")
        #expect(refuser.callCount == 1)
        await refuser.end()
    }

    @Test("A receiver that leaves at each offer is not called for longer than --wait")
    func leavesAtEachOffer() async throws {
        let refuser = try Refuser(refusesFiles: true) { $1.accept() }
        let call = try user.run(
            ["send", refuser.reached(), files.file("a.txt", "text"), "--give-up", "3s"]
                + Self.transportOptions)
        // If a call takes the last of the time, its error names the time.
        let text = call.errors.joined()
        #expect(call.status == 1 && (text.contains("--wait") || text.contains("tried for")), "\(call)")
        await refuser.end()
    }

    @Test(
        "A send that finds the receiver busy can be resumed, and one that it declined cannot",
        arguments: [true, false])
    func busyLater(_ isBusy: Bool) async throws {
        let refuser = try Refuser(refusesFiles: true) { number, invitation in
            guard number > 1 else { return invitation.accept() }
            invitation.decline(because: "busy", retryAfter: isBusy ? .seconds(86_400) : .zero)
        }
        let call = try user.run(
            ["send", refuser.reached(), files.file("a.txt", "text")] + Self.transportOptions)
        #expect(call.status == 1 && call.errors.contains { $0.contains("busy") }, "\(call)")
        let list = try user.run(["transfers", "--json", "--into", files.path]).object()
        #expect(list["count"] as? Int == (isBusy ? 1 : 0), "\(list)")
        await refuser.end()
    }

    @Test(
        "Only a refusal with a retry time is tried again",
        arguments: [NighError.Cause.full, .busy, .declined("")])
    func refusalsSurviveARoundTrip(cause: NighError.Cause) {
        var error = NighError(.inviting, cause)
        #expect(!error.isRetryable)
        error.retryAfter = .seconds(2)
        #expect(error.isRetryable)
    }

    @Test("nigh ping without a conversation waits for the named retry time before it asks for another")
    func rejoining() async throws {
        let refuser = try Refuser { number, invitation in
            guard number == 1 else { return invitation.decline(retryAfter: .seconds(2)) }
            invitation.accept()
        }
        let pinging = try user.start(["ping", refuser.reached(), "--json-lines"] + Self.transportOptions)
        _ = try pinging.line(with: "\"reply\"")
        refuser.leaveEverybody()
        let calls = try refuser.calls(3)
        #expect(calls[2] - calls[1] >= .seconds(2))
        pinging.send(SIGINT)
        _ = try NighCall(finishing: pinging)
        await refuser.end()
    }
}
