import Glibc
import NighMemory
import Synchronization
import NighTestKit
import Testing

@testable import NighCore

/// Tests a trust store in a file, under sessions on a real loop.
@Suite struct TrustStoreSynchronizerTests {
    /// Everything that a session was told, for a task that waits for some of it.
    private final class Listener: Sendable {
        let session: Session
        private let (stream, continuation) = AsyncStream<SessionEvent>.makeStream()

        init(_ session: Session) {
            self.session = session
            session.start(
                onEvent: { [continuation, unowned session] event in
                    if case .invited(let invitation) = event { invitation.accept() }
                    if case .pairingCode(let peer, _) = event {
                        session.peer(peer.id).confirmPairing(digitsAgree: true)
                    }
                    continuation.yield(event)
                }, onMessage: { _, _ in })
        }

        func first<Value>(_ wanted: (SessionEvent) -> Value?) async -> Value? {
            for await event in stream { if let value = wanted(event) { return value } }
            return nil
        }
    }

    private func session(
        _ name: String, _ hub: MemoryHub, _ loop: ThreadEventLoop, trust: TrustStore,
        security: SessionSecurity = .encrypted, identity: Identity = .ephemeral()
    ) -> Listener {
        var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: name))
        configuration.security = security
        configuration.acceptsPairing = true
        configuration.timings = .patient
        return Listener(
            Session(
                configuration, identity: identity, trust: trust,
                transports: [MemoryTransport(hub: hub, address: name)], loop: loop))
    }

    /// Two sessions with a trust file each. The first sees the second.
    private func neighbours(
        in folder: TemporaryFolder, on loop: ThreadEventLoop
    ) async throws -> (puma: Listener, lynx: Listener) {
        let hub = MemoryHub()
        let puma = session("Puma", hub, loop, trust: try TrustStore(path: folder.path + "/puma"))
        let lynx = session("Lynx", hub, loop, trust: try TrustStore(path: folder.path + "/lynx"))
        _ = await puma.first { if case .peerFound(let peer) = $0 { peer } else { nil } }
        return (puma, lynx)
    }

    @Test func aPairedPeerIsInTheFileWhenTheSessionHasClosed() async throws {
        let folder = TemporaryFolder()
        let loop = ThreadEventLoop()
        defer { loop.shutdown() }
        let (puma, lynx) = try await neighbours(in: folder, on: loop)
        try await puma.session.peer(lynx.session.id).pair()
        _ = await lynx.first { if case .paired(let peer) = $0 { peer } else { nil } }
        await puma.session.close()
        await lynx.session.close()
        #expect(try TrustStore(path: folder.path + "/puma").isPaired(lynx.session.id))
        #expect(try TrustStore(path: folder.path + "/lynx").isPaired(puma.session.id))
    }

    @Test func aPairingByAnotherProgramAppliesToTheNextAttempt() async throws {
        let folder = TemporaryFolder()
        let hub = MemoryHub()
        let loop = ThreadEventLoop()
        defer { loop.shutdown() }
        let path = folder.path + "/peers"
        let puma = session("Puma", hub, loop, trust: try TrustStore(path: path), security: .paired)
        let lynx = session("Lynx", hub, loop, trust: .ephemeral())
        _ = await lynx.first { if case .peerFound(let peer) = $0 { peer } else { nil } }
        await #expect(throws: NighError.self) { try await lynx.session.peer(puma.session.id).invite() }
        let other = try TrustStore(path: path)
        other.pair(lynx.session.id, name: DisplayName(fitting: "Lynx"))
        try other.save()
        // Until the store has read its file again.
        while !puma.session.trust.isPaired(lynx.session.id) {
            try? await lynx.session.peer(puma.session.id).invite()
        }
        try await lynx.session.peer(puma.session.id).invite()
        await lynx.session.close()
        await puma.session.close()
    }

    /// How a pairing is taken back by others than this program.
    enum Hand: CaseIterable { case anotherProgram, editor, removal }

    @Test(.timeLimit(.minutes(15)), arguments: Hand.allCases)
    func aPairingRevokedInTheFileEndsTheConversation(by hand: Hand) async throws {
        let folder = TemporaryFolder()
        let hub = MemoryHub()
        let loop = ThreadEventLoop()
        defer { loop.shutdown() }
        let path = folder.path + "/peers"
        let lynxsIdentity = Identity.ephemeral()
        let before = try TrustStore(path: path)
        before.pair(lynxsIdentity.peerID, name: DisplayName(fitting: "Lynx"))
        try before.save()
        let puma = session("Puma", hub, loop, trust: try TrustStore(path: path), security: .paired)
        let lynx = session("Lynx", hub, loop, trust: .ephemeral(), identity: lynxsIdentity)
        _ = await lynx.first { if case .peerFound(let peer) = $0 { peer } else { nil } }
        try await lynx.session.peer(puma.session.id).invite()
        switch hand {
        case .anotherProgram:
            let other = try TrustStore(path: path)
            other.unpair(lynx.session.id)
            try other.save()
        case .editor:
            let lines = TemporaryFolder.text(of: path).split(separator: "\n")
                .filter { !$0.hasPrefix("paired") }
            _ = folder.file("peers", lines.joined(separator: "\n") + "\n")
        case .removal: #expect(unlink(path) == 0)
        }
        for listener in [puma, lynx] {
            let cause = await listener.first {
                if case .disconnected(_, let cause) = $0 { cause } else { nil as NighError? }
            }
            #expect(cause?.cause == .notPaired)
        }
        await lynx.session.close()
        await puma.session.close()
    }

    @Test func aChangeOfTheFileIsReadWithinASecond() {
        #expect(TrustStoreSynchronizer.checkInterval + TrustStoreSynchronizer.settlingTime < .seconds(1))
    }

    @Test(.timeLimit(.minutes(15)))
    func anUnreadableFileIsReportedOnceAndChangesNothingUntilItIsRepaired() async throws {
        let folder = TemporaryFolder()
        let hub = MemoryHub()
        let loop = ThreadEventLoop()
        defer { loop.shutdown() }
        let path = folder.path + "/peers"
        let (ada, bob) = (Identity.ephemeral().peerID, Identity.ephemeral().peerID)
        let before = try TrustStore(path: path)
        before.pair(ada, name: DisplayName(fitting: "Ada"))
        try before.save()
        let good = TemporaryFolder.text(of: path)
        let puma = session("Puma", hub, loop, trust: try TrustStore(path: path))
        _ = folder.file("peers", "nigh-peers 1\nwhat is this?\n")
        let error = await puma.first { if case .problem(let error) = $0 { error } else { nil } }
        #expect(error?.description.contains("line 2") == true)
        #expect(puma.session.trust.isPaired(ada))
        // The next report is about another fault, not about the same one again.
        _ = folder.file("peers", "nigh-peers 1\n\nwhat is this?\n")
        let next = await puma.first { if case .problem(let error) = $0 { error } else { nil } }
        #expect(next?.description.contains("line 3") == true)
        _ = folder.file("peers", good.replacing("\(ada)", with: "\(bob)"))
        while !puma.session.trust.isPaired(bob) { await Task.yield() }
        #expect(!puma.session.trust.isPaired(ada))
        await puma.session.close()
    }

    @Test func anUnwritableFileIsReportedAndThePairingStillCounts() async throws {
        let folder = TemporaryFolder()
        let hub = MemoryHub()
        let loop = ThreadEventLoop()
        defer { loop.shutdown() }
        let path = folder.path + "/puma"
        let puma = session("Puma", hub, loop, trust: try TrustStore(path: path))
        let lynx = session("Lynx", hub, loop, trust: .ephemeral())
        _ = await puma.first { if case .peerFound(let peer) = $0 { peer } else { nil } }
        _ = folder.file("puma", "what is this?\n")
        try await puma.session.peer(lynx.session.id).pair()
        let error = await puma.first { if case .problem(let error) = $0 { error } else { nil } }
        #expect(error?.stage == .trusting)
        #expect(puma.session.trust.isPaired(lynx.session.id))
        await puma.session.close()
        await lynx.session.close()
    }

    @Test func aMetPeerIsInTheFileWhenTheSessionHasClosed() async throws {
        let folder = TemporaryFolder()
        let loop = ThreadEventLoop()
        defer { loop.shutdown() }
        let (puma, lynx) = try await neighbours(in: folder, on: loop)
        try await puma.session.peer(lynx.session.id).invite()
        await puma.session.close()
        await lynx.session.close()
        let trust = try TrustStore(path: folder.path + "/puma")
        #expect(trust.trust(in: lynx.session.id, called: DisplayName(fitting: "Lynx")) == .known)
    }

    @Test func aStoreIsBusyFromTheMomentThatItIsToBeSavedUntilItIs() async throws {
        let folder = TemporaryFolder()
        let loop = ThreadEventLoop()
        defer { loop.shutdown() }
        let path = folder.path + "/peers"
        let store = try TrustStore(path: path)
        store.pair(Identity.ephemeral(seed: 9).peerID, name: DisplayName(fitting: "Lynx"))
        let (idle, continuation) = AsyncStream<Void>.makeStream()
        let synchronizer = TrustStoreSynchronizer(
            store, loop: loop, changed: {}, failed: { Issue.record("\($0)") },
            becameIdle: { continuation.yield() })
        let isBusy = await withCheckedContinuation { answer in
            loop.execute {
                synchronizer.save()
                answer.resume(returning: synchronizer.isBusy)
            }
        }
        #expect(isBusy)
        for await _ in idle { break }
        #expect(try TrustStore(path: path).isPaired(Identity.ephemeral(seed: 9).peerID))
    }
}
