/// The options of the command line.
struct Options {
    var seed: UInt64 = 1
    var count = 220
    /// The numbers of the mutants to try. Empty means all.
    var only: Set<Int> = []
    var worlds = 100
    /// The minimum share of the mutants with an effect that must be caught, in percent.
    var least = 90
    var isListing = false
    var wantsHelp = false

    struct Unusable: Error {
        let words: String
    }

    init() {}

    init(_ arguments: ArraySlice<String>) throws(Unusable) {
        var rest = arguments
        while let flag = rest.popFirst() {
            switch flag {
            case "--seed": seed = UInt64(try Self.number(of: flag, &rest, 0...Int.max))
            case "--count": count = try Self.number(of: flag, &rest, 1...100_000)
            case "--worlds": worlds = try Self.number(of: flag, &rest, 1...100_000)
            case "--least": least = try Self.number(of: flag, &rest, 0...100)
            case "--only": only.insert(try Self.number(of: flag, &rest, 1...100_000))
            case "--list": isListing = true
            case "--help", "-h": wantsHelp = true
            default: throw Unusable(words: "unknown argument \"\(flag)\"")
            }
        }
        if let largest = only.max(), largest > count {
            throw Unusable(words: "there is no mutant \(largest) among \(count)")
        }
    }

    private static func number(
        of flag: String, _ rest: inout ArraySlice<String>, _ allowed: ClosedRange<Int>
    ) throws(Unusable) -> Int {
        guard let text = rest.popFirst(), let number = Int(text), allowed.contains(number) else {
            throw Unusable(
                words: "\(flag) takes a number from \(allowed.lowerBound) to \(allowed.upperBound)")
        }
        return number
    }

    static let help = """
        usage: mutants [--seed N] [--count N] [--worlds N] [--least PERCENT]
               mutants --only NUMBER [--only NUMBER ...] [--seed N] [--count N]
               mutants --list [--seed N] [--count N]

        Changes Core's machines in one small place at a time, and looks whether a test or a simulated world notices.

          --seed N         which places are changed (1)
          --count N        how many (220)
          --only NUMBER    try this one of them
          --worlds N       worlds for a mutant that no unit test catches (100)
          --least PERCENT  how many of those with an effect must be caught (90)
          --list           show the mutants, try none

        Run it in the package's folder. The exit status is 0 when enough were caught, 1 when too few were, 2 when the call
        was wrong or nothing could be tried.

        """
}
