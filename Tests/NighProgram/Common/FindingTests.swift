import NighCore
import NighLoop
import NighMemory
import SessionArguments
import Synchronization
import Testing

@testable import nigh

/// Tests what a command says while it looks for a peer, and when it does not find it.
@Suite(.callsPrograms) struct FindingTests {
    private let service = CommandSession.service()

    private func commandSession(
        _ name: String, accepting purposes: [InvitationPurpose] = []
    ) throws -> CommandSession {
        try .overMemory(name, service, accepting: purposes)
    }

    /// Calls `body` with Puma's session, which sees that of Lynx, on which something runs that accepts `purposes`.
    private func seeing(
        _ purposes: [InvitationPurpose],
        _ body: (_ mine: CommandSession, _ lynx: CommandSession) async throws -> Void
    ) async throws {
        let (mine, lynx) = (try commandSession("Puma"), try commandSession("Lynx", accepting: purposes))
        lynx.start()
        mine.start()
        _ = try await mine.find(.named("Lynx"), until: .never)
        try await body(mine, lynx)
        await mine.close()
        await lynx.close()
    }

    /// Calls `body` with a session that sees nobody.
    private func alone(_ body: (CommandSession) async throws -> Void) async throws {
        let mine = try commandSession("Lynx")
        mine.start()
        try await body(mine)
        await mine.close()
    }

    private func notFound(
        _ text: String, for purpose: InvitationPurpose, by mine: CommandSession
    ) async -> NighError? {
        let now = await mine.onLoop { $0.loop.now }
        return await #expect(throws: NighError.self) {
            try await mine.find(.named(text), for: purpose, until: now + .milliseconds(1))
        }
    }

    @Test func `A peer is found by its name in any case`() async throws {
        try await seeing([.ping, .bench]) { mine, lynx in
            let found = try await mine.find(.named("lYNX"), for: .ping, until: .never)
            #expect(found.id == lynx.session.id)
        }
    }

    @Test
    func `A peer that is announced with a number is found by its name if no other peer fits within 1 s`()
        async throws
    {
        try await seeing([.chat]) { mine, lynx in
            let second = try commandSession("Lynx #2", accepting: [.ping, .bench])
            second.start()
            #expect(try await mine.find(.named("lynx"), for: .ping, until: .never).id == second.session.id)
            #expect(try await mine.find(.named("Lynx"), until: .never).id == lynx.session.id)
            let third = try commandSession("Lynx #3", accepting: [.ping, .bench])
            third.start()
            _ = try await mine.find(.named("Lynx #3"), until: .never)
            let error = await #expect(throws: NighError.self) {
                try await mine.find(.named("Lynx"), for: .ping, until: .never)
            }
            #expect("\(try #require(error))".contains("Lynx #2 (\(second.session.id.short)), Lynx #3 ("))
            await second.close()
            await third.close()
        }
    }

    @Test(
        arguments: [
            ([InvitationPurpose.send], InvitationPurpose.ping, "nigh receive", "nigh host"),
            ([.ping, .bench], .send, "nigh host", "nigh receive"),
            ([.chat], .pair, "nigh chat", "nigh pair"), ([.pair], .chat, "nigh pair", "nigh chat"),
        ] as [([InvitationPurpose], InvitationPurpose, String, String)])
    func `The error about a peer that runs another command says what it runs and what to run there`(
        _ accepted: [InvitationPurpose], _ wanted: InvitationPurpose, _ runs: String, _ remedy: String
    ) async throws {
        try await seeing(accepted) { mine, lynx in
            let error = await notFound("Lynx", for: wanted, by: mine)
            #expect(error?.cause == .unsupported("`\(wanted.counterpart)`"))
            #expect(error?.peer == "Lynx (\(lynx.session.id.short))")
            #expect(error?.advice?.contains("it runs `\(runs)`") == true, "\(String(describing: error))")
            #expect(error?.advice?.contains("run `\(remedy)` there") == true, "\(String(describing: error))")
        }
    }

    @Test func `A search says early what a peer runs instead, and finds what is started there then`()
        async throws
    {
        try await seeing([.send]) { mine, lynx in
            let (remarks, source) = AsyncStream.makeStream(of: String.self)
            _ = await mine.onLoop { $0.onRemark = { source.yield($0) } }
            let search = Task { try await mine.find(.named("Lynx"), for: .ping, until: .never) }
            let remark = await remarks.first { _ in true }
            #expect(
                remark?.hasPrefix("Lynx (\(lynx.session.id.short)) runs `nigh receive`") == true,
                "\(remark ?? "")")
            let host = try commandSession("Lynx", accepting: [.ping, .bench])
            host.start()
            #expect(try await search.value.id == host.session.id)
            await host.close()
        }
    }

    @Test
    func `The error about a missing peer lists what is there, what it runs, and what may have been meant`()
        async throws
    {
        try await seeing([.chat]) { mine, lynx in
            let error = await notFound("Lnyx", for: .chat, by: mine)
            #expect(error?.cause == .unknownPeer)
            #expect(
                error?.advice?.hasPrefix(
                    "did you mean Lynx? visible peers: Lynx (\(lynx.session.id.short), runs nigh chat)")
                    == true,
                "\(String(describing: error))")
            let address = await notFound("lynx:4000", for: .chat, by: mine)
            #expect(address?.advice?.contains("if it is an address, write tcp://lynx:4000") == true)
        }
    }

    @Test func `A peer that is called at its address says what it runs, and what to run there`() {
        #expect(
            InvitationPurpose.refusal(of: .ping, accepting: [.send])
                == "it runs `nigh receive`, which accepts only `nigh send`; for `nigh ping`, run `nigh host` there"
        )
        #expect(
            InvitationPurpose.refusal(of: nil, accepting: [.ping, .bench])
                == "it runs `nigh host`, which accepts only `nigh ping` and `nigh bench`")
        // No command of its own asks for this.
        #expect(
            InvitationPurpose.refusal(of: .join, accepting: [.chat, .join])
                == "it runs `nigh chat`, which accepts only `nigh chat`")
        #expect(InvitationPurpose.refusal(of: .chat, accepting: []) == "this nigh accepts no invitations")
    }

    @Test func `Errors name a peer whose name is known, not only its PeerID`() async throws {
        try await seeing([.chat]) { mine, lynx in
            let id = lynx.session.id
            let attempt = NighError(.connecting, .timedOut, peer: id.short)
            let error = mine.results.named(
                NighError(.sending, .notConnected, peer: id.short, attempts: [attempt]))
            #expect(error.peer == "Lynx (\(id.short))" && error.attempts[0].peer == error.peer)
            #expect(mine.results.named(NighError(.sending, .closed, peer: "Hare")).peer == "Hare")
            let info = await mine.onLoop { $0.peers[id].map { PeerReport.info(of: $0).text(colours: false) } }
            #expect(info == "runs nigh chat")
        }
    }

    @Test func `A search that is cancelled before it starts looks for nobody`() async throws {
        try await alone { mine in
            let deadline = await mine.onLoop { $0.loop.now + .seconds(60) }
            let search = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await mine.find(.named("Puma"), until: deadline)
            }
            await #expect(throws: CancellationError.self) { try await search.value }
        }
    }

    @Test(arguments: [true, false])
    func `A call that is cancelled in its pause is over`(isCancelledBefore: Bool) async throws {
        let address = try #require(TransportAddress("memory://nobody"))
        try await alone { mine in
            let attempts = Mutex(0)
            let call = Task {
                try await mine.call(
                    .address(address), for: .ping, .init(timeLimit: .seconds(60), retriesAddresses: true),
                    whenFailed: { _ in
                        if !isCancelledBefore { withUnsafeCurrentTask { $0?.cancel() } }
                    }
                ) { _, _ in
                    attempts.withLock { $0 += 1 }
                    if isCancelledBefore { withUnsafeCurrentTask { $0?.cancel() } }
                    throw NighError(.connecting, .refused)
                }
            }
            await #expect(throws: (any Error).self) { try await call.value }
            #expect(attempts.withLock { $0 } == 1)
        }
    }
}
