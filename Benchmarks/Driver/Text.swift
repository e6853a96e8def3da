import Measuring

/// Formats numbers for people.
enum Text {
    static func grouped(_ number: Int) -> String {
        number < 1_000 ? "\(number)" : "\(grouped(number / 1_000)),\("\(1_000 + number % 1_000)".dropFirst())"
    }

    /// Returns three significant digits, with a unit for large numbers.
    static func number(_ value: Double) -> String {
        switch value {
        case 1e6...: "\(Figures.fixed(value / 1e6, decimals: value < 1e7 ? 2 : 1)) M"
        case 1e4...: "\(Figures.fixed(value / 1e3, decimals: 0)) k"
        default: Figures.fixed(value, decimals: value < 10 ? 2 : value < 100 ? 1 : 0)
        }
    }

    static func ratio(_ value: Double) -> String {
        Figures.fixed(value, decimals: value >= 0.1 ? 2 : value >= 0.01 ? 3 : 4)
    }
}
