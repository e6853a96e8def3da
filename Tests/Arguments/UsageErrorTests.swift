import Arguments
import Testing

@Suite("Errors in a command line")
struct UsageErrorTests {
    @Test("The description of an error is its words")
    func words() { #expect("\(UsageError("there is no --colour"))" == "there is no --colour") }

    @Test(
        "One sentence names the mistake, the remedy, and the help",
        arguments: [
            // Unknown or misplaced options.
            ("scan --nmae x", "there is no option --nmae: did you mean --name?", "scan"),
            ("scan --transprot=tcp", "there is no option --transprot: did you mean --transport?", "scan"),
            (
                "send --no-animtion a b", "there is no option --no-animtion: did you mean --no-animation?",
                "send"
            ),
            ("scan --NAME x", "there is no option --NAME: did you mean --name?", "scan"),
            ("scan --elephant", "there is no option --elephant", "scan"),
            ("scan -x", "there is no option -x", "scan"),
            ("scan -name x", "there is no option -name: write --name", "scan"),
            ("scan --verbose", "--verbose is an option of try-it send, not of try-it scan", "scan"),
            ("scan -v", "-v is an option of try-it send, not of try-it scan", "scan"),
            ("offer -n x", "-n is an option of try-it scan and try-it send, not of try-it offer", "offer"),
            ("--limit 3 send a b", "--limit is an option of try-it send: write it after that command", ""),
            ("scan --secrat x", "there is no option --secrat", "scan"),
            ("scan --\u{1B}[2J", "there is no option --\u{FFFD}[2J", "scan"),
            // Values.
            ("scan --name", "--name needs a value: --name NAME", "scan"),
            ("scan -n", "-n needs a value: -n NAME", "scan"),
            ("scan --name=", "--name needs a value that is not empty", "scan"),
            (
                "scan --name --quiet",
                "--name needs a value before --quiet (if that is the value: --name=--quiet)", "scan"
            ),
            ("scan -n -q", "-n needs a value before -q (if that is the value: -n-q)", "scan"),
            ("scan --quiet=yes", "--quiet takes no value: leave out =\"yes\"", "scan"),
            ("scan 10", "COUNT: 10 is out of range: -5 to 9 is allowed", "scan"),
            ("scan many", "COUNT: \"many\" is not a whole number: -5 to 9 is allowed", "scan"),
            ("scan --within 2m", "--within: 2m is out of range: 10ms to 1min is allowed", "scan"),
            ("scan --within x", "--within: \"x\" is not a duration such as 200ms, 5s or 2min", "scan"),
            ("scan --transport pigeon", "--transport: \"pigeon\" is not tcp, bluetooth or memory", "scan"),
            (
                "scan --transport bluetoth",
                "--transport: \"bluetoth\" is not tcp, bluetooth or memory: did you mean bluetooth?", "scan"
            ),
            ("offer ksh", "SHELL: \"ksh\" is not bash, zsh or fish: did you mean zsh?", "offer"),
            ("send -l1 --to nobody a b", "--to: an address is written as in tcp@host", "send"),
            // Repeated and missing arguments.
            ("scan -n x --name y", "--name is given twice: once is enough", "scan"),
            ("scan -qq", "--quiet is given twice: once is enough", "scan"),
            (
                "send --animation --no-animation",
                "--animation is given twice, also as --no-animation: once is enough", "send"
            ),
            ("send a b", "--limit NUMBER is missing", "send"),
            ("send -l1", "FILE is missing: what to send", "send"),
            ("send -l1 a", "FILE is missing: what to send", "send"),
            ("trust add", "PEER is missing: whom", "trust add"),
            ("scan 3 4", "unexpected \"4\": try-it scan takes COUNT only", "scan"),
            // Commands.
            ("--", "a command is missing: scan, send, offer or trust", ""),
            ("trust --", "a command is missing: add or forget", "trust"),
            ("scna", "there is no command \"scna\": did you mean scan?", ""),
            ("elephant", "there is no command \"elephant\": use scan, send, offer or trust", ""),
            ("scna --help", "there is no command \"scna\": did you mean scan?", ""),
            ("SCAN -h", "there is no command \"SCAN\": did you mean scan?", ""),
            (
                "elephant --wrong --help", "there is no command \"elephant\": use scan, send, offer or trust",
                ""
            ),
            ("elephant --version", "there is no command \"elephant\": use scan, send, offer or trust", ""),
            ("trust ad --help", "there is no command \"ad\": did you mean add?", "trust"),
            ("trust ad x", "there is no command \"ad\": did you mean add?", "trust"),
            ("-- scan", "scan is a command: write it directly after try-it, before all options", ""),
            ("help elephant", "there is no command \"elephant\": use scan, send, offer or trust", ""),
            ("help scan more", "try-it scan has no subcommands: leave out \"more\"", ""),
            // Rules that only the command itself checks.
            ("send -qv -l1 a b", "--quiet and --verbose contradict each other", "send"),
        ])
    func sentences(_ line: String, _ words: String, _ command: String) {
        let error = #expect(throws: UsageError.self) { try Sample.request(line) }
        let title = command.isEmpty ? "try-it" : "try-it \(command)"
        #expect(error?.description == "\(words) (see \(title) --help)")
    }

    @Test("The exit status of a usage error is 2")
    func status() { #expect(UsageError.status == 2) }

    @Test("A very long argument is shortened in the error")
    func longWords() {
        let error = #expect(throws: UsageError.self) {
            try Sample.program.parse(["scan", String(repeating: "9", count: 10_000)])
        }
        #expect((error?.description.count ?? 0) < 200)
    }
}
