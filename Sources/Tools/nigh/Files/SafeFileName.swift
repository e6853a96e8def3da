import Terminal

/// A safe name in a folder for a file that a peer has named: one component, visible, not too long, and with nothing in
/// it that could lead elsewhere or do harm on a terminal.
struct SafeFileName: Hashable {
    /// The name in the folder.
    let text: String

    /// The name of the file's data until the file is complete.
    var part: String { "\(text).part" }
    /// The name of the note that says whose part that is.
    var note: String { "\(text).part.nigh" }

    /// Leaves room for a number and `.part.nigh` within the limit of file systems, which is 255 bytes.
    private static let longest = 200
    private static let longestExtension = 32

    private init(text: String) { self.text = text }

    /// Creates the safe name that is closest to what the peer calls the file.
    init(_ announced: String) {
        let last = announced.split(separator: "/").last.map(String.init) ?? ""
        var kept = ""
        for scalar in last.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
                kept += "_"
            default: kept.unicodeScalars.append(scalar == "\\" ? "_" : scalar)
            }
        }
        while let first = kept.first, first.isWhitespace { kept.removeFirst() }
        while let last = kept.last, last.isWhitespace { kept.removeLast() }
        // A file that begins with a dot is hidden, and may be the configuration of a program.
        while kept.first == "." { kept.removeFirst() }
        if kept.isEmpty || kept.allSatisfy({ $0 == "_" }) { kept = "unnamed" }
        text = Self.unlikePart(Self.shortened(kept))
    }

    /// No received file may be named like a part or its note.
    private static func unlikePart(_ text: String) -> String {
        let end = text.lowercased()
        return end.hasSuffix(".part") || end.hasSuffix(".part.nigh") ? "\(text)_" : text
    }

    private static func shortened(_ text: String) -> String {
        guard text.utf8.count > longest else { return text }
        var (stem, end) = parts(of: text)
        if end.utf8.count > longestExtension { (stem, end) = (text, "") }
        while stem.utf8.count + end.utf8.count > longest { stem.removeLast() }
        return stem + end
    }

    private static func parts(of text: String) -> (stem: String, end: String) {
        guard let dot = text.lastIndex(of: "."), dot > text.startIndex else { return (text, "") }
        return (String(text[..<dot]), String(text[dot...]))
    }

    /// Returns the name with a number before its extension, for example `name (2).txt`; unchanged for 1.
    func numbered(_ number: Int) -> SafeFileName {
        guard number > 1 else { return self }
        let (stem, end) = Self.parts(of: text)
        return SafeFileName(text: "\(stem) (\(number))\(end)")
    }

    /// Creates a name from the last component of `path`, which the user chose. The user may choose any name.
    init?(ofPath path: String) {
        guard let last = path.split(separator: "/", omittingEmptySubsequences: false).last, !last.isEmpty,
            last != ".", last != "..", last.utf8.count <= 240
        else { return nil }
        self.init(text: String(last))
    }
}
