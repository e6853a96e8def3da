/// A name and the number that was put behind it because somebody else has the name: "Puma", "Puma #2", "Puma #3".
package struct NumberedName {
    /// What comes before the number.
    package let stem: Substring
    /// The number; 1 for a name without one.
    package let number: Int

    /// Numbers stay below this; what looks like a higher one is part of the name.
    package static let upperBound = 1_000_000

    /// Takes `name` apart.
    package init(_ name: String) {
        if let mark = name.lastIndex(of: "#"), name[..<mark].hasSuffix(" ") {
            let digits = name[name.index(after: mark)...]
            if digits.first != "0", digits.allSatisfy(\.isASCII), let number = Int(digits), number > 0,
                number < Self.upperBound
            {
                stem = name[..<mark].dropLast()
                self.number = number
                return
            }
        }
        stem = Substring(name)
        number = 1
    }

    /// The name with the next number, in at most `limit` bytes.
    package func next(limit: Int) -> String {
        let suffix = " #\(number + 1)"
        var kept = stem
        while kept.utf8.count + suffix.utf8.count > limit { kept.removeLast() }
        return kept + suffix
    }
}
