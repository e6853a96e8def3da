import ChildPrograms

extension Child {
    /// Waits for a line of standard output that is `text` and nothing else, after the first `count` lines.
    func line(exactly text: String, after count: Int) throws {
        var occurrence = lines.prefix(count).count { $0.contains(text) } + 1
        while try line(with: text, occurrence: occurrence) != text { occurrence += 1 }
    }
}
