/// A safe name in a folder for a file that a peer has named: one component, visible, not too long, and with nothing in
/// it that could lead elsewhere or do harm on a terminal.
package struct SafeFileName: Hashable {
    /// The name in the folder.
    package let text: String

    /// The name of the folder for the incomplete file or folder.
    package var part: String { "\(text).part" }

    /// Leaves room for a number and `.part` within the limit of file systems, which is 255 bytes.
    private static let longest = 200
    private static let longestExtension = 32
    /// The numbers that are tried for a name that is taken.
    static let numbers = 1...999

    private init(text: String) { self.text = text }

    /// Keeps a name that is in the folder already.
    init(keeping text: String) { self.text = text }

    /// Creates the safe name that is closest to the peer's name for the file.
    ///
    /// - Parameter mayBeHidden: whether a dot at the front stays: in a folder that was made for the peer's files, it
    ///   hides nothing of the user's, and the folder would not be complete without it.
    package init(_ announced: String, mayBeHidden: Bool = false) {
        let last = announced.pathComponents.last ?? ""
        var kept = ""
        for scalar in last.unicodeScalars {
            kept.unicodeScalars.append(scalar.isInvisible || scalar == "\\" ? "_" : scalar)
        }
        while let first = kept.first, first.isWhitespace { kept.removeFirst() }
        while let last = kept.last, last.isWhitespace { kept.removeLast() }
        // A file that begins with a dot is hidden, and may be the configuration of a program.
        let isHidden = mayBeHidden && kept.unicodeScalars.first == "."
        while kept.unicodeScalars.first == "." { kept.unicodeScalars.removeFirst() }
        if kept.isEmpty || kept.allSatisfy({ $0 == "_" }) {
            kept = "unnamed"
        } else if isHidden {
            kept = ".\(kept)"
        }
        text = Self.unlikePart(Self.shortened(kept))
    }

    /// No received file may be named like a part, or like the note that earlier versions kept beside it.
    private static func unlikePart(_ text: String) -> String {
        let end = text.lowercased()
        return end.hasSuffix(".part") || end.hasSuffix(".part.nigh") ? "\(text)_" : text
    }

    private static func shortened(_ text: String) -> String {
        guard text.utf8.count > longest else { return text }
        var (stem, end) = parts(of: text)
        if end.utf8.count > longestExtension { (stem, end) = (text, "") }
        while stem.utf8.count + end.utf8.count > longest { stem.unicodeScalars.removeLast() }
        return stem + end
    }

    private static func parts(of text: String) -> (stem: String, end: String) {
        guard let dot = text.lastIndex(of: "."), dot > text.startIndex else { return (text, "") }
        return (String(text[..<dot]), String(text[dot...]))
    }

    /// Returns the name with a number before its extension, for example `name (2).txt`; unchanged for 1.
    package func numbered(_ number: Int) -> SafeFileName {
        guard number > 1 else { return self }
        let (stem, end) = Self.parts(of: text)
        return SafeFileName(text: "\(stem) (\(number))\(end)")
    }

    /// Returns the name and the number, from 2 on, that `numbered` has made the text of; nil if it has not.
    static func unnumbered(_ text: String) -> (base: String, number: Int)? {
        let (stem, end) = parts(of: text)
        guard stem.last == ")", let bracket = stem.lastIndex(of: "("),
            let number = Int(stem[stem.index(after: bracket)...].dropLast()), numbers.contains(number)
        else { return nil }
        let base = SafeFileName(text: stem[..<bracket].dropLast() + end)
        return number > 1 && base.numbered(number).text == text ? (base.text, number) : nil
    }

    /// Creates a name from the last component of `path`, which the user chose. The user may choose any name.
    package init?(ofPath path: String) {
        guard path.utf8.last != UInt8(ascii: "/"), let last = path.pathComponents.last, last != ".",
            last != "..", last.utf8.count <= 240
        else { return nil }
        self.init(text: last)
    }
}

extension Unicode.Scalar {
    /// Whether it shows nothing, or does something on a terminal.
    package var isInvisible: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
            true
        default: false
        }
    }
}

extension String {
    /// The names in a path. A "/" separates them even with a combining character behind it, which makes another
    /// `Character` of it but not another byte for the file system.
    package var pathComponents: [String] {
        utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }
    }
}
