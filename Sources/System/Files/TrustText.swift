import NighCore

/// The text form of a trust store: writes and parses it without touching a file.
package enum TrustText {
    /// Why a text is not a valid trust store.
    package struct Fault: Error, Equatable {
        package let reason: String
        package let advice: String
    }

    private static let mark = "nigh-peers"
    private static let version = 1
    private static let heading = """
        \(mark) \(version)
        # The peers that this user's programs have met over encrypted links, one per line: paired or known, PeerID,
        # the day it was paired or first met, the day it was last seen (UTC), and its display name. Lines that begin
        # with a number sign are kept as they are.

        """

    // MARK: Writing

    /// Returns the text for `book`, with a line break at its end.
    package static func text(of book: TrustBook) -> String {
        var lines = book.comments
        for (id, entry) in book.entries {
            let kind = entry.isPaired ? "paired" : "known"
            let note = entry.comment.isEmpty ? "" : "  \(entry.comment)"
            lines.append(
                (entry.place, "\(kind) \(id) \(entry.since) \(entry.lastSeen) \(quoted(entry.name))\(note)"))
        }
        lines.sort { $0.place < $1.place }
        // If the book was read from a file, the heading is among its comments.
        return lines.reduce(into: book.comments.isEmpty ? heading : "") { $0 += $1.text + "\n" }
    }

    /// Returns the name in quotation marks. Characters that could be confused, are invisible, or change the direction
    /// of the line are written as numbers.
    private static func quoted(_ name: DisplayName) -> String {
        var text = "\""
        var isFirst = true
        for scalar in name.description.unicodeScalars {
            switch scalar {
            case "\"", "\\": text += "\\\(scalar)"
            case " ": text += " "
            case _ where isUnclear(scalar) || isFirst && scalar.properties.isGraphemeExtend:
                text += "\\u{\(String(scalar.value, radix: 16))}"
            default: text.unicodeScalars.append(scalar)
            }
            isFirst = false
        }
        return text + "\""
    }

    private static func isUnclear(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator, .privateUse,
            .unassigned,
            .surrogate:
            true
        default: false
        }
    }

    // MARK: Reading

    /// Parses `text`.
    package static func book(of text: String) throws(Fault) -> TrustBook {
        var parser = Parser()
        for line in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            try parser.read(line)
        }
        return try parser.finish()
    }

    /// Parses the lines one by one.
    private struct Parser {
        private var book = TrustBook()
        private var number = 0
        private var hasHeading = false
        private var lines: [PeerID: Int] = [:]
        /// The number of empty lines since the last other line. They count only if something follows, because the last
        /// line break also makes an empty line.
        private var emptyLines = 0

        /// Parses the next line, without its line break.
        mutating func read(_ line: Substring.UTF8View) throws(Fault) {
            number += 1
            var words = Words(line)
            guard !words.isAtEnd else {
                emptyLines += 1
                return
            }
            for _ in 0..<emptyLines { book.append(comment: "") }
            emptyLines = 0
            if words.isAtComment {
                book.append(comment: words.rest)
            } else if hasHeading {
                try readPeer(&words)
            } else {
                try readHeading(&words)
                book.append(comment: "\(mark) \(version)")
                hasHeading = true
            }
        }

        /// Returns all that was read.
        func finish() throws(Fault) -> TrustBook {
            guard hasHeading else {
                throw Fault(
                    reason: "it does not begin with \"\(mark) \(version)\"",
                    advice: "name another file, or remove it to begin anew")
            }
            return book
        }

        private func readHeading(_ words: inout Words) throws(Fault) {
            guard words.next() == mark, let word = words.next(), let version = Int(word), words.isAtEnd else {
                throw Fault(
                    reason: "it does not begin with \"\(mark) \(TrustText.version)\"",
                    advice: "name another file, or remove it to begin anew")
            }
            guard version == TrustText.version else {
                throw Fault(
                    reason: "it has format \(version), this program knows only format \(TrustText.version)",
                    advice: "use the program that wrote it, or name another file")
            }
        }

        private mutating func readPeer(_ words: inout Words) throws(Fault) {
            let isPaired: Bool
            switch words.next() {
            case "paired": isPaired = true
            case "known": isPaired = false
            default: throw fault("it does not begin with \"paired\" or \"known\"")
            }
            guard let id = words.next().flatMap(PeerID.init) else {
                throw fault("its second word is not a PeerID of 52 characters")
            }
            guard let since = words.next().flatMap(CalendarDay.init),
                let lastSeen = words.next().flatMap(CalendarDay.init)
            else { throw fault("its third and fourth words are not days like 2026-11-21") }
            guard let text = words.quoted(), let name = DisplayName(text, of: id) else {
                throw fault("its name is not a text of 1 to 63 bytes in quotation marks")
            }
            guard words.isAtEnd || words.isAtComment else { throw fault("there is more text after its name") }
            if let earlier = lines.updateValue(number, forKey: id) {
                throw fault("it is about the same peer as line \(earlier)")
            }
            guard lines.count <= TrustBook.maximumCount else {
                throw fault("it is one peer more than the limit of \(TrustBook.maximumCount)")
            }
            book.append(
                id, name: name, isPaired: isPaired, since: since, lastSeen: lastSeen, comment: words.rest)
        }

        private func fault(_ what: String) -> Fault {
            Fault(reason: "line \(number) is damaged: \(what)", advice: "repair the line, or remove it")
        }
    }

    /// The words of a line.
    ///
    /// Works on bytes, because a combining mark at the start of a name can join with the
    /// quotation mark before it into one character.
    private struct Words {
        private var bytes: Substring.UTF8View

        init(_ line: Substring.UTF8View) {
            bytes = line
            while let last = bytes.last, Self.isSpace(last) { bytes.removeLast() }
            skipSpaces()
        }

        var isAtEnd: Bool { bytes.isEmpty }
        var isAtComment: Bool { bytes.first == UInt8(ascii: "#") }
        /// The rest of the line, unchanged.
        var rest: String { String(Substring(bytes)) }

        /// Returns the next word, up to a space. Nil at the end.
        mutating func next() -> String? {
            guard !bytes.isEmpty else { return nil }
            let word = bytes.prefix { !Self.isSpace($0) }
            bytes = bytes[word.endIndex...]
            skipSpaces()
            return String(Substring(word))
        }

        /// Returns the content of the next word, which is in quotation marks. Nil if it is invalid.
        mutating func quoted() -> String? {
            guard bytes.popFirst() == UInt8(ascii: "\"") else { return nil }
            var text: [UInt8] = []
            while let byte = bytes.popFirst() {
                switch byte {
                case UInt8(ascii: "\""):
                    guard bytes.first.map(Self.isSpace) ?? true else { return nil }
                    skipSpaces()
                    return String(decoding: text, as: UTF8.self)
                case UInt8(ascii: "\\"):
                    guard let character = escaped() else { return nil }
                    text.append(contentsOf: character)
                default: text.append(byte)
                }
            }
            return nil
        }

        /// Returns the bytes of an escape sequence: a quotation mark, a backslash, or a character by its number, as in
        /// `u{202e}`.
        private mutating func escaped() -> [UInt8]? {
            switch bytes.popFirst() {
            case UInt8(ascii: "\""): return [UInt8(ascii: "\"")]
            case UInt8(ascii: "\\"): return [UInt8(ascii: "\\")]
            case UInt8(ascii: "u"):
                guard bytes.popFirst() == UInt8(ascii: "{") else { return nil }
                let digits = bytes.prefix { $0 != UInt8(ascii: "}") }
                bytes = bytes[digits.endIndex...]
                guard bytes.popFirst() != nil, (1...6).contains(digits.count),
                    let scalar = UInt32(Substring(digits), radix: 16).flatMap(Unicode.Scalar.init)
                else { return nil }
                return Array(String(scalar).utf8)
            default: return nil
            }
        }

        private mutating func skipSpaces() {
            while let first = bytes.first, Self.isSpace(first) { bytes.removeFirst() }
        }

        /// Also true for a carriage return, because some editors put one before each line break.
        private static func isSpace(_ byte: UInt8) -> Bool {
            byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
        }
    }
}
