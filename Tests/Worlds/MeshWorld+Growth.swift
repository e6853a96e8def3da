import NighCore
import NighTestKit

/// The cost of connecting the sessions of a mesh, all through the first of them.
package struct MeshGrowth: Sendable {
    /// The number of sessions.
    package let size: Int
    /// The virtual time from the first newcomer until all pairs were connected, in milliseconds; nil if they never
    /// were.
    package let milliseconds: Int?
    /// The virtual time from the last newcomer's start until all pairs were connected.
    package let lastMilliseconds: Int?
    /// The most dials of one session.
    package let mostDials: Int
    /// The dials of all sessions.
    package let dials: Int
    /// The messages about others that all sessions have received.
    package let records: Int
    /// The bytes of those messages.
    package let recordBytes: Int
}

extension MeshWorld {
    /// Connects `size` sessions, of which each newcomer calls the first, one every 20 ms.
    package static func grow(to size: Int) -> MeshGrowth {
        let world = MeshWorld(calmSeed: 1, members: size)
        return world.grow()
    }

    private func grow() -> MeshGrowth {
        let pace = Duration.milliseconds(20)
        let first = beginNow(0)
        advance(by: pace)
        let start = loop.now
        var last = start
        for index in 1..<memberCount {
            let run = beginNow(index)
            last = loop.now
            run.call(first.member)
            advance(by: pace)
        }
        var end: Moment?
        // With a finding the world stands still.
        while end == nil, finding == nil, loop.now < last + .seconds(120) {
            if presentRuns.allSatisfy({ $0.connected.count == memberCount - 1 }) {
                end = loop.now
            } else {
                advance(by: pace)
            }
        }
        var (most, all, records, bytes) = (0, 0, 0, 0)
        for run in presentRuns {
            nonisolated(unsafe) var dials = 0
            run.session.statistics { dials = $0.dials }
            most = max(most, dials)
            all += dials
            records += run.recordMessages
            bytes += run.recordBytes
        }
        return MeshGrowth(
            size: memberCount,
            milliseconds: end.map { Int(($0 - start).nanoseconds / 1_000_000) },
            lastMilliseconds: end.map { Int(($0 - last).nanoseconds / 1_000_000) }, mostDials: most,
            dials: all,
            records: records, recordBytes: bytes)
    }
}
