import Glibc
import ProgramLife

func tell(_ text: String) {
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
    Witness.watch()
    let findings = try Fuzzing(options).run(tell: tell, note: Witness.note)
    print(findings.isEmpty ? "nothing found" : "\(findings.count) findings")
    exit(findings.isEmpty ? 0 : 1)
} catch let error as Options.Unusable {
    tell("\(error.words); fuzz --help tells more")
    exit(2)
} catch {
    tell("\((error as? Finding)?.words ?? "\(error)")")
    exit(1)
}
