import NighCore

/// The messages of a chat, each in one message of the session; docs/reference/nigh/files.md describes the bytes.
enum ChatMessage: Equatable {
    /// A line of text, which may contain anything.
    case line(String)
    /// An empty message, or one of a later version; it is ignored.
    case unknown

    /// The maximum length of a line, in bytes of UTF-8.
    static let longestLine = 4_096
    private static let lineMark: UInt8 = 1

    /// Encodes `text` as one message, or as several if it is too long, split between Unicode scalars.
    static func lines(of text: String) -> [[UInt8]] {
        var lines: [[UInt8]] = [[lineMark]]
        for scalar in text.unicodeScalars {
            let bytes = UTF8.encode(scalar)?.map { $0 } ?? []
            if lines[lines.count - 1].count + bytes.count > longestLine + 1 { lines.append([lineMark]) }
            lines[lines.count - 1] += bytes
        }
        return lines
    }

    /// Decodes `payload`. Returns nil for a message that breaks the protocol.
    init?(_ payload: ByteSlice) {
        guard payload.count <= Self.longestLine + 1 else { return nil }
        let bytes = payload.bytes
        guard bytes.first == Self.lineMark else {
            self = .unknown
            return
        }
        guard let text = String(validating: bytes.dropFirst(), as: UTF8.self) else { return nil }
        self = .line(text)
    }
}

/// A line that the user of a chat has typed.
enum ChatInput: Equatable {
    case say(String)
    case listMembers
    case quit
    case help
    /// An unknown command.
    case unknown(String)

    init(_ line: String) {
        let text = line.last == "\r" || line.last == "\r\n" ? String(line.dropLast()) : line
        guard text.first == "/" else {
            self = .say(text)
            return
        }
        switch text.dropFirst() {
        case "who": self = .listMembers
        case "quit", "q": self = .quit
        case "help", "?": self = .help
        // Two slashes stand for a line that begins with one.
        case let rest where rest.first == "/": self = .say(String(rest))
        default: self = .unknown(text)
        }
    }

    static let guide =
        "A line goes to everyone connected. /who lists the peers, /quit leaves, and // begins a line with a slash."
}
