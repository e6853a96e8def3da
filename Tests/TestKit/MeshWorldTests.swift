import NighCore
import NighTestKit
import Testing

@testable import Worlds

@Suite("A simulated mesh") struct MeshWorldTests {
    /// Without relays, with them, encrypted without them and with them, and one in which a carrier was out of reach for
    /// a moment.
    @Test(arguments: [3, 5, 12, 4, 10_966]) func `holds every rule, and is the same each time`(_ seed: UInt64)
    {
        let report = MeshWorld.run(seed: seed)
        #expect(report.finding == nil, "\(report.finding.map(String.init(describing:)) ?? "")")
        #expect(report.counts.messagesReceived > 0)
        #expect(MeshWorld.run(seed: seed).hash == report.hash)
    }

    @Test func `notices that members are not introduced to each other`() {
        let findings = (1...3).compactMap { seed in
            MeshWorld.run(seed: seed, with: MeshWorld.Fault(losesRecords: true)).finding
        }
        #expect(findings.contains { $0.rule == .agreement })
    }

    @Test func `notices that a carrier can read what is for others`() {
        let findings = (1...5).compactMap { seed in
            MeshWorld.run(seed: seed, with: MeshWorld.Fault(isReadable: true)).finding
        }
        #expect(findings.contains { $0.rule == .authentic })
    }

    @Test(arguments: 0..<12 as Range<UInt64>) func `leaves nothing in memory`(seed: UInt64) {
        weak var world: MeshWorld?
        var sessions: [() -> Session?] = []
        do {
            let it = MeshWorld(seed: seed, fault: MeshWorld.Fault())
            it.onRun = { run in
                weak let session = run.session
                sessions.append { session }
            }
            it.live()
            world = it
            #expect(it.loop.pending.timers == 0, "\(it.loop.pending)")
            #expect(it.loop.pending.work == 0, "\(it.loop.pending)")
        }
        #expect(world == nil)
        #expect(sessions.count { $0() != nil } == 0, "of \(sessions.count)")
    }
}
