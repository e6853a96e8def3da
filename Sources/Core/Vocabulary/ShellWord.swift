/// A word of a command line that an error or a program suggests, in a form that a person can paste into a shell.
package enum ShellWord {
    private static let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._:,@%+-")

    /// Returns `text` as one word: in single quotes, unless a shell reads it unchanged without them.
    package static func quoted(_ text: String) -> String {
        if !text.isEmpty, text.allSatisfy(plain.contains), !text.hasPrefix("-") { return text }
        let parts = text.split(separator: "'", omittingEmptySubsequences: false)
        return "'" + parts.joined(separator: "'\\''") + "'"
    }

    /// Returns `text` as one word that the program does not take for an option: behind `--` if it begins with a hyphen.
    package static func operand(_ text: String) -> String {
        text.hasPrefix("-") ? "-- \(quoted(text))" : quoted(text)
    }
}
