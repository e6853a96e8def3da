/// The command-line options of `soak`.
struct Options {
    var first: UInt64 = 1
    var count: UInt64 = 100
    var showsLog = false
    var jobs = 2
    var mesh: [Int] = []
    var wantsHelp = false

    static let help = """
        usage: soak [--seeds N] [--first N] [--seed N] [--log] [--jobs N] [--mesh N]

        Runs simulated worlds of sessions, each decided by one seed, and checks what must always hold.

          --seeds N   how many worlds (default 100)
          --first N   the first seed (default 1)
          --seed N    this one alone
          --log       print everything that happened, line by line; with --seed
          --jobs N    how many at a time (default 2)
          --mesh N    instead: N sessions, all connected to all; may be given several times

        The exit status is 0 when every rule held, 1 when one was broken, 2 when the call was wrong.
        """

    struct Misuse: Error {
        let words: String
    }

    init(_ arguments: [String]) throws(Misuse) {
        var rest = arguments[...]
        var isSingle = false
        while let argument = rest.popFirst() {
            switch argument {
            case "--help", "-h": wantsHelp = true
            case "--log": showsLog = true
            case "--seeds": count = try Self.number(argument, &rest, least: 1)
            case "--first": first = try Self.number(argument, &rest, least: 0)
            case "--seed":
                first = try Self.number(argument, &rest, least: 0)
                isSingle = true
            case "--jobs": jobs = Int(try Self.number(argument, &rest, least: 1, most: 64))
            case "--mesh": mesh.append(Int(try Self.number(argument, &rest, least: 2, most: 1_000)))
            default: throw Misuse(words: "unknown argument \"\(argument)\"")
            }
        }
        if isSingle { count = 1 }
        if showsLog, !isSingle { throw Misuse(words: "--log shows one world: name it with --seed") }
        if first.addingReportingOverflow(count).overflow {
            throw Misuse(words: "so many seeds there are not")
        }
    }

    private static func number(
        _ option: String, _ rest: inout ArraySlice<String>, least: UInt64, most: UInt64 = .max
    ) throws(Misuse) -> UInt64 {
        guard let text = rest.popFirst() else { throw Misuse(words: "\(option) needs a number") }
        guard let number = UInt64(text), number >= least, number <= most else {
            let range = most == .max ? "from \(least) on" : "from \(least) to \(most)"
            throw Misuse(words: "\(option) takes a number \(range), not \"\(text)\"")
        }
        return number
    }
}
