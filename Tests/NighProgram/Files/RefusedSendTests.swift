import ChildPrograms
import Foundation
import Nigh
import NighCore
import NighTestKit
import Testing

@testable import nigh

/// When `nigh send` and `nigh ping` ask again somebody who has refused.
@Suite(.callsPrograms) struct RefusedSendTests {
    private static let way = ["-t", HostInTests.transport]

    /// A session that says no to everybody, in one way or another, and notes when it was asked.
    ///
    /// `@unchecked Sendable`: what is noted is guarded by the monitor.
    private final class Refuser: LinkObserver, @unchecked Sendable {
        private let monitor = Monitor()
        private let loop: UVEventLoop
        private var session: Session!
        private var address: String?
        private var calls: [Moment] = []
        private var invitations = 0

        /// - Parameter answer: what it does about each invitation, which are counted from 1.
        init(_ answer: @escaping @Sendable (_ number: Int, Invitation, Session) -> Void) throws {
            loop = try UVEventLoop.make()
            var configuration = SessionConfiguration(
                service: "nigh", name: DisplayName(fitting: "Refuser"), role: .server)
            configuration.observer = self
            session = Session(
                configuration, identity: .ephemeral(),
                transports: try TransportRegistry.standard.makeAll(HostInTests.transport), loop: loop)
            session.start(
                onEvent: { [self, session] event in
                    switch event {
                    case .listening(_, let addresses):
                        monitor.change { address = addresses.first.map { "\($0)" } }
                    case .invited(let invitation):
                        let number = monitor.change { () -> Int in
                            invitations += 1
                            return invitations
                        }
                        if let session { answer(number, invitation, session) }
                    default: break
                    }
                }, onMessage: { _, _ in })
        }

        func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment) {
            if case .greeted = event { monitor.change { calls.append(moment) } }
        }

        func reached() throws -> String {
            #expect(monitor.wait(within: .seconds(20)) { address != nil })
            return try #require(monitor.read { address })
        }

        /// When it was called, once that was so often.
        func calls(_ count: Int) throws -> [Moment] {
            try #require(monitor.wait(within: .seconds(40)) { calls.count >= count })
            return monitor.read { calls }
        }

        func leaveEverybody() { session.disconnectAll() }

        var callCount: Int { monitor.read { calls.count } }

        func end() async {
            await session.close()
            loop.shutdown()
        }
    }

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
