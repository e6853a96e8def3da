/// A name and the number appended to it because another peer has the same name: "Puma", "Puma #2", "Puma #3".
package struct NumberedName {
    /// The part before the number.
    package let stem: Substring
    /// The number, or 1 for a name without a number.
    package let number: Int

    /// All numbers are below this bound. A higher number is part of the name.
    package static let upperBound = 1_000_000

    /// Splits `name` into stem and number.
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

    /// Returns the name with the next number, in at most `limit` bytes.
    package func next(limit: Int) -> String {
        let suffix = " #\(number + 1)"
        var kept = stem
        while kept.utf8.count + suffix.utf8.count > limit { kept.removeLast() }
        return kept + suffix
    }
}

extension DisplayName {
    /// The name with the next number, for a second session of the same name.
    var withNextNumber: DisplayName {
        DisplayName(fitting: NumberedName(description).next(limit: Self.maximumByteCount))
    }

    /// The name without its number.
    var withoutNumber: DisplayName { DisplayName(exactly: String(NumberedName(description).stem)) ?? self }
}
