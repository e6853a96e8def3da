import CQRCode

/// A QR code of some text, and its picture in characters.
public struct QRCode: Sendable {
    /// How many modules each side has, without the margin.
    public let size: Int
    private let modules: [Bool]

    /// Makes the smallest code of `text` from which 7 % may be missing. Returns nil if there is none: the text is too
    /// long, or memory has run out.
    public init?(_ text: String) {
        guard let code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_L) else { return nil }
        defer { QRcode_free(code) }
        size = Int(code.pointee.width)
        modules = (0..<size * size).map { code.pointee.data[$0] & 1 != 0 }
    }

    /// Whether the module in a row and column is dark. Those outside are light.
    public func isDark(_ row: Int, _ column: Int) -> Bool {
        guard (0..<size).contains(row), (0..<size).contains(column) else { return false }
        return modules[row * size + column]
    }

    /// The light margin that readers need around a code.
    public static let margin = 2

    /// The number of columns of the picture.
    public var columns: Int { size + 2 * Self.margin }

    /// The picture, two rows of modules in a line. Light modules are drawn, so it is for white on black.
    public var lines: [String] {
        let rows = -Self.margin..<size + Self.margin
        return stride(from: rows.lowerBound, to: rows.upperBound, by: 2).map { row in
            (-Self.margin..<size + Self.margin).map { column in
                // Below the last row, the margin is wider: half a line of black would stand out on white.
                switch (!isDark(row, column), !isDark(row + 1, column)) {
                case (true, true): "█"
                case (true, false): "▀"
                case (false, true): "▄"
                case (false, false): " "
                }
            }.joined()
        }
    }
}
