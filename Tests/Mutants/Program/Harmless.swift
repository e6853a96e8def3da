/// The mutants that are argued to have no visible effect. The text has one block of lines per mutant, followed by an
/// empty line: the file, the source line, the change, and then the reason.
struct Harmless {
    private(set) var reasons: [String: String] = [:]

    static let file = "Tests/Mutants/harmless.txt"

    init(_ text: String) throws {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for block in lines.split(whereSeparator: { $0.isEmpty }) {
            let parts = block.filter { !$0.hasPrefix("#") }
            guard !parts.isEmpty else { continue }
            guard parts.count > 3 else {
                throw Folder.Failure(
                    description: "\(Self.file): an entry without a reason: \(parts[parts.startIndex])")
            }
            let parted = Array(parts)
            let key = parted[0..<3].joined(separator: "\n")
            reasons[key] = parted[3...].joined(separator: " ")
        }
    }

    func reason(for site: Site) -> String? { reasons[site.key] }
}
