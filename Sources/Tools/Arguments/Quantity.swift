/// Numbers with a unit, such as `64KiB`: exact, without floating point.
struct Quantity: Sendable {
    struct Unit: Sendable {
        let name: String
        let factor: Int
        /// Whether output may be in this unit.
        var isShown = true
    }

    /// The units. Those that output may use are in order, from the smallest to the largest.
    let units: [Unit]

    /// Returns the value in the smallest unit. Returns nil if `text` is no number with one of these units, is not whole
    /// in the smallest unit, or is too large.
    func read(_ text: String) -> Int? {
        let whole = text.prefix(while: Self.isDigit)
        var rest = text[whole.endIndex...]
        var fraction = rest.prefix(0)
        if rest.first == "." {
            fraction = rest.dropFirst().prefix(while: Self.isDigit)
            guard !fraction.isEmpty else { return nil }
            rest = rest[fraction.endIndex...]
        }
        guard !whole.isEmpty, let unit = units.first(where: { $0.name == rest }) else { return nil }
        // Trailing zeros change nothing, but could make the number too large.
        while fraction.last == "0" { fraction.removeLast() }
        guard let number = Int(whole + fraction) else { return nil }
        let (product, overflows) = number.multipliedReportingOverflow(by: unit.factor)
        guard !overflows else { return nil }
        var value = product
        for _ in fraction {
            guard value.isMultiple(of: 10) else { return nil }
            value /= 10
        }
        return value
    }

    /// Returns the value in the largest unit in which it is whole.
    func write(_ value: Int) -> String {
        let shown = units.filter(\.isShown)
        let unit = shown.last { value != 0 && value.isMultiple(of: $0.factor) } ?? shown.first
        return unit.map { "\(value / $0.factor)\($0.name)" } ?? "\(value)"
    }

    private static func isDigit(_ character: Character) -> Bool { ("0"..."9").contains(character) }
}
