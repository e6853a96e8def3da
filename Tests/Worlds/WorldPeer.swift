import NighCore
import NighTestKit

/// A member of a world: one identity, in one run after another.
final class WorldPeer {
    let index: Int
    let identity: Identity
    let member: WorldPlan.Member
    /// Its knowledge of the others' keys, across all its runs.
    let trust = TrustStore.ephemeral()
    /// The files that others have sent it, across all its runs.
    let disk = MemoryDisk()
    var runs: [SessionRun] = []
    var addressCount = 0

    var currentRun: SessionRun? { runs.last.flatMap { $0.session == nil ? nil : $0 } }
    /// The current run, if it can act now.
    var activeRun: SessionRun? { currentRun.flatMap { $0.isClosing ? nil : $0 } }

    init(index: Int, identity: Identity, member: WorldPlan.Member) {
        self.index = index
        self.identity = identity
        self.member = member
    }
}
