import Arguments
import Measuring
import NighCore

/// The settings of `nigh bench`.
struct BenchPlan: Sendable {
    /// The runs for each message size.
    enum Directions: String, Sendable, CaseIterable {
        case up
        case down
        case both
        case each

        var runs: [BenchDirection] {
            switch self {
            case .up: [.up]
            case .down: [.down]
            case .both: [.both]
            case .each: [.up, .down, .both]
            }
        }
    }

    var directions: Directions
    var sizes: [Int]
    var measured: Duration
    var warmUp: Duration
    /// The lowest throughput for exit status 0, in bits per second.
    var leastBitRate: Int?
    /// Whether datagrams are measured, too.
    var hasPackets = false
    /// The file that the report is written to.
    var report: ReportFile?

    /// All runs, in their order.
    var orders: [BenchOrder] {
        var orders: [BenchOrder] = []
        for size in sizes {
            for direction in directions.runs {
                orders.append(
                    BenchOrder(
                        run: UInt16(orders.count + 1), direction: direction, size: UInt32(size),
                        warmUp: UInt32(warmUp.milliseconds), measured: UInt32(measured.milliseconds)))
            }
        }
        return orders
    }

    /// Describes the directions that were slower than the threshold.
    func missed(by runs: [BenchRun]) -> [String] {
        guard let leastBitRate else { return [] }
        return runs.flatMap { run in
            run.directions.filter { $0.result.received.rate * 8 < Double(leastBitRate) }.map { name, result in
                "run \(run.order.run) carried \(Figures.bitRate(result.received.rate)) \(name.rawValue), less than \(Figures.bitRate(Double(leastBitRate) / 8))"
            }
        }
    }
}
