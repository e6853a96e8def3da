/// The command-line options of `soak`.
struct Options {
    var first: UInt64 = 1
    var count: UInt64 = 100
    var showsLog = false
    var jobs = 2
    var mesh: [Int] = []
    /// The sizes of groups of a host and its guests.
    var groups: [Int] = []
    /// The sizes of crowds that one session sees.
    var crowds: [Int] = []
    /// The numbers of hosts whose mDNS records one browser sees.
    var hosts: [Int] = []
    /// Whether the worlds are those of meshes whose members introduce each other.
    var isMeshes = false
    var wantsHelp = false

    static let help = """
        usage: soak [--seeds N] [--first N] [--seed N] [--log] [--jobs N] [--meshes]
                    [--mesh N] [--group N] [--crowd N] [--hosts N]

        Runs simulated worlds of sessions, each decided by its seed, and checks the rules that always hold.

          --seeds N   the number of worlds (default 100)
          --first N   the first seed (default 1)
          --seed N    run only the world of this seed
          --log       print everything that happens, line by line; with --seed. Worlds of meshes have no such lines
          --jobs N    the number of worlds at a time (default 2)
          --meshes    worlds of meshes, whose members introduce each other and carry pipes for each other
          --mesh N    instead, connect N sessions, each to all others; may be repeated. With --meshes each newcomer calls
                      only the first, and the others introduce it
          --group N   instead, connect N sessions, a host and its guests, which are in one group; may be repeated
          --crowd N   instead, show N peers to one session, let them change and go, and send a message to N guests;
                      may be repeated
          --hosts N   instead, show the mDNS records of N hosts to one browser of tcp; may be repeated

        The exit status is 0 if every rule held, 1 if one was broken, 2 if an argument is wrong.
        """

    struct UsageError: Error {
        let message: String
    }

    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        var isSingle = false
        while let argument = rest.popFirst() {
            switch argument {
            case "--help", "-h": wantsHelp = true
            case "--log": showsLog = true
            case "--meshes": isMeshes = true
            case "--seeds": count = try Self.number(argument, &rest, least: 1)
            case "--first": first = try Self.number(argument, &rest, least: 0)
            case "--seed":
                first = try Self.number(argument, &rest, least: 0)
                isSingle = true
            case "--jobs": jobs = Int(try Self.number(argument, &rest, least: 1, most: 64))
            case "--mesh": mesh.append(Int(try Self.number(argument, &rest, least: 2, most: 1_000)))
            case "--group": groups.append(Int(try Self.number(argument, &rest, least: 2, most: 5_000)))
            case "--crowd": crowds.append(Int(try Self.number(argument, &rest, least: 1, most: 10_000_000)))
            case "--hosts": hosts.append(Int(try Self.number(argument, &rest, least: 1, most: 1_000_000)))
            default: throw UsageError(message: "unknown argument \"\(argument)\"")
            }
        }
        if isSingle { count = 1 }
        if showsLog, !isSingle { throw UsageError(message: "--log shows one world: choose it with --seed") }
        if first.addingReportingOverflow(count).overflow {
            throw UsageError(message: "--first and --seeds go beyond the largest seed")
        }
    }

    private static func number(
        _ option: String, _ rest: inout ArraySlice<String>, least: UInt64, most: UInt64 = .max
    ) throws(UsageError) -> UInt64 {
        guard let text = rest.popFirst() else { throw UsageError(message: "\(option) needs a number") }
        guard let number = UInt64(text), number >= least, number <= most else {
            let range = most == .max ? "of \(least) or more" : "from \(least) to \(most)"
            throw UsageError(message: "\(option) takes a number \(range), not \"\(text)\"")
        }
        return number
    }
}
