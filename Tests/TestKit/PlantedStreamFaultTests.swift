import NighTestKit
import Testing

@testable import NighCore
@testable import Worlds

/// Damages byte streams on purpose, and tests that the world reports it.
struct PlantedStreamFaultTests {
    /// A kind of damage that a session must never do to a stream.
    enum Fault: CaseIterable {
        case losesBytes
        case doublesAByte
        case reordersBytes
        case endsBeforeTheLastByte
        /// The writer sends more than the reader has allowed.
        case exceedsTheCredit

        /// Damages a stream at the end that reads. Returns false if it is not in a state in which that shows.
        func apply(_ stream: WorldStream, _ reader: StreamPort, _ writer: StreamTable) -> Bool {
            switch self {
            case .losesBytes:
                guard case .bytes = reader.read() else { return false }
            case .doublesAByte:
                guard case .bytes(let bytes) = reader.read(), let last = bytes.bytes.last else {
                    return false
                }
                deliver(bytes.bytes + [last], to: reader)
            case .reordersBytes:
                guard case .bytes(let bytes) = reader.read(), bytes.count > 1 else { return false }
                deliver(bytes.bytes.reversed(), to: reader)
            case .endsBeforeTheLastByte:
                guard !stream.directions[0].isFinished else { return false }
                reader.receivedFinish()
            case .exceedsTheCredit:
                let credit = StreamControl.credit(.max).payload(for: reader.number)
                try? ByteSlice(credit).withUnsafeBytes { bytes throws(WireError) in
                    _ = try writer.receivedControl(StreamControlFrame(reading: bytes))
                }
            }
            return true
        }

        private func deliver(_ bytes: [UInt8], to port: StreamPort) {
            _ = ByteSlice(bytes).withUnsafeBytes { raw in port.deliver(raw) { ByteSlice(copying: raw) } }
            port.wakeReaders()
        }
    }

    @Test(arguments: Fault.allCases)
    func `A damaged stream is reported`(_ fault: Fault) {
        var caught = 0
        for seed in 1...40 as ClosedRange<UInt64> where caught < 3 {
            nonisolated(unsafe) var damaged = 0
            // A world that keeps no log runs again if something is found.
            let report = World.run(seed: seed, keepingLog: true) { world in
                // In a storm any conversation may end, and its streams with it.
                guard world.hasStreams, world.plan.kind != .storm else { return }
                damage(world, fault) { damaged += 1 }
            }
            guard damaged > 0 else { continue }
            let rule = report.finding?.rule
            #expect(
                [.order, .delivery, .endurance, .authentic, .consistency].contains(rule),
                "seed \(seed): \(report.finding?.message ?? "nothing")")
            caught += 1
        }
        #expect(caught == 3)
    }

    /// Damages streams again and again, because the user of one may give it up before anything is noticed.
    private func damage(_ world: World, _ fault: Fault, note: @escaping () -> Void) {
        world.schedule(after: .milliseconds(150)) {
            for stream in world.worldStreams where stream.lasts(at: 0) && stream.lasts(at: 1) {
                guard !stream.directions[0].isStopped, !stream.directions[0].hasEnded,
                    let reader = stream.ends[1]?.port,
                    let peer = stream.opener.session?.driver.machine.peers[world.id(stream.other)],
                    let writer = peer.conversation?.streams
                else { continue }
                if fault.apply(stream, reader, writer) { note() }
            }
            if !world.isQuiet { damage(world, fault, note: note) }
        }
    }
}
