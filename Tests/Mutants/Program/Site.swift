import NighCore

/// A place in the sources and the small change that is tried there.
struct Site: Equatable {
    /// The text that is put in place of a range of the file's bytes; an empty range is an insertion.
    struct Edit: Equatable {
        let bytes: Range<Int>
        let text: String
        /// Insertions at the same place: those that enclose more stand further out.
        var reach = 0
    }

    /// What the rewritten place calls.
    enum Kind: Equatable {
        /// An operator token that another takes the place of; both of the same precedence.
        case infix(String, String)
        /// A `!` that is left out.
        case not
        /// A number that is one more, or one less.
        case integer(by: Int)
        /// A truth value that is the other one.
        case truth
        /// The smaller for the greater, or the other way round.
        case extreme(String)
        /// A statement that is not carried out.
        case statement
    }

    let file: String
    let line: Int
    /// The line as it stands in the file, without the space around it.
    let source: String
    let kind: Kind
    /// What is changed, for a person.
    let change: String
    /// Makes the edits for the number by which the change is switched on.
    let edits: @Sendable (Int) -> [Edit]

    /// The same as long as neither the line nor its file's name change.
    var key: String { "\(file)\n\(source)\n\(change)" }

    /// Its place in the order that the seed decides. It depends on nothing but the place itself, so that a change of the sources
    /// leaves the other mutants of a run as they are.
    func rank(seed: UInt64) -> UInt64 {
        let hash = key.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        var generator = SeededGenerator(seed: hash &+ seed)
        return generator.next()
    }

    static func == (left: Site, right: Site) -> Bool { left.key == right.key && left.line == right.line }
}
