import NighCore

/// What two who chat say to each other, one message of the session each; docs/nigh/files.md has the bytes.
enum ChatMessage: Equatable {
    /// A line of text, in which anything may stand.
    case line(String)
    /// Nothing, or what a later version says; to be left aside.
    case unknown

    /// How many bytes of UTF-8 a line has at most.
    static let longestLine = 4_096
    private static let lineMark: UInt8 = 1

    /// `text` as it travels: one message, or where it is too long for that several, cut between scalars.
    static func lines(of text: String) -> [[UInt8]] {
        var lines: [[UInt8]] = [[lineMark]]
        for scalar in text.unicodeScalars {
            let bytes = UTF8.encode(scalar)?.map { $0 } ?? []
            if lines[lines.count - 1].count + bytes.count > longestLine + 1 { lines.append([lineMark]) }
            lines[lines.count - 1] += bytes
        }
        return lines
    }

    /// What `payload` says; nil for what nobody may say.
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

/// What somebody who chats has typed.
enum ChatCommand: Equatable {
    case say(String)
    case who
    case quit
    case help
    /// There is no such command.
    case unknown(String)

    init(_ line: String) {
        let text = line.last == "\r" || line.last == "\r\n" ? String(line.dropLast()) : line
        guard text.first == "/" else {
            self = .say(text)
            return
        }
        switch text.dropFirst() {
        case "who": self = .who
        case "quit", "q": self = .quit
        case "help", "?": self = .help
        // So that a line can begin with a slash.
        case let rest where rest.first == "/": self = .say(String(rest))
        default: self = .unknown(text)
        }
    }

    static let guide =
        "A line is said to all in the conversation. /who tells who is there, /quit leaves; // begins a line with a slash."
}
