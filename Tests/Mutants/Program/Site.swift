/// A place in the sources, and the small change that is tried there.
struct Site: Equatable {
    /// A replacement of a range of the file's bytes. An empty range is an insertion.
    struct Edit: Equatable {
        let bytes: Range<Int>
        let text: String
        /// The length of what an insertion encloses. Of several insertions at one position, the longer ones are further
        /// out.
        var reach = 0
    }

    /// The kind of change.
    enum Kind: Equatable {
        /// An operator that is replaced by another one of the same precedence.
        case infix(String, String)
        /// A `!` that is left out.
        case not
        /// A number that is changed by this amount, 1 or -1.
        case integer(by: Int)
        /// A Boolean value that is negated.
        case truth
        /// `min` in place of `max`, or the other way round.
        case extreme(String)
        /// A statement that is left out.
        case statement
    }

    let file: String
    let line: Int
    /// The source line, without the white space around it.
    let source: String
    let kind: Kind
    /// Describes the change to a person.
    let change: String
    /// Makes the edits for the number that switches the change on.
    let edits: @Sendable (Int) -> [Edit]

    /// Stays the same as long as neither the line nor the name of its file changes.
    var key: String { "\(file)\n\(source)\n\(change)" }

    /// The position in the order that the seed decides. It depends only on the place itself, so a change of the sources
    /// leaves the other mutants of a run as they are.
    func rank(seed: UInt64) -> UInt64 {
        let hash = key.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return Self.mixed(hash &+ seed)
    }

    /// The first number of a SplitMix64 generator.
    private static func mixed(_ seed: UInt64) -> UInt64 {
        var bits = seed &+ 0x9E37_79B9_7F4A_7C15
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }

    static func == (left: Site, right: Site) -> Bool { left.key == right.key && left.line == right.line }
}
