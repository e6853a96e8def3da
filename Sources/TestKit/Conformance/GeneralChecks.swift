import NighCore

extension TransportConformance {
    /// The number of pipes that are opened and closed in a round.
    private static let cycleCount = 200

    static let generalChecks = [
        ConformanceCheck(
            "open-and-close", "200 pipes opened and closed leave no descriptor, no memory and no pipe behind"
        ) { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            var problem = ""
            // Other work in this process may disturb a round, but a leak shows in every round. The first round only
            // warms up.
            for round in 0..<20 {
                let before = (descriptors: ProcessGauge.descriptorCount, memory: ProcessGauge.residentBytes)
                let pipes = try openAndClose(testbed, client, server)
                try testbed.waitQuietTime()
                problem = ""
                let left = pipes.filter { $0.pipe != nil }.count
                if left > 0 { problem = "\(left) of \(2 * cycleCount) pipes are still in memory" }
                let descriptors = ProcessGauge.descriptorCount - before.descriptors
                if descriptors > 0 { problem = "\(descriptors) descriptors more after \(cycleCount) pipes" }
                let memory = ProcessGauge.residentBytes - before.memory
                if memory > 2 * 1024 * 1024 { problem = "\(memory) bytes more after \(cycleCount) pipes" }
                if round > 0, problem.isEmpty { return }
            }
            throw Testbed.Failure(message: problem)
        },
        ConformanceCheck(
            "never-inside-a-call", "the result of a call is reported in a later turn, on the loop"
        ) { testbed in
            // The checker reports events inside a call. This check makes many calls whose answers could come at once.
            let first = try testbed.startListener()
            let second = try testbed.startListener()
            try first.browse()
            try second.browse()
            let (dialled, accepted) = try testbed.connect(first, second)
            for _ in 0..<20 {
                try dialled.send(tag: 1, upTo: dialled.sent + 100, pieceLimit: 10)
                try accepted.pause()
                try accepted.send(tag: 2, upTo: accepted.sent + 100, pieceLimit: 10)
                try accepted.resume()
                try first.dialAndCancel(Testbed.address(in: second.listening))
                _ = try first.dial(testbed.rig.refusedAddress)
            }
            let renamed = second.advertisement("Renamed")
            try second.call { $0.updateAdvertisement(renamed) }
            try first.browse()
            try testbed.wait("the bytes arrive") { dialled.received == 2000 && accepted.received == 2000 }
            try accepted.close(.now)
            try testbed.wait("the close arrives") { dialled.isOver }
            try second.call { $0.stopAdvertising() }
            try testbed.wait("the loss is reported") { first.sighting(of: second) == nil }
        },
        ConformanceCheck(
            "diagnose", "diagnose returns findings in every state, and reports no events",
            needs: ConformanceNeeds(ends: 1)
        ) { testbed in
            let probe = try testbed.startTransport()
            for step in 0..<3 {
                let lines = try probe.call { $0.diagnose() }
                try testbed.expect(!lines.isEmpty, "diagnose returns nothing")
                try testbed.expect(
                    lines.allSatisfy { !$0.subject.isEmpty && !$0.finding.isEmpty },
                    "a finding of diagnose is empty")
                if step == 0 { try probe.advertise() }
                if step == 1 { try probe.browse() }
            }
            let capabilities = probe.transport.capabilities
            try testbed.expect(
                capabilities.typicalMTU > 0 && capabilities.typicalLatency > .zero
                    && capabilities.expectedConnectTime > .zero,
                "impossible capabilities: \(capabilities)")
        },
    ]

    private final class WeakPipe {
        private(set) weak var pipe: (any Pipe)?
        init(_ pipe: any Pipe) { self.pipe = CheckedTransport.pipe(inside: pipe) }
    }

    private static func openAndClose(_ testbed: Testbed, _ client: TransportProbe, _ server: TransportProbe)
        throws
        -> [WeakPipe]
    {
        var pipes: [WeakPipe] = []
        for cycle in 0..<cycleCount {
            let (dialled, accepted) = try testbed.connect(client, server)
            pipes += [WeakPipe(dialled.pipe), WeakPipe(accepted.pipe)]
            let (closer, other) = cycle % 2 == 0 ? (dialled, accepted) : (accepted, dialled)
            try closer.sendAtOnce(tag: 1, upTo: 100, thenClose: .afterWriting)
            try testbed.wait("the other end is notified of the close") { other.isOver }
            try testbed.expect(other.received == 100, "\(other.received) of 100 bytes arrived before the end")
            try other.close(.now)
            client.forgetPipes()
            server.forgetPipes()
        }
        return pipes
    }
}
