import Testing
import Worlds

/// Runs whole simulated worlds in virtual time. `Violation.Rule` lists what they check.
struct WorldTests {
    @Test(arguments: [3, 256, 264, 272] as [UInt64])
    func `A seed determines the whole run`(_ seed: UInt64) {
        let first = World.run(seed: seed)
        let second = World.run(seed: seed, keepingLog: true)
        #expect(first.hash == second.hash)
        #expect(first.counts == second.counts)
        #expect(first.log.isEmpty)
        #expect(second.log.count > 50)
        #expect(first.hash != World.run(seed: seed + 1).hash)
    }

    /// Every rule holds in 40 worlds, and the events that the worlds are for happen often in them. `make test-release`
    /// runs 1,000 more in a release build, which is ten times as fast.
    @Test func `Every rule is tested and holds`() {
        var counts = WorldCounts()
        for seed in 1_000..<1_040 {
            let report = World.run(seed: UInt64(seed))
            if let finding = report.finding { Issue.record(finding) }
            counts += report.counts
        }
        #expect(counts.worlds == 40)
        #expect(counts.sessions > 100)
        #expect(counts.conversations > 200)
        #expect(counts.reconnects > 100)
        #expect(counts.messagesReceived > 5_000)
        #expect(counts.kindsReceived > 50)
        #expect(counts.groupMessages > 100)
        #expect(counts.channelMessages > 1_000)
        #expect(counts.questions > 1_000)
        #expect(counts.answers > 500)
        #expect(counts.actorCalls > 500)
        #expect(counts.actorAnswers > 250)
        #expect(counts.packets > 200)
        #expect(counts.messagesResent > 100)
        #expect(counts.unreliableReceived > 100)
        #expect(counts.refusedSends > 50)
        #expect(counts.cuts > 50)
        #expect(counts.blocks > 20)
        #expect(counts.partitions > 5)
        #expect(counts.kills > 10)
        #expect(counts.restarts > 10)
        #expect(counts.pings > 50)
        #expect(counts.moves > 10)
        #expect(counts.damagedLinks > 10)
    }

    /// Four times 50 pairs.
    @Test(arguments: 0..<4)
    func `Two invitations end with one link`(_ portion: Int) {
        for seed in 0..<50 {
            let report = World.doubleInvitation(seed: UInt64(portion * 50 + seed))
            if let finding = report.finding { Issue.record(finding) }
            #expect(report.counts.conversations == 2)
        }
    }

    @Test(arguments: [1, 2] as [UInt64])
    func `Fifty restarts leave no stale peer`(_ seed: UInt64) {
        let report = World.restarts(seed: seed)
        if let finding = report.finding { Issue.record(finding) }
        #expect(report.counts.kills == 50)
        #expect(report.counts.restarts == 50)
    }

    @Test func `Every session exchanges messages with every other`() {
        let report = World.mesh(of: 30)
        if let finding = report.finding { Issue.record(finding) }
        #expect(report.counts.conversations == 30 * 29)
        #expect(report.counts.messagesReceived == 30 * 29 * 3)
    }
}
