import CBenchmark
import Glibc
import ProgramSupport

/// Lets every program do every work in turn, and reports the results.
enum Driver {
    static func run(_ arguments: [String]) -> Int32 {
        let options = Options.program.parseOrExit(arguments, as: "bench")
        benchmark_catch_interrupts()
        let programs = Program.all(options, ownIn: ownFolder())
            .filter { options.programs?.contains($0.name) ?? true }
            .filter { !$0.works.isDisjoint(with: options.works) }
        for program in Set(programs.map(\.executable)).sorted() where access(program, X_OK) != 0 {
            complain("\(program) is not there; `make bench` builds everything")
            return 1
        }
        let earlier: EarlierResults?
        do throws(UnreadableResults) {
            earlier = try options.comparedFile.map { path throws(UnreadableResults) in try .read(path) }
        } catch {
            complain("\(error)")
            return 1
        }
        defer { for column in Work.files.columns(options) { unlink(Turn.source(column)) } }
        var results = Results(programs: programs, options: options)
        do throws(RunError) {
            try measure(programs, options, into: &results)
        } catch {
            complain("interrupted")
            return 130
        }
        let report = Report(results)
        var text = report.markdown
        if let earlier, let path = options.comparedFile {
            text += Comparison(earlier.values, results.values, programs: programs)
                .markdown(with: earlier, named: path)
        }
        print(text)
        save(text, as: "results.md", options)
        save(report.json, as: "results.json", options)
        return results.hasFailures ? 1 : 0
    }

    private static func measure(
        _ programs: [Program], _ options: Options, into results: inout Results
    ) throws(RunError) {
        for round in 0..<options.rounds {
            for work in options.works {
                for column in work.columns(options) {
                    complain("round \(round + 1): \(work.rawValue) \(work.title(of: column))")
                    let those = programs.filter { $0.works.contains(work) }
                    for program in round % 2 == 0 ? those : those.reversed() {
                        try measure(
                            Turn(program: program, work: work, column: column, options: options),
                            into: &results)
                    }
                }
            }
        }
    }

    /// Runs a turn and adds its results. A failure is reported and left out; only an interrupt ends the run.
    private static func measure(_ turn: Turn, into results: inout Results) throws(RunError) {
        do throws(RunError) {
            results.add(try turn.run(), of: turn)
        } catch {
            switch error {
            case .interrupted: throw error
            case .unsupported: results.add([:], of: turn)
            case .failed(let reason):
                complain(
                    "\(turn.program.name): \(turn.work.rawValue) \(turn.work.title(of: turn.column)): \(reason)"
                )
                results.hasFailures = true
                results.add([:], of: turn)
            }
        }
    }

    /// Returns the folder of this program, which also contains the session's program.
    private static func ownFolder() -> String {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = readlink("/proc/self/exe", &path, path.count - 1)
        let text = String(decoding: path.prefix(max(0, length)).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return text.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    }

    private static func save(_ text: String, as name: String, _ options: Options) {
        let path = "\(options.resultsFolder)/\(name)"
        guard let file = fopen(path, "w") else { return complain("\(path) cannot be written") }
        fputs(text, file)
        fclose(file)
        complain("wrote \(path)")
    }

    private static func complain(_ text: String) { LineOutput.printError(text, by: "bench") }
}
