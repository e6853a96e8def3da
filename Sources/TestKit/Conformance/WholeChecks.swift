import NighCore

extension TransportConformance {
    /// The number of pipes that are opened and closed in a round.
    private static let cycleCount = 200

    static let wholeChecks = [
        ConformanceCheck(
            "open-and-close", "200 pipes opened and closed leave no descriptor, no memory and no pipe behind"
        ) { bench in
            let server = try bench.listener()
            let client = try bench.station()
            var problem = ""
            // Other work in this process may disturb a round, but a leak shows in every round. The first round only
            // warms up.
            for round in 0..<20 {
                let before = (descriptors: ProcessGauge.descriptorCount, memory: ProcessGauge.residentBytes)
                let pipes = try openAndClose(bench, client, server)
                try bench.settle()
                problem = ""
                let left = pipes.filter { $0.pipe != nil }.count
                if left > 0 { problem = "\(left) of \(2 * cycleCount) pipes are still in memory" }
                let descriptors = ProcessGauge.descriptorCount - before.descriptors
                if descriptors > 0 { problem = "\(descriptors) descriptors more after \(cycleCount) pipes" }
                let memory = ProcessGauge.residentBytes - before.memory
                if memory > 2 * 1024 * 1024 { problem = "\(memory) bytes more after \(cycleCount) pipes" }
                if round > 0, problem.isEmpty { return }
            }
            throw Bench.Failure(words: problem)
        },
        ConformanceCheck(
            "never-inside-a-call", "what a call brings about is told in a later turn, on the loop"
        ) { bench in
            // The checker reports events inside a call. This check makes many calls whose answers could come at once.
            let first = try bench.listener()
            let second = try bench.listener()
            try first.browse()
            try second.browse()
            let (dialled, accepted) = try bench.connect(first, second)
            for _ in 0..<20 {
                try dialled.send(tag: 1, upTo: dialled.sent + 100, pieceLimit: 10)
                try accepted.pause()
                try accepted.send(tag: 2, upTo: accepted.sent + 100, pieceLimit: 10)
                try accepted.resume()
                try first.dialAndCancel(second.listening[0])
                _ = try first.dial(bench.rig.refusedAddress)
            }
            let renamed = second.advertisement("Renamed")
            try second.call { $0.updateAdvertisement(renamed) }
            try first.browse()
            try bench.wait("the bytes arrive") { dialled.received == 2000 && accepted.received == 2000 }
            try accepted.close(.now)
            try bench.wait("the close arrives") { dialled.isOver }
            try second.call { $0.stopAdvertising() }
            try bench.wait("the loss is told") { first.sighting(of: second) == nil }
        },
        ConformanceCheck(
            "diagnose", "diagnose says something in every state, without telling events",
            needs: ConformanceNeeds(ends: 1)
        ) { bench in
            let station = try bench.station()
            for step in 0..<3 {
                let lines = try station.call { $0.diagnose() }
                try bench.expect(!lines.isEmpty, "diagnose says nothing")
                try bench.expect(
                    lines.allSatisfy { !$0.subject.isEmpty && !$0.finding.isEmpty },
                    "a line of diagnose is empty")
                if step == 0 { try station.advertise() }
                if step == 1 { try station.browse() }
            }
            let capabilities = station.transport.capabilities
            try bench.expect(
                capabilities.typicalMTU > 0 && capabilities.typicalLatency > .zero
                    && capabilities.expectedConnectTime > .zero,
                "capabilities that cannot be: \(capabilities)")
        },
    ]

    private final class WeakPipe {
        private(set) weak var pipe: (any Pipe)?
        init(_ pipe: any Pipe) { self.pipe = CheckedTransport.pipe(inside: pipe) }
    }

    private static func openAndClose(_ bench: Bench, _ client: Station, _ server: Station) throws
        -> [WeakPipe]
    {
        var pipes: [WeakPipe] = []
        for cycle in 0..<cycleCount {
            let (dialled, accepted) = try bench.connect(client, server)
            pipes += [WeakPipe(dialled.pipe), WeakPipe(accepted.pipe)]
            let (closer, other) = cycle % 2 == 0 ? (dialled, accepted) : (accepted, dialled)
            try closer.sendAtOnce(tag: 1, upTo: 100, thenClose: .afterWriting)
            try bench.wait("the other end learns of the close") { other.isOver }
            try bench.expect(other.received == 100, "\(other.received) of 100 bytes came before the end")
            try other.close(.now)
            client.forgetPipes()
            server.forgetPipes()
        }
        return pipes
    }
}
