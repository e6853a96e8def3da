import CAllocationCounter
import Glibc
import Measuring
import ProgramSupport

/// Runs the benchmarks that the command line asks for.
enum Benchmark {
    static let name = "nigh-bench"

    static func run(_ arguments: [String]) async -> Int32 {
        let options = Options.program.parseOrExit(arguments, as: name)
        do {
            if let sides = options.countedPaths {
                try await count(sides)
                return 0
            }
            if options.checksAllocations { return try await checkAllocations(of: options.scenarios) ? 0 : 1 }
            try await time(options)
            return 0
        } catch {
            LineOutput.printError("\(error)", by: name)
            return 1
        }
    }

    private static func time(_ options: Options) async throws {
        let table = Table(asJSON: options.asJSON)
        table.begin()
        for scenario in options.scenarios {
            for size in options.sizes ?? scenario.sizes where size <= scenario.largestSize {
                let warmUp = max(100, min(50_000, (64 << 20) / size))
                let measurement = try await scenario.measure(
                    size: size, warmUp: warmUp, until: .nanoseconds(options.nanoseconds))
                table.add(measurement, of: scenario, size: size)
            }
        }
    }

    /// Runs the counted paths. Prints the name of each, the divisor of its cost, and its allocations.
    private static func count(_ sides: CountedPath.Sides) async throws {
        for path in CountedPath.all where path.sides == sides {
            let allocations = try await path.count()
            print(path.name, path.operations * path.parts, allocations)
            fflush(nil)
        }
    }

    /// Counts the allocations of a fixed number of messages in the steady state. Returns false if a limit was exceeded.
    private static func checkAllocations(of scenarios: [Scenario]) async throws -> Bool {
        guard allocation_counter_is_active() else {
            LineOutput.printError("allocations cannot be counted under a sanitizer", by: name)
            return false
        }
        guard scenarios.contains(where: { !$0.checked.isEmpty }) else {
            LineOutput.printError("no limit is set for the allocations of these scenarios", by: name)
            return false
        }
        var isGood = true
        for scenario in scenarios {
            for (size, limit) in scenario.checked {
                let messages = size > 4_096 ? 20_000 : 200_000
                let measurement = try await scenario.measure(
                    size: size, warmUp: messages / 4, until: .messages(messages))
                let perMessage = measurement.perMessage(measurement.allocations)
                let passes = perMessage <= limit
                if !passes { isGood = false }
                print(
                    passes ? "ok  " : "FAIL", Figures.left(scenario.name, 13),
                    Figures.left(Figures.size(size), 9),
                    "\(measurement.allocations) allocations in \(measurement.messages) messages,",
                    "\(Figures.fixed(perMessage, decimals: 5)) each; at most \(Figures.fixed(limit, decimals: 5)) allowed"
                )
            }
        }
        return isGood
    }
}
