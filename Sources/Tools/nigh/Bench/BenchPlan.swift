import Arguments
import Glibc
import Measuring
import NighCore
import ProgramSupport

/// What `nigh bench` measures.
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

    /// The file that the report is written to.
    struct Report: Sendable {
        let path: String
        let overwrites: Bool
    }

    var directions: Directions
    var sizes: [Int]
    var measured: Duration
    var warmUp: Duration
    /// In bits per second.
    var leastBitRate: Int?
    /// Whether packets are measured beside the link.
    var hasPackets = false
    var report: Report?

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

extension BenchPlan.Report {
    /// The error that the file cannot be written.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Throws before the measurement if writing the file would fail after it.
    func check() throws {
        if !overwrites, access(path, F_OK) == 0 {
            throw UsageError("--report: \(path) exists; --force overwrites it")
        }
        let folder =
            path.contains("/")
            ? path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
                + "/" : "."
        guard access(folder, W_OK) == 0 else {
            throw UsageError(
                "--report: cannot write in \(folder): \(String(cString: strerror(errno)))")
        }
    }

    func write(_ page: String) throws {
        let flag = overwrites ? O_TRUNC : O_EXCL
        // Opening a pipe that nobody reads must fail and not wait. Writing to a pipe that is read may wait.
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | flag, 0o644)
        guard descriptor >= 0 else {
            throw Failure(
                description: "the report cannot be written to \(path): \(String(cString: strerror(errno)))")
        }
        _ = fcntl(descriptor, F_SETFL, O_WRONLY)
        let isWritten = LineOutput.write(page, to: descriptor)
        guard close(descriptor) == 0, isWritten else {
            throw Failure(description: "the report could not be written completely to \(path)")
        }
    }
}
