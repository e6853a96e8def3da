/// What the command line asks for.
struct Options {
    var seconds = 0.5
    /// Nil measures each scenario in the sizes it stands for best.
    var sizes: [Int]?
    /// Names of scenarios; empty means all.
    var only: [String] = []
    var asJSON = false
    /// Count allocations and compare them with the limits instead of taking the time.
    var checksAllocations = false
    var wantsHelp = false

    struct Unusable: Error {
        let words: String
    }

    init(_ arguments: ArraySlice<String>) throws(Unusable) {
        var rest = arguments
        while let flag = rest.popFirst() {
            switch flag {
            case "--seconds":
                let text = try Self.value(of: flag, &rest)
                guard let seconds = Double(text), seconds > 0, seconds <= 3_600 else {
                    throw Unusable(words: "--seconds takes a number above 0, not \"\(text)\"")
                }
                self.seconds = seconds
            case "--size":
                var sizes: [Int] = []
                for text in try Self.value(of: flag, &rest).split(separator: ",") {
                    sizes.append(try Self.size(text))
                }
                self.sizes = sizes
            case "--only": only += try Self.value(of: flag, &rest).split(separator: ",").map(String.init)
            case "--json": asJSON = true
            case "--allocations": checksAllocations = true
            case "--help", "-h": wantsHelp = true
            default: throw Unusable(words: "unknown argument \"\(flag)\"")
            }
        }
        let known = Set(Scenario.all.map(\.name))
        for name in only where !known.contains(name) {
            throw Unusable(
                words: "no scenario \"\(name)\"; there are \(known.sorted().joined(separator: ", "))")
        }
    }

    private static func value(of flag: String, _ rest: inout ArraySlice<String>) throws(Unusable) -> String {
        guard let value = rest.popFirst() else { throw Unusable(words: "\(flag) needs a value") }
        return value
    }

    private static func size(_ text: Substring) throws(Unusable) -> Int {
        let unit = text.hasSuffix("K") ? 1 << 10 : text.hasSuffix("M") ? 1 << 20 : 1
        guard let count = Int(unit == 1 ? text : text.dropLast()), count > 0, count <= (16 << 20) / unit
        else {
            throw Unusable(words: "--size takes 1 to 16M bytes, such as 64, 64K or 1M, not \"\(text)\"")
        }
        return count * unit
    }

    static let help = """
        usage: nigh-bench [--seconds N] [--size 64,64K,...] [--only NAME,...] [--json]
               nigh-bench --allocations [--only NAME,...]

        Sends messages through sessions of one process over the memory transport and says what that costs.

          --seconds N    how long each line is measured, after a warm-up (0.5)
          --size LIST    message sizes in bytes, K and M allowed; else those that suit each scenario
          --only LIST    some of the scenarios
          --json         one JSON object a line instead of a table
          --allocations  count heap allocations in the steady state, and fail where a limit is exceeded

        """
}
