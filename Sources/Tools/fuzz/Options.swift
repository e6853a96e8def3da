/// The command-line options of `fuzz`.
struct Options {
    var inputs = 1_000_000
    var seed: UInt64 = 1
    var targets = Target.allCases
    /// The seed of the one input to run.
    var one: UInt64?
    var wantsHelp = false

    struct UsageError: Error {
        let message: String
    }

    init() {}

    init(_ arguments: ArraySlice<String>) throws(UsageError) {
        var rest = arguments
        while let flag = rest.popFirst() {
            switch flag {
            case "--inputs": inputs = Int(clamping: try Self.number(of: flag, &rest))
            case "--seed": seed = try Self.number(of: flag, &rest)
            case "--one": one = try Self.number(of: flag, &rest)
            case "--target":
                guard let name = rest.popFirst(), let target = Target(rawValue: name) else {
                    let names = Target.allCases.map(\.rawValue).joined(separator: ", ")
                    throw UsageError(message: "--target takes one of \(names)")
                }
                targets = [target]
            case "--help", "-h": wantsHelp = true
            default: throw UsageError(message: "unknown argument \"\(flag)\"")
            }
        }
    }

    private static func number(of flag: String, _ rest: inout ArraySlice<String>) throws(UsageError) -> UInt64
    {
        guard let text = rest.popFirst(), let number = UInt64(text) else {
            throw UsageError(message: "\(flag) takes a whole number")
        }
        return number
    }

    private static let targetNames = Target.allCases.map(\.rawValue).joined(separator: ", ")

    static let help = """
        usage: fuzz [--inputs N] [--seed N] [--target NAME]
               fuzz --one SEED [--target ...]

        Feeds changed input to the parts of Nigh that read from strangers. The input was valid once: what real sessions sent
        to each other, and what a network announces. Bits, numbers, lengths, types, frames, records and events are changed.

          --inputs N     the number of inputs, over all targets together (1000000)
          --seed N       the seed of the first input; each further input has the next seed (1)
          --target NAME  one of \(targetNames); by default all, one after another
          --one SEED     run only the input with this seed, which a finding names

        A finding, or a trap, names the target and the seed of its input. The exit status is 1 then.

        """
}
