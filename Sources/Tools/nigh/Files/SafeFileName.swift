import Terminal

/// A name under which a stranger's file can be put into a folder: one component, visible, not too long, with nothing in it that
/// could lead elsewhere or do harm on a terminal.
struct SafeFileName: Hashable {
    /// As it stands in the folder.
    let text: String

    /// What the file's data lies under until all of it is there.
    var part: String { "\(text).part" }
    /// What says whose part that is.
    var note: String { "\(text).part.nigh" }

    /// Leaves room for a number, `.part.nigh` behind it, and the limit of file systems, which is 255.
    private static let longest = 200
    private static let longestExtension = 32

    private init(text: String) { self.text = text }

    /// The nearest to what a stranger calls it.
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
        // What begins with a dot is not seen, and may be what a program goes by.
        while kept.first == "." { kept.removeFirst() }
        if kept.isEmpty || kept.allSatisfy({ $0 == "_" }) { kept = "unnamed" }
        text = Self.unlikePart(Self.shortened(kept))
    }

    /// What a part or its note is called, no stranger's file is.
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

    /// The same with a number before its ending, as in `name (2).txt`; itself for the first.
    func numbered(_ number: Int) -> SafeFileName {
        guard number > 1 else { return self }
        let (stem, end) = Self.parts(of: text)
        return SafeFileName(text: "\(stem) (\(number))\(end)")
    }

    /// What somebody has chosen at this machine, who may choose what they like: the last component of `path`.
    init?(ofPath path: String) {
        guard let last = path.split(separator: "/", omittingEmptySubsequences: false).last, !last.isEmpty,
            last != ".", last != "..", last.utf8.count <= 240
        else { return nil }
        self.init(text: String(last))
    }
}
