/// Counts by label. The labels are so few that looking at each is faster than hashing one.
struct LabelCounts {
    private struct Entry {
        let label: String
        var count: Int
    }

    private var entries: [Entry] = []

    /// Adds one to the count of `label`.
    mutating func add(_ label: String) {
        if let index = entries.firstIndex(where: { $0.label == label }) {
            entries[index].count += 1
        } else {
            entries.append(Entry(label: label, count: 1))
        }
    }

    /// The counts as programs see them.
    var byLabel: [String: Int] { Dictionary(uniqueKeysWithValues: entries.map { ($0.label, $0.count) }) }
}
