import Foundation

/// The modules against Nigh's own interface: each with a second process, over the same transport, in turns.
///
/// Times of one run can be compared with each other, and not with those of another run.
enum Comparison {
    private static func connect() async throws -> [(any Contender, SecondProcess)] {
        var pairs: [(any Contender, SecondProcess)] = []
        for contender in contenders {
            let process = try SecondProcess(contender)
            pairs.append((try await contender.init(to: process), process))
        }
        return pairs
    }

    private static func median(_ numbers: [Double]) -> Double { numbers.sorted()[numbers.count / 2] }

    private static func rounded(_ number: Double) -> Double { (number * 100).rounded() / 100 }

    static func latency(_ count: Int) async throws {
        let pairs = try await connect()
        defer { for (_, process) in pairs { process.end() } }
        var times = pairs.map { _ in [Double]() }
        for _ in 0..<10 {
            for (index, (contender, _)) in pairs.enumerated() {
                times[index] += try await contender.roundTrips(count / 10)
            }
        }
        for (index, (contender, _)) in pairs.enumerated() {
            let sorted = times[index].sorted()
            print(
                """
                round trip by \(type(of: contender).name): median \(rounded(median(sorted))) µs, 99 % within \
                \(rounded(sorted[sorted.count * 99 / 100])) µs; ratio \(rounded(median(sorted) / median(times[0])))
                """)
        }
    }

    /// The time that a message takes, in microseconds.
    private struct Cost {
        var elapsed: [Double] = []
        var sender: [Double] = []
        var receiver: [Double] = []

        /// The processor time of both sides.
        var processor: [Double] { zip(sender, receiver).map { $0 + $1 } }
    }

    static func throughput(_ rounds: Int) async throws {
        let pairs = try await connect()
        defer { for (_, process) in pairs { process.end() } }
        for (size, count) in [(64, 200_000), (100, 200_000), (1_000, 100_000), (100_000, 3_000)] {
            var costs = pairs.map { _ in Cost() }
            for _ in 0..<rounds {
                for (index, (contender, process)) in pairs.enumerated() {
                    let (own, other) = (Machine.processorSeconds(of: getpid()), process.processorSeconds)
                    let start = ContinuousClock.now
                    try await contender.stream(count, of: size)
                    let scale = 1e6 / Double(count)
                    costs[index].elapsed.append(start.duration(to: .now) / .seconds(1) * scale)
                    costs[index].sender.append((Machine.processorSeconds(of: getpid()) - own) * scale)
                    costs[index].receiver.append((process.processorSeconds - other) * scale)
                }
            }
            print("\(size) bytes, µs a message: elapsed, processor of the sender, of the receiver")
            for (index, (contender, _)) in pairs.enumerated() {
                let cost = costs[index]
                let throughput = zip(costs[0].elapsed, cost.elapsed).map { $0 / $1 }
                let processor = zip(costs[0].processor, cost.processor).map { $1 / $0 }
                print(
                    """
                    \(type(of: contender).name): \(rounded(median(cost.elapsed))), \(rounded(median(cost.sender))), \
                    \(rounded(median(cost.receiver))); of Nigh's: throughput \(rounded(median(throughput))), \
                    processor \(rounded(median(processor)))
                    """)
            }
        }
    }
}
