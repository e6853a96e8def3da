import Glibc

func tell(_ text: String) {
    print(text)
    fflush(nil)
}

do {
    let options = try Options(CommandLine.arguments.dropFirst())
    if options.wantsHelp {
        print(Options.help, terminator: "")
        exit(0)
    }
    exit(try Mutating(options: options, tell: tell).run() ? 0 : 1)
} catch {
    print("mutants: \((error as? Options.Unusable)?.words ?? "\(error)")")
    exit(2)
}
