/// The command-line options of `fuzz`.
struct Options {
    var inputs = 1_000_000
    var seed: UInt64 = 1
    var targets = Target.allCases
    /// The seed of the one input to run.
    var one: UInt64?
    var wantsHelp = false

    struct Unusable: Error {
        let words: String
    }

    init() {}

    init(_ arguments: ArraySlice<String>) throws(Unusable) {
        var rest = arguments
        while let flag = rest.popFirst() {
            switch flag {
            case "--inputs": inputs = Int(clamping: try Self.number(of: flag, &rest))
            case "--seed": seed = try Self.number(of: flag, &rest)
            case "--one": one = try Self.number(of: flag, &rest)
            case "--target":
                guard let name = rest.popFirst(), let target = Target(rawValue: name) else {
                    let names = Target.allCases.map(\.rawValue).joined(separator: ", ")
                    throw Unusable(words: "--target takes one of \(names)")
                }
                targets = [target]
            case "--help", "-h": wantsHelp = true
            default: throw Unusable(words: "unknown argument \"\(flag)\"")
            }
        }
    }

    private static func number(of flag: String, _ rest: inout ArraySlice<String>) throws(Unusable) -> UInt64 {
        guard let text = rest.popFirst(), let number = UInt64(text) else {
            throw Unusable(words: "\(flag) takes a whole number")
        }
        return number
    }

    private static let targetNames = Target.allCases.map(\.rawValue).joined(separator: ", ")

    static let help = """
        usage: fuzz [--inputs N] [--seed N] [--target NAME]
               fuzz --one SEED [--target ...]

        Feeds the parts of Nigh that read from strangers with nonsense that was valid once: what real sessions said to
        each other, and what a network announces, with bits, numbers, lengths, types, frames, records and whole events changed.

          --inputs N     how many inputs, over all targets together (1000000)
          --seed N       where the inputs begin; each has a seed of its own, counted from here (1)
          --target NAME  one of \(targetNames); else all, one after another
          --one SEED     that one input, as a finding names it

        A finding, or a trap, names the target and the seed of its input. The exit status is 1 then.

        """
}
