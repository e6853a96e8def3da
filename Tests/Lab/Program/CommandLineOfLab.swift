import Glibc

/// Parses the command line of `lab` and runs what it asks for.
enum CommandLineOfLab {
    static let help = """
        usage: lab [--list] [--keep] [--quiet] SCENARIO…
               lab --all [--quiet]
               lab peer --help
               lab machine --help

        Runs scenarios on real networks: several hosts on this machine, each a network namespace with interfaces of its
        own, joined by a bridge, some with a D-Bus and an Avahi daemon. All of it lies inside namespaces that end with
        this program, however it ends; nothing leaves them and nothing is left behind.

          --list    what scenarios there are
          --all     run them all, one after the other
          --keep    when the scenario is over, keep its network and open a shell in it; `on HOST COMMAND…` runs a
                    command on a host there. Without a terminal: keep it until the input ends
          --quiet   print nothing but how each scenario ended

        A scenario name may be given in part: `lab daemon` runs all that have "daemon" in their name.
        The exit status is 0 when all went as it should, 1 when something did not, 2 when the call was wrong, and
        3 when this machine does not let the lab have namespaces of its own.
        """

    /// Runs what `arguments` ask for; returns the exit status.
    static func run(_ arguments: [String]) -> Int32 {
        if arguments.first == CrowdProgram.name { return CrowdProgram.main() }
        if arguments.first == "peer" { return PeerProgram.main(Array(arguments.dropFirst())) }
        if arguments.first == "machine" { return MachineProgram.main(Array(arguments.dropFirst())) }
        if arguments.first == Enclosure.insideMark {
            return Enclosure.runInside(Array(arguments.dropFirst()))
        }
        var names: [String] = []
        var options = Enclosure.Options()
        for argument in arguments {
            switch argument {
            case "--help", "-h":
                print(help)
                return 0
            case "--list":
                let width = Scenario.all.map(\.name.count).max() ?? 0
                for scenario in Scenario.all {
                    let gap = String(repeating: " ", count: width - scenario.name.count)
                    print("\(scenario.name)\(gap)  \(scenario.summary)")
                }
                return 0
            case "--all": names += Scenario.all.map(\.name)
            case "--keep": options.keeps = true
            case "--quiet": options.isQuiet = true
            default:
                let matching = argument.hasPrefix("-") ? [] : Scenario.matching(argument)
                guard !matching.isEmpty else {
                    complain(
                        "there is no option or scenario \"\(argument)\"; `lab --list` names the scenarios")
                    return 2
                }
                names += matching.map(\.name)
            }
        }
        guard !names.isEmpty else {
            complain(help)
            return 2
        }
        return runAll(names, options)
    }

    private static func runAll(_ names: [String], _ options: Enclosure.Options) -> Int32 {
        var failed: [String] = []
        for name in names {
            let status = Enclosure.enter(scenario: name, options)
            if status == Enclosure.cannotEnter { return status }
            if status != 0 { failed.append(name) }
        }
        if names.count > 1 {
            print("\(names.count - failed.count) of \(names.count) scenarios went as they should.")
            if !failed.isEmpty { print("These did not: \(failed.joined(separator: ", ")).") }
        }
        return failed.isEmpty ? 0 : 1
    }

    /// Prints a line to standard error.
    static func complain(_ words: String) {
        let line = Array((words + "\n").utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }
}
