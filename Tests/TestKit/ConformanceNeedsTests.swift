import NighCore
import NighMemory
import NighTestKit
import Testing

/// Tests the suites on wires that are no networks: a cable has two ends, and may carry only one pipe.
struct ConformanceNeedsTests {
    /// Memory transports on threads with a limited number of ends, and the numbers of the ends that were asked for.
    private final class Wire {
        var ends: [Int] = []

        func rig(ends count: Int, pipes: Int) -> TransportRig {
            let hub = MemoryHub()
            var rig = TransportRig(
                "memory", refusedAddress: TransportAddress(scheme: "memory", value: "nobody"),
                silentAddress: hub.makeSilentAddress(), makeLoop: { ThreadEventLoop() },
                stopLoop: { ($0 as? ThreadEventLoop)?.shutdown() },
                makeEnd: { end in
                    self.ends.append(end)
                    return MemoryTransport(hub: hub)
                })
            rig.endsAtOnce = count
            rig.pipesAtOnce = pipes
            return rig
        }
    }

    @Test(arguments: TransportConformance.checks + SessionConformance.checks)
    func `A check passes on the smallest wire that it declares, and uses all its ends`(
        _ check: ConformanceCheck
    ) {
        let wire = Wire()
        let ends = max(2, check.needs.ends)
        let outcome = check.run { wire.rig(ends: ends, pipes: check.needs.pipes) }
        #expect(outcome.verdict == .passed, "\(outcome)")
        #expect(Set(wire.ends) == Set(0..<check.needs.ends))
    }

    @Test func `A cable with one pipe runs every check that applies, and the others name their reason`() {
        func skipped(_ checks: [ConformanceCheck]) -> [String: String] {
            var reasons: [String: String] = [:]
            for check in checks {
                let outcome = check.run { Wire().rig(ends: 2, pipes: 1) }
                switch outcome.verdict {
                case .passed: break
                case .skipped(let why): reasons[check.name] = why
                case .failed: Issue.record("\(outcome)")
                }
            }
            return reasons
        }
        let ends = "it needs more than 2 ends"
        #expect(
            skipped(TransportConformance.checks) == [
                "two-listeners": ends, "both-dial": "it needs more than 1 pipe at once",
            ])
        #expect(
            skipped(SessionConformance.checks) == [
                "full": ends, "busy": ends, "one-some-all": ends, "slow-reader-alone": ends,
                "close-under-way": ends, "silent-pipes": ends, "cut-greeting": ends,
            ])
    }

    @Test func `A failure lists the transports that it made, with the last error of each`() throws {
        let checks = TransportConformance.checks + SessionConformance.checks
        for (name, made) in [
            ("listen-and-dial", ["transport 1", "transport 2"]),
            ("call-by-address", ["session 1, Host", "session 2, Caller"]),
        ] {
            let check = try #require(checks.first { $0.name == name })
            let outcome = check.run {
                let plan = try FaultPlan(parsing: "refuse=all")
                return .memory(isVirtual: true) { FaultyTransport($0, plan: plan) }
            }
            #expect(outcome.transports.map(\.name) == made && outcome.transports.map(\.end) == [0, 1])
            #expect(outcome.transports.map(\.lastError?.cause) == [nil, .refused], "\(outcome)")
            let lines = outcome.description.split(separator: "\n")
            #expect(lines.count == 3 && lines[1].hasSuffix("\(made[0]), on end 0: it reported no error"))
            #expect(lines.last?.contains("its last error: connecting") == true, "\(lines)")
        }
    }
}
