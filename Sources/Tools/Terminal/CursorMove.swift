/// The sequences that move a terminal's cursor from one cell to another.
enum CursorMove {
    /// Returns the shortest sequence. `start` is nil if it is not known where the cursor is.
    static func shortest(from start: CellPosition?, to target: CellPosition) -> [UInt8] {
        let home = target.column == 0 && target.row == 0
        var best = home ? "\u{1B}[H" : "\u{1B}[\(target.row + 1);\(target.column + 1)H"
        if target.column == 0, !home { best = "\u{1B}[\(target.row + 1)H" }
        guard let start else { return Array(best.utf8) }
        for candidate in candidates(from: start, to: target) where candidate.utf8.count < best.utf8.count {
            best = candidate
        }
        return Array(best.utf8)
    }

    private static func candidates(from start: CellPosition, to target: CellPosition) -> [String] {
        let (right, down) = (target.column - start.column, target.row - start.row)
        if down == 0 {
            let step = right > 0 ? "\u{1B}[\(count(right))C" : "\u{1B}[\(count(-right))D"
            return target.column == 0 ? ["\r"] : [step]
        }
        let vertical = down > 0 ? "\u{1B}[\(count(down))B" : "\u{1B}[\(count(-down))A"
        if right == 0 { return [vertical] }
        guard target.column == 0 else { return [] }
        return [vertical + "\r"] + (0 < down && down < 5 ? ["\r" + String(repeating: "\n", count: down)] : [])
    }

    private static func count(_ count: Int) -> String { count == 1 ? "" : String(count) }
}
