/// Finds the word that a user probably meant.
public enum SpellingSuggestion {
    /// Returns the word that is so close to `typed` that it was probably meant, whatever the case of its letters; nil
    /// if there is none.
    public static func closest(to typed: String, among words: [String]) -> String? {
        let mistakes = max(1, typed.count / 3)
        let lowercased = typed.lowercased()
        let rated = words.map { (word: $0, distance: distance(lowercased, $0.lowercased())) }
        guard let best = rated.min(by: { $0.distance < $1.distance }), best.distance <= mistakes,
            best.distance < best.word.count
        else { return nil }
        return best.word
    }

    /// Returns the number of characters that were left out, added, changed, or swapped with their neighbor.
    static func distance(_ one: String, _ other: String) -> Int {
        // No typing error is that long, and the work grows with the square of the length.
        let (one, other) = (Array(one.prefix(64)), Array(other.prefix(64)))
        var beforeLast: [Int] = []
        var last = Array(0...other.count)
        for (row, character) in one.enumerated() {
            var current = [row + 1]
            for (column, candidate) in other.enumerated() {
                var cost = min(
                    last[column] + (character == candidate ? 0 : 1), last[column + 1] + 1, current[column] + 1
                )
                if row > 0, column > 0, character == other[column - 1], one[row - 1] == candidate {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            (beforeLast, last) = (last, current)
        }
        return last[other.count]
    }
}
