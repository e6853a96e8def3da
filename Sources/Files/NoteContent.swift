import NighCore

/// The content of an incomplete transfer's note. It consists of lines, so that it can grow, and so that a person can
/// read it. Bytes that could end a line or act on a terminal are written as `\xHH`.
struct NoteContent {
    /// The sender and the names of the transfer.
    struct Header: Equatable {
        /// The peer that sends it.
        let sender: PeerID
        /// The sender's name for it.
        let name: String
        /// The name that it is to get here.
        let final: String
    }

    /// A file that is whole and has its name.
    struct Kept: Equatable {
        let size: Int
        let hash: [UInt8]
        /// Its path in the folder that files are received into.
        let path: String
    }

    /// A line behind the header.
    enum Line {
        /// The whole file with this key has its name.
        case kept(key: String, Kept)
        /// An offered folder with this key is called so here. Written before the folder is made.
        case folder(key: String, path: String)
        /// The whole file with this key and this number in the file system moves to this path. Written before it moves.
        case moving(key: String, file: UInt64, path: String)
    }

    let header: Header
    private(set) var kept: [String: Kept] = [:]
    /// The paths of the folders, in the order in which they were made.
    private(set) var folders: [(key: String, path: String)] = []
    private(set) var moving: [String: (file: UInt64, path: String)] = [:]
    private var folderIndices: [String: Int] = [:]

    /// The first line, for a person.
    static let explanation =
        "What is still incomplete of something that nigh receives. Sent again, it goes on from here. This folder can be removed."

    init(_ header: Header) { self.header = header }

    /// Parses the lines of a note. Returns nil if they do not begin with a header. Ignores other lines that are
    /// damaged.
    init?(_ bytes: ArraySlice<UInt8>) {
        var lines = bytes.split(separator: Self.newline, omittingEmptySubsequences: false)[...]
        guard lines.popFirst()?.elementsEqual(Self.explanation.utf8) == true,
            let sender = lines.popFirst().flatMap({ Self.words($0, "sender", 1) }).flatMap({ PeerID($0[0]) }),
            let name = lines.popFirst().flatMap({ Self.words($0, "name", 1) }),
            let final = lines.popFirst().flatMap({ Self.words($0, "final", 1) })
        else { return nil }
        header = Header(sender: sender, name: name[0], final: final[0])
        for text in lines { if let line = Self.line(text) { add(line) } }
    }

    /// Applies a line, which takes the place of an earlier one with the same key.
    mutating func add(_ line: Line) {
        switch line {
        case .kept(let key, let file): kept[key] = file
        case .moving(let key, let file, let path): moving[key] = (file, path)
        case .folder(let key, let path):
            folderIndices[key] = folders.count
            folders.append((key, path))
        }
    }

    /// Returns the path of the folder with that key.
    func folder(_ key: String) -> String? { folderIndices[key].map { folders[$0].path } }

    // MARK: Text

    private static let newline = UInt8(ascii: "\n")
    private static let space = UInt8(ascii: " ")

    /// Returns the lines of a header.
    static func text(_ header: Header) -> String {
        """
        \(explanation)
        sender \(header.sender)
        name \(escaped(header.name))
        final \(escaped(header.final))

        """
    }

    /// Returns a line with its end.
    static func text(_ line: Line) -> String {
        switch line {
        case .kept(let key, let file):
            "kept \(file.size) \(file.hash.hexadecimal) \(key) \(escaped(file.path))\n"
        case .folder(let key, let path): "folder \(key) \(escaped(path))\n"
        case .moving(let key, let file, let path): "moving \(file) \(key) \(escaped(path))\n"
        }
    }

    private static func line(_ text: ArraySlice<UInt8>) -> Line? {
        if let words = words(text, "kept", 4) {
            guard let size = Int(words[0]), size >= 0, let hash = [UInt8](hexadecimal: words[1]),
                hash.count == 32
            else { return nil }
            return .kept(key: words[2], Kept(size: size, hash: hash, path: words[3]))
        }
        if let words = words(text, "folder", 2) { return .folder(key: words[0], path: words[1]) }
        if let words = words(text, "moving", 3) {
            return UInt64(words[0]).map { .moving(key: words[1], file: $0, path: words[2]) }
        }
        return nil
    }

    /// Returns `count` words behind the first. The last may contain blanks. Returns nil if the first is another, or if
    /// there are fewer.
    private static func words(_ line: ArraySlice<UInt8>, _ first: String, _ count: Int) -> [String]? {
        let words = line.split(separator: space, maxSplits: count, omittingEmptySubsequences: false)
        guard words.count == count + 1, words[0].elementsEqual(first.utf8) else { return nil }
        let texts = words.dropFirst().compactMap(unescaped)
        return texts.count == count ? texts : nil
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            guard scalar.isInvisible || scalar == "\\" else {
                escaped.unicodeScalars.append(scalar)
                continue
            }
            for byte in UTF8.encode(scalar)! { escaped += "\\x\([byte].hexadecimal)" }
        }
        return escaped
    }

    private static func unescaped(_ text: ArraySlice<UInt8>) -> String? {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            guard rest.popFirst() == UInt8(ascii: "x"),
                let value = [UInt8](hexadecimal: String(decoding: rest.prefix(2), as: UTF8.self))
            else { return nil }
            bytes += value
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension [UInt8] {
    /// The bytes as hexadecimal digits.
    package var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        let text = flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }

    /// Parses hexadecimal digits. Returns nil for anything else, and for no bytes.
    package init?(hexadecimal text: String) {
        let digits = text.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
        guard !digits.isEmpty, digits.count % 2 == 0, !digits.contains(nil) else { return nil }
        self = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0]! << 4 | digits[$0 + 1]!) }
    }
}
