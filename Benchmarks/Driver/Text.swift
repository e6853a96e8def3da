/// Numbers as people read them.
enum Text {
    static func size(_ bytes: Int) -> String {
        switch bytes {
        case (1 << 20)... where bytes % (1 << 20) == 0: "\(bytes >> 20) MiB"
        case (1 << 10)... where bytes % (1 << 10) == 0: "\(bytes >> 10) KiB"
        default: "\(bytes) B"
        }
    }

    static func grouped(_ number: Int) -> String {
        number < 1_000 ? "\(number)" : "\(grouped(number / 1_000)),\(padded(number % 1_000, 3))"
    }

    /// Three digits that count, and a unit for large numbers.
    static func number(_ value: Double) -> String {
        switch value {
        case 1e7...: "\(fixed(value / 1e6, 1)) M"
        case 1e6...: "\(fixed(value / 1e6, 2)) M"
        case 1e4...: "\(fixed(value / 1e3, 0)) k"
        case 100...: fixed(value, 0)
        case 10...: fixed(value, 1)
        default: fixed(value, 2)
        }
    }

    static func ratio(_ value: Double) -> String {
        value >= 0.1 ? fixed(value, 2) : value >= 0.01 ? fixed(value, 3) : fixed(value, 4)
    }

    static func fixed(_ value: Double, _ digits: Int) -> String {
        var scale = 1
        for _ in 0..<digits { scale *= 10 }
        let scaled = Int((value * Double(scale)).rounded())
        return digits == 0 ? "\(scaled)" : "\(scaled / scale).\(padded(scaled % scale, digits))"
    }

    private static func padded(_ number: Int, _ digits: Int) -> String {
        let text = "\(number)"
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}
