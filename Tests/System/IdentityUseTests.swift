import Glibc
import NighTestKit
import Testing

@testable import NighCore
@testable import NighSystem

/// Tests which key each of several sessions of one identity uses.
@Suite struct IdentityUseTests {
    private let folder = TemporaryFolder()
    private let file: IdentityFile

    init() { file = IdentityFile(path: folder.path + "/identity.pem") }

    private func begin(_ service: ServiceName = "test") throws -> IdentityUse {
        try IdentityUse.begin(file, for: service, placesIn: folder.path + "/uses")
    }

    private var places: [IdentityPlace] {
        get throws { IdentityPlace.all(of: try file.load().peerID, in: folder.path + "/uses") }
    }

    @Test(
        "The first session of a service has the identity's own key, and each further one a delegate of its own"
    )
    func severalSessions() throws {
        let id = try file.load().peerID
        let uses = try (0..<3).map { _ in try begin() }
        #expect(uses[0].identity.peerID == id && !uses[0].identity.isDelegate)
        #expect(uses.dropFirst().allSatisfy { $0.identity.isDelegate && $0.identity.principal == id })
        #expect(Set(uses.map(\.identity.peerID)).count == 3)
        let other = try begin("other")
        #expect(other.identity.peerID == id, "a service of its own")
        #expect(try places.map(\.service) == ["other", "test", "test", "test"])
        #expect(try places.allSatisfy { $0.process == getpid() })
        for use in uses + [other] { use.end() }
        #expect(try places.isEmpty)
    }

    @Test func `When the session with the identity's own key has ended, the next one has it`() throws {
        let id = try file.load().peerID
        let (first, second) = (try begin(), try begin())
        first.end()
        let third = try begin()
        #expect(third.identity.peerID == id && second.identity.peerID != id)
        second.end()
        third.end()
    }

    @Test
    func `Beside a program of an earlier version, which locks the whole file, all others use delegates`()
        throws
    {
        let id = try file.load().peerID
        let earlier = open(file.path, O_RDONLY)
        #expect(flock(earlier, LOCK_EX | LOCK_NB) == 0)
        let use = try begin()
        #expect(use.identity.isDelegate && use.identity.principal == id)
        #expect(file.isTakenWhole)
        use.end()
        close(earlier)
        let later = try begin()
        #expect(later.identity.peerID == id && !file.isTakenWhole)
        let earlierAgain = open(file.path, O_RDONLY)
        #expect(flock(earlierAgain, LOCK_EX | LOCK_NB) != 0, "an earlier version learns that it is not alone")
        close(earlierAgain)
        later.end()
    }

    @Test
    func `Where no places can be kept, one session has the identity's own key, and all others use delegates`()
        throws
    {
        let id = try file.load().peerID
        let (first, second) = (
            try IdentityUse.begin(file, for: "test", placesIn: nil),
            try IdentityUse.begin(file, for: "test", placesIn: "/proc/nothing")
        )
        #expect(first.identity.peerID == id && second.identity.isDelegate)
        first.end()
        second.end()
    }

    @Test func `A saved identity of a delegate is that of the person, and a delegate makes no further ones`()
        throws
    {
        let identity = try file.load()
        let delegate = identity.makeDelegate()
        #expect(delegate.principalIdentity == identity && delegate != identity)
        #expect(delegate.makeDelegate() == delegate)
        #expect("\(delegate)".contains(identity.peerID.description))
        try file.save(delegate.principalIdentity)
    }
}
