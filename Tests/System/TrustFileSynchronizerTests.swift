import Glibc
import NighMemory
import NighTestKit
import Testing

@testable import NighCore
@testable import NighSystem

/// Tests a trust store in a file, under sessions on a real loop.
@Suite struct TrustFileSynchronizerTests {
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

        /// Waits until it sees a peer.
        func sees() async { _ = await first { if case .peerFound(let peer) = $0 { peer } else { nil } } }

        /// Waits for the next problem.
        func problem() async -> NighError? {
            await first { if case .problem(let error) = $0 { error } else { nil } }
        }

        func first<Value>(_ wanted: (SessionEvent) -> Value?) async -> Value? {
            for await event in stream { if let value = wanted(event) { return value } }
            return nil
        }
    }

    /// A folder, a network and a loop, which ends with the test.
    private final class Place: Sendable {
        let folder = TemporaryFolder()
        let hub = MemoryHub()
        let loop = ThreadEventLoop()

        deinit { loop.shutdown() }
    }

    private let place = Place()
    private var path: String { place.folder.path + "/peers" }

    private func session(
        _ name: String, trust: TrustStore, security: SessionSecurity = .encrypted,
        identity: Identity = .ephemeral()
    ) -> Listener {
        var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: name))
        configuration.security = security
        configuration.acceptsPairing = true
        configuration.timings = .patient
        return Listener(
            Session(
                configuration, identity: identity, trust: trust,
                transports: [MemoryTransport(hub: place.hub, address: name)], loop: place.loop))
    }

    /// A store with one paired peer, in the file.
    private func saveStore(pairedWith peer: PeerID) throws {
        let store = try TrustStore(path: path)
        store.pair(peer, name: DisplayName(fitting: "Lynx"))
        try store.save()
    }

    /// Two sessions with a trust file each. The first sees the second.
    private func neighbours() async throws -> (puma: Listener, lynx: Listener) {
        let puma = session("Puma", trust: try TrustStore(path: path))
        let lynx = session("Lynx", trust: try TrustStore(path: path + " of Lynx"))
        await puma.sees()
        return (puma, lynx)
    }

    private func close(_ listeners: Listener...) async {
        for listener in listeners { await listener.session.close() }
    }

    @Test func `A paired peer is in the file when the session has closed`() async throws {
        let (puma, lynx) = try await neighbours()
        try await puma.session.peer(lynx.session.id).pair()
        _ = await lynx.first { if case .paired(let peer) = $0 { peer } else { nil } }
        await close(puma, lynx)
        #expect(try TrustStore(path: path).isPaired(lynx.session.id))
        #expect(try TrustStore(path: path + " of Lynx").isPaired(puma.session.id))
    }

    @Test func `A pairing by another program applies to the next attempt`() async throws {
        let puma = session("Puma", trust: try TrustStore(path: path), security: .paired)
        let lynx = session("Lynx", trust: .ephemeral())
        await lynx.sees()
        await #expect(throws: NighError.self) { try await lynx.session.peer(puma.session.id).invite() }
        try saveStore(pairedWith: lynx.session.id)
        // Until the store has read its file again.
        while !puma.session.trust.isPaired(lynx.session.id) {
            try? await lynx.session.peer(puma.session.id).invite()
        }
        try await lynx.session.peer(puma.session.id).invite()
        await close(lynx, puma)
    }

    /// How a pairing is taken back by others than this program.
    enum Hand: CaseIterable { case anotherProgram, editor, removal }

    @Test(.timeLimit(.minutes(15)), arguments: Hand.allCases)
    func `A pairing revoked in the file ends the conversation`(by hand: Hand) async throws {
        let lynxsIdentity = Identity.ephemeral()
        try saveStore(pairedWith: lynxsIdentity.peerID)
        let puma = session("Puma", trust: try TrustStore(path: path), security: .paired)
        let lynx = session("Lynx", trust: .ephemeral(), identity: lynxsIdentity)
        await lynx.sees()
        try await lynx.session.peer(puma.session.id).invite()
        switch hand {
        case .anotherProgram:
            let other = try TrustStore(path: path)
            other.unpair(lynx.session.id)
            try other.save()
        case .editor:
            let lines = TemporaryFolder.text(of: path).split(separator: "\n")
                .filter { !$0.hasPrefix("paired") }
            _ = place.folder.file("peers", lines.joined(separator: "\n") + "\n")
        case .removal: #expect(unlink(path) == 0)
        }
        for listener in [puma, lynx] {
            let cause = await listener.first {
                if case .disconnected(_, let cause) = $0 { cause } else { nil as NighError? }
            }
            #expect(cause?.cause == .notPaired)
        }
        await close(lynx, puma)
    }

    @Test func `A change of the file is read within a second`() {
        #expect(TrustFileSynchronizer.checkInterval + TrustFileSynchronizer.settlingTime < .seconds(1))
    }

    @Test(.timeLimit(.minutes(15)))
    func `An unreadable file is reported once and changes nothing until it is repaired`() async throws {
        let (ada, bob) = (Identity.ephemeral().peerID, Identity.ephemeral().peerID)
        try saveStore(pairedWith: ada)
        let good = TemporaryFolder.text(of: path)
        let puma = session("Puma", trust: try TrustStore(path: path))
        _ = place.folder.file("peers", "nigh-peers 1\nwhat is this?\n")
        let error = await puma.problem()
        #expect(error?.description.contains("line 2") == true)
        #expect(puma.session.trust.isPaired(ada))
        // The next report is about another fault, not about the same one again.
        _ = place.folder.file("peers", "nigh-peers 1\n\nwhat is this?\n")
        let next = await puma.problem()
        #expect(next?.description.contains("line 3") == true)
        _ = place.folder.file("peers", good.replacing("\(ada)", with: "\(bob)"))
        while !puma.session.trust.isPaired(bob) { await Task.yield() }
        #expect(!puma.session.trust.isPaired(ada))
        await puma.session.close()
    }

    @Test func `An unwritable file is reported and the pairing still counts`() async throws {
        let puma = session("Puma", trust: try TrustStore(path: path))
        let lynx = session("Lynx", trust: .ephemeral())
        await puma.sees()
        _ = place.folder.file("peers", "what is this?\n")
        try await puma.session.peer(lynx.session.id).pair()
        let error = await puma.problem()
        #expect(error?.stage == .trusting)
        #expect(puma.session.trust.isPaired(lynx.session.id))
        await close(puma, lynx)
    }

    @Test func `A met peer is in the file when the session has closed`() async throws {
        let (puma, lynx) = try await neighbours()
        try await puma.session.peer(lynx.session.id).invite()
        await close(puma, lynx)
        let trust = try TrustStore(path: path)
        #expect(trust.trust(in: lynx.session.id, called: DisplayName(fitting: "Lynx")) == .known)
    }

    @Test func `A store is busy from the moment that it is to be saved until it is`() async throws {
        let storage = TrustFileStorage(TrustFile(path: path))
        let store = TrustStore(in: storage)
        store.pair(Identity.ephemeral(seed: 9).peerID, name: DisplayName(fitting: "Lynx"))
        let (idle, continuation) = AsyncStream<Void>.makeStream()
        let synchronizer = TrustFileSynchronizer(
            store, storage, loop: place.loop, failed: { Issue.record("\($0)") },
            becameIdle: { continuation.yield() })
        let isBusy = place.loop.call {
            synchronizer.save()
            return synchronizer.isBusy
        }
        #expect(isBusy)
        for await _ in idle { break }
        #expect(try TrustStore(path: path).isPaired(Identity.ephemeral(seed: 9).peerID))
    }
}
