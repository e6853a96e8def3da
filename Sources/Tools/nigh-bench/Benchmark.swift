import CAllocationCounter
import Glibc

/// Runs what the command line asks for.
enum Benchmark {
    static func run(_ arguments: [String]) async {
        let options: Options
        do throws(Options.Unusable) {
            options = try Options(arguments.dropFirst())
        } catch {
            complain(error.words + "; --help tells what is there")
            exit(2)
        }
        if options.wantsHelp {
            print(Options.help, terminator: "")
            return
        }
        let scenarios = Scenario.all.filter { options.only.isEmpty || options.only.contains($0.name) }
        do {
            if options.checksAllocations {
                guard try await checkAllocations(of: scenarios) else { exit(1) }
            } else {
                try await time(scenarios, options)
            }
        } catch {
            complain("\(error)")
            exit(1)
        }
    }

    private static func time(_ scenarios: [Scenario], _ options: Options) async throws {
        let table = Table(asJSON: options.asJSON)
        table.begin()
        for scenario in scenarios {
            for size in options.sizes ?? scenario.sizes where size <= scenario.largestSize {
                let measurement = try await scenario.measure(
                    size: size, warmUp: warmUp(size: size), until: .seconds(options.seconds))
                table.add(measurement, of: scenario, size: size)
            }
        }
    }

    /// Counts allocations of a fixed number of messages in the steady state; false where a limit was exceeded.
    private static func checkAllocations(of scenarios: [Scenario]) async throws -> Bool {
        guard allocation_counter_is_active() else {
            complain("allocations cannot be counted under a sanitizer")
            return false
        }
        var isGood = true
        for scenario in scenarios {
            for (size, limit) in scenario.checked {
                let messages = size > 4_096 ? 20_000 : 200_000
                let measurement = try await scenario.measure(
                    size: size, warmUp: messages / 4, until: .messages(messages))
                let perMessage = Double(measurement.allocations) / Double(measurement.messages)
                let passes = perMessage <= limit
                if !passes { isGood = false }
                print(
                    passes ? "ok  " : "FAIL", Table.padded(scenario.name, 13),
                    Table.padded(Table.size(size), 9),
                    "\(measurement.allocations) allocations in \(measurement.messages) messages,",
                    "\(Table.fixed(perMessage, 5)) each; at most \(Table.fixed(limit, 5)) allowed")
            }
        }
        return isGood
    }

    private static func warmUp(size: Int) -> Int { max(100, min(50_000, (64 << 20) / size)) }

    private static func complain(_ words: String) {
        let line = "nigh-bench: \(words)\n"
        _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }
}
