import ChildPrograms
import Foundation
import Testing

/// A text that a test compares with a file in the folder Snapshots.
///
/// After a change that is meant, run the tests once with `NIGH_RENEW_SNAPSHOTS=1`: they write the files instead. Then
/// review the difference with `git diff`.
struct Snapshot {
    private static let folder = "\(BuiltPackages.root)/Tests/FourInARowProgram/Snapshots"
    private static let renews = ProcessInfo.processInfo.environment["NIGH_RENEW_SNAPSHOTS"] == "1"

    let name: String

    /// Expects that the file has this text.
    func expect(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let path = "\(Self.folder)/\(name).txt"
        if Self.renews { return try "\(text)\n".write(toFile: path, atomically: true, encoding: .utf8) }
        let saved = try? String(contentsOfFile: path, encoding: .utf8)
        guard saved != "\(text)\n" else { return }
        Issue.record(
            "\(name) is\n\(text)\nand should be\n\(saved ?? "in a file")", sourceLocation: sourceLocation)
    }
}
