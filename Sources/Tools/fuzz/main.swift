import Glibc
import ProgramSupport

func report(_ text: String) {
    let line = "fuzz: \(text)\n"
    _ = line.utf8.withContiguousStorageIfAvailable { write(STDERR_FILENO, $0.baseAddress, $0.count) }
}

StandardStreams.begin(for: "fuzz")
do {
    let options = try Options(CommandLine.arguments.dropFirst())
    guard !options.wantsHelp else {
        print(Options.help, terminator: "")
        exit(0)
    }
    TrapReporter.install()
    let findings = try Fuzzing(options).run(report: report, willRun: TrapReporter.willRun)
    print(findings.isEmpty ? "nothing found" : "\(findings.count) findings")
    exit(findings.isEmpty ? 0 : 1)
} catch let error as Options.UsageError {
    report("\(error.message); see fuzz --help")
    exit(2)
} catch {
    report("\((error as? Finding)?.message ?? "\(error)")")
    exit(1)
}
