import Arguments
import Testing

@Suite("What is told when the command line is wrong")
struct MisuseTests {
    @Test("What is wrong is what is printed")
    func words() { #expect("\(Misuse("there is no --colour"))" == "there is no --colour") }

    @Test(
        "One sentence says what is wrong, what to do, and where to read more",
        arguments: [
            // Unknown or misplaced options.
            ("scan --nmae x", "there is no option --nmae: did you mean --name?", "scan"),
            ("scan --transprot=tcp", "there is no option --transprot: did you mean --transport?", "scan"),
            (
                "send --no-animtion a b", "there is no option --no-animtion: did you mean --no-animation?",
                "send"
            ),
            ("scan --elephant", "there is no option --elephant", "scan"),
            ("scan -x", "there is no option -x", "scan"),
            ("scan -name x", "there is no option -name: write --name", "scan"),
            ("scan --verbose", "--verbose is an option of try-it send, not of try-it scan", "scan"),
            ("scan -v", "-v is an option of try-it send, not of try-it scan", "scan"),
            ("offer -n x", "-n is an option of try-it scan and try-it send, not of try-it offer", "offer"),
            ("--limit 3 send a b", "--limit is an option of try-it send: write it behind that", ""),
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
            ("scan 10", "COUNT: 10 is out of range: it is -5 to 9", "scan"),
            ("scan many", "COUNT: \"many\" is no whole number (it is -5 to 9)", "scan"),
            ("scan --within 2m", "--within: 2m is out of range: it is 10ms to 1m", "scan"),
            ("scan --within 5", "--within: \"5\" is no duration as in 200ms, 5s or 2m", "scan"),
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
                "--animation is given twice, be it as --no-animation: once is enough", "send"
            ),
            ("send a b", "--limit NUMBER is missing", "send"),
            ("send -l1", "FILE is missing: what to send", "send"),
            ("send -l1 a", "FILE is missing: what to send", "send"),
            ("trust add", "PEER is missing: whom", "trust add"),
            ("scan 3 4", "\"4\" is too much: try-it scan takes COUNT only", "scan"),
            // Commands.
            ("", "a command is missing: scan, send, offer or trust", ""),
            ("trust", "a command is missing: add or forget", "trust"),
            ("scna", "there is no command \"scna\": did you mean scan?", ""),
            ("elephant", "there is no command \"elephant\": it is scan, send, offer or trust", ""),
            ("trust ad x", "there is no command \"ad\": did you mean add?", "trust"),
            ("-- scan", "scan is a command: write it right behind try-it, before all options", ""),
            ("help elephant", "there is no command \"elephant\": it is scan, send, offer or trust", ""),
            ("help scan more", "try-it scan has no commands below it, and so no \"more\"", ""),
            // Rules that only the command itself checks.
            ("send -qv -l1 a b", "--quiet and --verbose contradict each other", "send"),
        ])
    func sentences(_ line: String, _ words: String, _ command: String) {
        let misuse = #expect(throws: Misuse.self) { try Sample.request(line) }
        let title = command.isEmpty ? "try-it" : "try-it \(command)"
        #expect(misuse?.description == "\(words) (see \(title) --help)")
    }

    @Test("Status 2 is what such a program ends with")
    func status() { #expect(Misuse.status == 2) }

    @Test("What somebody typed is not repeated without end")
    func longWords() {
        let misuse = #expect(throws: Misuse.self) {
            try Sample.program.parse(["scan", String(repeating: "9", count: 10_000)])
        }
        #expect((misuse?.description.count ?? 0) < 200)
    }
}
