import Glibc
import NighTestKit
import Testing

@testable import NighCore
@testable import NighSystem

@Suite struct TrustStoreTests {
    let folder = TemporaryFolder()
    private var path: String { folder.path + "/nigh/peers" }

    private let ada = PeerID.numbered(1)
    private let bob = PeerID.numbered(2)
    private let eve = PeerID.numbered(3)

    /// A calendar whose day the test can change.
    private final class Calendar: Sendable {
        private let day: Guarded<String>
        init(_ day: String) { self.day = Guarded(day) }
        func turn(to next: String) { day.withLock { $0 = next } }
        @Sendable func today() -> CalendarDay { day.withLock { CalendarDay($0)! } }
    }

    private func name(_ text: String) -> DisplayName { DisplayName(exactly: text)! }

    // MARK: Known peers

    @Test func `Meeting pairing unpairing and forgetting`() {
        let store = TrustStore.ephemeral()
        #expect(store.trust(in: ada, called: name("Ada")) == .new && store.peers.isEmpty)
        store.remember(ada, name: name("Ada"))
        #expect(store.trust(in: ada, called: name("anything")) == .known)
        store.pair(ada, name: name("Ada"))
        #expect(store.trust(in: ada, called: name("anything")) == .paired)
        #expect(store.isPaired(ada))
        store.remember(ada, name: name("Ada L"))
        #expect(store.isPaired(ada), "meeting a paired peer under a new name takes nothing away")
        #expect(store.peers.map(\.name) == [name("Ada L")])
        store.unpair(ada)
        #expect(store.trust(in: ada, called: name("Ada L")) == .known)
        store.forget(ada)
        #expect(store.trust(in: ada, called: name("Ada L")) == .new)
        #expect(!store.needsSaving, "there is no file to save it in")
    }

    @Test(arguments: [
        ("Puma", "Puma", true), ("Puma", "Puma #2", true), ("Puma #2", "Puma", true),
        ("Puma #2", "Puma #13", true), ("Puma", "pUMA", true), ("Puma", " Puma\u{A0}", true),
        ("Puma", "Pu\u{200B}ma", true), ("Küche", "Ku\u{308}che", true),
        // A number takes room from a name that has none to spare.
        (String(repeating: "x", count: 63), String(repeating: "x", count: 60) + " #2", true),
        ("Puma", "Pumas", false), ("Puma", "Puma 2", false), ("Puma", "Puma #0", false),
        ("Puma #x", "Puma", false), ("A b", "Ab", false),
    ])
    func `A new peer with a known name is flagged`(known: String, newcomer: String, isFlagged: Bool) {
        let store = TrustStore.ephemeral()
        store.remember(bob, name: name(known))
        store.remember(eve, name: name("Eve"))
        let expected: PeerTrust = isFlagged ? .newWithKnownName(of: [bob]) : .new
        #expect(store.trust(in: ada, called: name(newcomer)) == expected)
    }

    @Test func `A peer that was met and is not paired is flagged when it uses the name of a paired one`() {
        let store = TrustStore.ephemeral()
        store.remember(eve, name: name("Xaver"))
        store.remember(ada, name: name("Puma"))
        #expect(store.trust(in: eve, called: name("Puma")) == .known, "nobody was paired under that name")
        store.pair(bob, name: name("Puma"))
        #expect(store.trust(in: eve, called: name("Puma")) == .newWithKnownName(of: [bob]))
        #expect(store.trust(in: eve, called: name("Xaver")) == .known)
        #expect(store.trust(in: bob, called: name("Puma")) == .paired)
    }

    @Test func `Paired peers come first among peers of the same name`() {
        let store = TrustStore.ephemeral()
        for id in [eve, ada, bob] { store.remember(id, name: name("Puma")) }
        store.pair(bob, name: name("Puma #2"))
        #expect(
            store.trust(in: .numbered(9), called: name("Puma")) == .newWithKnownName(of: [bob, ada, eve]))
        store.remember(ada, name: name("Ada"))
        store.forget(eve)
        #expect(store.trust(in: .numbered(9), called: name("Puma")) == .newWithKnownName(of: [bob]))
    }

    @Test func `Peers are listed paired first then by name`() {
        let store = TrustStore.ephemeral()
        store.remember(eve, name: name("Adam"))
        store.remember(.numbered(7), name: name("Adam"))
        store.pair(bob, name: name("Zoe"))
        store.pair(ada, name: name("Bob"))
        #expect(store.peers.map(\.id) == [ada, bob] + [eve, .numbered(7)].sorted())
        #expect(store.peers.map(\.isPaired) == [true, true, false, false])
    }

    @Test func `Entries have the day of pairing or of the first meeting`() throws {
        let calendar = Calendar("2026-11-21")
        let store = TrustStore(today: calendar.today)
        store.remember(ada, name: name("Ada"))
        calendar.turn(to: "2026-11-22")
        store.remember(ada, name: name("Ada"))
        #expect(store.peers.map { "\($0.since) \($0.lastSeen)" } == ["2026-11-21 2026-11-22"])
        store.pair(ada, name: name("Ada"))
        calendar.turn(to: "2026-12-31")
        store.pair(ada, name: name("Ada"))
        #expect(store.peers.map { "\($0.since) \($0.lastSeen)" } == ["2026-11-22 2026-12-31"])
        // As if the clock was set back.
        calendar.turn(to: "2001-01-01")
        store.remember(ada, name: name("Ada L"))
        #expect(store.peers.map { "\($0.since) \($0.lastSeen)" } == ["2026-11-22 2026-12-31"])
    }

    @Test func `Days are read strictly`() {
        for text in ["2026-11-21", "2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31"] {
            #expect(CalendarDay(text)?.description == text)
        }
        for text in [
            "2026-02-29", "1900-02-29", "2026-13-01", "2026-00-01", "2026-01-00", "2026-04-31", "0000-01-01",
            "2026-1-1", "2026/11/21", "+026-11-21", "", "2026-11-21 ",
        ] {
            #expect(CalendarDay(text) == nil, "\(text)")
        }
        #expect(CalendarDay("2026-09-30")! < CalendarDay("2026-10-01")!)
        #expect(CalendarDay.today() > CalendarDay("2025-01-01")!)
    }

    // MARK: The file

    @Test func `Saved peers are loaded by the next program`() throws {
        let store = try TrustStore(path: path)
        store.pair(ada, name: name("Ada"))
        store.remember(bob, name: name("Bob"))
        #expect(store.needsSaving)
        try store.save()
        #expect(!store.needsSaving)
        let next = try TrustStore(path: path)
        #expect(next.peers == store.peers)
        #expect(next.isPaired(ada) && !next.isPaired(bob))
        #expect(!next.needsSaving)
    }

    @Test func `The users own store lies beside the identity`() async throws {
        await #expect(processExitsWith: .success) { [data = folder.path as String] in
            setenv("XDG_DATA_HOME", data, 1)
            _ = try IdentityFile().load()
            try Self.pair(.numbered(1), in: .standard())
        }
        #expect(TemporaryFolder.names(in: folder.path + "/nigh") == [".peers.lock", "identity.pem", "peers"])
        #expect(try TrustStore(path: path).isPaired(ada))
    }

    @Test func `Meeting the same peer on the same day writes nothing`() throws {
        let calendar = Calendar("2026-11-21")
        let store = try TrustStore(file: TrustFile(path: path), today: calendar.today)
        store.remember(ada, name: name("Ada"))
        try store.save()
        store.remember(ada, name: name("Ada"))
        #expect(!store.needsSaving)
        store.remember(ada, name: name("Ada L"))
        #expect(store.needsSaving)
        try store.save()
        calendar.turn(to: "2026-11-22")
        store.remember(ada, name: name("Ada L"))
        #expect(store.needsSaving)
    }

    // MARK: Several programs

    @Test func `Programs that save in turn lose nothing`() throws {
        let (one, two) = (try TrustStore(path: path), try TrustStore(path: path))
        one.pair(ada, name: name("Ada"))
        two.pair(bob, name: name("Bob"))
        try one.save()
        try two.save()
        #expect(two.isPaired(ada) && two.isPaired(bob))
        #expect(!one.isPaired(bob))
        two.unpair(ada)
        try two.save()
        one.remember(eve, name: name("Eve"))
        try one.reload()
        #expect(one.isPaired(bob) && !one.isPaired(ada))
        #expect(one.trust(in: eve, called: name("Eve")) == .known, "what is not saved yet stays")
        #expect(one.needsSaving)
    }

    @Test func `A changed file is read once it has settled`() throws {
        let (one, two) = (try TrustStore(path: path), try TrustStore(path: path))
        two.pair(ada, name: name("Ada"))
        two.pair(bob, name: name("Bob"))
        try two.save()
        let first = try one.reload(ifStampIs: nil)
        #expect(first != nil && !one.isPaired(ada), "it may still be written to")
        #expect(try one.reload(ifStampIs: first) == nil)
        #expect(one.isPaired(ada) && one.isPaired(bob))
        #expect(try one.reload(ifStampIs: nil) == nil, "what was read is not read again")
        // As an editor saves: the old file is gone, then half of the new one is there, then all of it.
        let lines = TemporaryFolder.text(of: path).split(separator: "\n")
        #expect(unlink(path) == 0)
        let gone = try one.reload(ifStampIs: nil)
        _ = folder.file("nigh/peers", lines.prefix(5).joined(separator: "\n") + "\n")
        let half = try one.reload(ifStampIs: gone)
        _ = folder.file("nigh/peers", lines.joined(separator: "\n") + "\n# mine\n")
        let whole = try one.reload(ifStampIs: half)
        #expect(one.isPaired(ada) && one.isPaired(bob), "nobody was unpaired")
        #expect(try one.reload(ifStampIs: whole) == nil)
        #expect(one.isPaired(ada) && one.isPaired(bob))
    }

    @Test func `A change overrides older memories of other programs`() throws {
        let calendar = Calendar("2026-11-21")
        let first = try TrustStore(file: TrustFile(path: path), today: calendar.today)
        for id in [ada, bob, eve] { first.pair(id, name: name("Puma")) }
        try first.save()
        let other = try TrustStore(file: TrustFile(path: path), today: calendar.today)
        first.unpair(ada)
        first.forget(bob)
        first.forget(eve)
        try first.save()
        // The other store does not know that yet, and meets one of them again.
        calendar.turn(to: "2026-11-22")
        other.remember(ada, name: name("Ada"))
        other.pair(eve, name: name("Eve"))
        #expect(other.isPaired(ada))
        try other.save()
        for store in [other, try TrustStore(path: path)] {
            #expect(store.trust(in: ada, called: name("Ada")) == .known)
            #expect(store.peers.first { $0.id == ada }?.name == name("Ada"))
            #expect(store.trust(in: bob, called: name("Bob")) == .new)
            #expect(store.isPaired(eve), "paired anew by people, after it was forgotten")
        }
    }

    @Test func `Changes of one peer apply in order`() throws {
        let other = try TrustStore(path: path)
        for id in [ada, bob, eve] { other.pair(id, name: name("old")) }
        try other.save()
        let store = try TrustStore(path: path)
        store.unpair(ada)
        store.remember(ada, name: name("Ada"))
        store.forget(bob)
        store.remember(bob, name: name("Bob"))
        store.unpair(eve)
        store.pair(eve, name: name("Eve"))
        let expected = store.peers
        #expect(expected.map { "\($0.name) \($0.isPaired)" } == ["Eve true", "Ada false", "Bob false"])
        try store.save()
        #expect(store.peers == expected)
        #expect(try TrustStore(path: path).peers == expected)
        store.pair(bob, name: name("Bob"))
        store.forget(bob)
        try store.save()
        #expect(try TrustStore(path: path).trust(in: bob, called: name("Bobby")) == .new)
    }

    @Test func `One store is saved by four threads at once`() async throws {
        let store = try TrustStore(path: path)
        try await withThrowingTaskGroup { group in
            for thread in 0..<4 {
                group.addTask {
                    for number in 0..<25 { try Self.pair(.numbered(thread * 100 + number), in: store) }
                }
            }
            try await group.waitForAll()
        }
        #expect(store.peers.count == 100 && !store.needsSaving)
        #expect(try TrustStore(path: path).peers == store.peers)
    }

    @Test func `A hundred changes of four processes are all kept`() async throws {
        let path = path
        await withTaskGroup { group in
            for process in 0..<4 {
                group.addTask {
                    await #expect(processExitsWith: .success) {
                        [path = path as String, process = process as Int] in
                        let store = try TrustStore(path: path)
                        for number in 0..<25 { try Self.pair(.numbered(process * 100 + number), in: store) }
                    }
                }
            }
        }
        #expect(try TrustStore(path: path).peers.count { $0.isPaired } == 100)
    }

    private static func pair(_ id: PeerID, in store: TrustStore) throws {
        store.pair(id, name: DisplayName(exactly: "Puma")!)
        try store.save()
    }

    @Test func `A change that cannot be saved is kept for the next time`() throws {
        let store = try TrustStore(file: TrustFile(path: path, lockTimeout: .milliseconds(5)))
        store.pair(ada, name: name("Ada"))
        try store.save()
        let lock = open(folder.path + "/nigh/.peers.lock", O_RDWR | O_CLOEXEC)
        #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
        store.pair(bob, name: name("Bob"))
        #expect(throws: NighError.self) { try store.save() }
        #expect(store.needsSaving)
        #expect(try TrustStore(path: path).peers.count == 1)
        // A process that another test starts at this moment may hold the descriptor for a while.
        #expect(flock(lock, LOCK_UN) == 0)
        close(lock)
        try store.save()
        #expect(try TrustStore(path: path).peers.count == 2)
    }

    // MARK: Crashes

    @Test func `A crash while writing leaves the old content`() async throws {
        let store = try TrustStore(path: path)
        store.pair(ada, name: name("Ada"))
        try store.save()
        let old = TemporaryFolder.text(of: path)
        // The system ends the process in the middle of writing its draft.
        await #expect(processExitsWith: .signal(SIGXFSZ)) { [path = path as String] in
            signal(SIGXFSZ, SIG_DFL)
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGXFSZ)
            pthread_sigmask(SIG_UNBLOCK, &signals, nil)
            var limit = rlimit(rlim_cur: 200, rlim_max: 200)
            setrlimit(__rlimit_resource_t(1), &limit)
            try Self.pair(.numbered(2), in: TrustStore(path: path))
        }
        #expect(TemporaryFolder.names(in: folder.path + "/nigh") == [".peers.draft", ".peers.lock", "peers"])
        #expect(TemporaryFolder.text(of: path) == old)
        store.pair(eve, name: name("Eve"))
        try store.save()
        #expect(try TrustStore(path: path).peers == store.peers)
        #expect(TemporaryFolder.names(in: folder.path + "/nigh") == [".peers.lock", "peers"])
    }

    @Test func `A full disk is reported and leaves the old content`() async throws {
        let store = try TrustStore(path: path)
        store.pair(ada, name: name("Ada"))
        try store.save()
        let old = TemporaryFolder.text(of: path)
        await #expect(processExitsWith: .success) { [path = path as String] in
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 200, rlim_max: 200)
            setrlimit(__rlimit_resource_t(1), &limit)
            let store = try TrustStore(path: path)
            let error = #expect(throws: NighError.self) { try Self.pair(.numbered(2), in: store) }
            #expect(error.map { "\($0)" }?.contains("cannot write \(path)") == true)
            #expect(store.needsSaving && store.isPaired(.numbered(2)))
        }
        #expect(TemporaryFolder.text(of: path) == old)
        #expect(TemporaryFolder.names(in: folder.path + "/nigh") == [".peers.lock", "peers"])
    }

    // MARK: Limits

    @Test func `The least recently seen peer is forgotten beyond the limit`() throws {
        let calendar = Calendar("2026-11-20")
        let store = try TrustStore(file: TrustFile(path: path), today: calendar.today)
        store.pair(ada, name: name("Ada"))
        store.remember(bob, name: name("Bob"))
        calendar.turn(to: "2026-11-21")
        store.remember(eve, name: name("Eve"))
        calendar.turn(to: "2026-11-22")
        let strangers = TrustBook.maximumCount - 3
        for number in 0..<strangers { store.remember(.numbered(1_000 + number), name: name("x\(number)")) }
        #expect(store.trust(in: bob, called: name("Bob")) == .known)
        store.remember(.numbered(10_000), name: name("one more"))
        #expect(store.trust(in: bob, called: name("Bob")) == .new)
        #expect(store.trust(in: eve, called: name("Eve")) == .known)
        #expect(store.trust(in: .numbered(10_000), called: name("one more")) == .known)
        #expect(store.isPaired(ada))
        try store.save()
        #expect(try TrustStore(path: path).peers == store.peers)
    }

    @Test func `New peers replace other new peers beyond the limit`() throws {
        let calendar = Calendar("2026-11-20")
        let store = try TrustStore(file: TrustFile(path: path), today: calendar.today)
        store.remember(bob, name: name("Bob"))
        calendar.turn(to: "2026-11-21")
        store.remember(bob, name: name("Bob"))
        var strangers = 0
        for number in 0..<TrustBook.maximumCount + 500 {
            store.remember(.numbered(1_000 + number), name: name("Puma"))
            if store.trust(in: .numbered(1_000 + number), called: name("Puma")) != .known { strangers += 1 }
        }
        #expect(strangers == 0, "whoever is met is known at least until the next one comes")
        #expect(store.peers.count == TrustBook.maximumCount)
        #expect(store.trust(in: bob, called: name("Bob")) == .known)
        try store.save()
        #expect(store.trust(in: bob, called: name("Bob")) == .known)
        #expect(store.peers.count == TrustBook.maximumCount)
    }

    @Test func `Paired peers are never dropped quietly`() throws {
        let store = try TrustStore(path: path)
        for number in 0..<TrustBook.maximumCount { store.pair(.numbered(number), name: name("Puma")) }
        try store.save()
        let stranger = PeerID.numbered(10_000)
        store.remember(stranger, name: name("Eve"))
        #expect(store.trust(in: stranger, called: name("Eve")) == .new)
        store.pair(stranger, name: name("Eve"))
        #expect(store.isPaired(stranger))
        let error = #expect(throws: NighError.self) { try store.save() }
        #expect(error?.cause == .limit("paired peers", 4_096))
        #expect(try TrustStore(path: path).peers.count == TrustBook.maximumCount)
        store.forget(.numbered(0))
        try store.save()
        #expect(try TrustStore(path: path).isPaired(stranger))
    }
}

extension TrustStore {
    /// Reads the file if it has changed and has settled, as the synchronizer does.
    fileprivate func reload(ifStampIs earlier: ProtectedFile.Stamp?) throws -> ProtectedFile.Stamp? {
        try #require(storage as? TrustFileStorage).reload(self, ifStampIs: earlier)
    }
}
