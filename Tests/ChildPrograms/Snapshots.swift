import Foundation

/// Texts that tests compare with files of this repository, so that a change of a text shows in its diff.
///
/// `NIGH_RENEW_SNAPSHOTS=1 make test TEST_ARGUMENTS="--filter NAME"` writes the files of the tests with that name anew.
package enum Snapshots {
    private static let isRenewal = ProcessInfo.processInfo.environment["NIGH_RENEW_SNAPSHOTS"] != nil

    /// Compares texts with the files in `folder` below Tests, which must be there under these names, and no others.
    /// Returns what differs.
    package static func differences(of texts: [String: String], from folder: String) throws -> [String] {
        let folder = "\(BuiltPackages.root)/Tests/\(folder)"
        if isRenewal {
            try? FileManager.default.removeItem(atPath: folder)
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            for (name, text) in texts { try Data(text.utf8).write(to: URL(filePath: "\(folder)/\(name)")) }
        }
        let known = try FileManager.default.contentsOfDirectory(atPath: folder)
        return try Set(known).union(texts.keys).sorted().filter { name in
            try texts[name]
                != (known.contains(name) ? String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8) : nil)
        }
    }

    /// Compares a text with the file at `path` below Tests. Returns what the text is and should be, if it differs.
    package static func difference(of text: String, from path: String) throws -> String? {
        let path = "\(BuiltPackages.root)/Tests/\(path)"
        if isRenewal { try Data(text.utf8).write(to: URL(filePath: path)) }
        let saved = try? String(contentsOfFile: path, encoding: .utf8)
        return text == saved ? nil : "it is\n\(text)\nand should be\n\(saved ?? "in a file")"
    }

    /// Compares what `answer` gives for each line of a file below Tests, up to ` => `, with the rest of the line.
    /// Returns the lines that would be right instead.
    package static func differences(inTable path: String, _ answer: (String) throws -> String) throws
        -> [String]
    {
        let path = "\(BuiltPackages.root)/Tests/\(path)"
        let rows = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
        let right = try rows.map { row in
            guard let question = row.components(separatedBy: " => ").first, !row.hasPrefix("#") else {
                return row
            }
            return try "\(question) => \(answer(question))"
        }
        if isRenewal { try Data(right.map { "\($0)\n" }.joined().utf8).write(to: URL(filePath: path)) }
        return isRenewal ? [] : zip(rows, right).filter { $0 != $1 }.map(\.1)
    }
}
