import Arguments
import Glibc
import NighCore
import NighSystem

/// The user's settings: values that options have if the command line does not give them.
///
/// A line is `option = value`. Lines behind `[command]` are for that command only. `#` begins a comment. A file that
/// others can write is refused, because a setting may name a program to run.
struct SettingsFile {
    private let path: String

    /// The file of this user: `NIGH_SETTINGS`, or `nigh/settings` in the folder for configuration. Nil if there is
    /// none, or if `NIGH_SETTINGS` is empty.
    static var ofThisUser: SettingsFile? {
        if let chosen = variable("NIGH_SETTINGS") { return chosen.isEmpty ? nil : SettingsFile(path: chosen) }
        if let home = variable("XDG_CONFIG_HOME"), home.hasPrefix("/") {
            return SettingsFile(path: "\(home)/nigh/settings")
        }
        return variable("HOME").map { SettingsFile(path: "\($0)/.config/nigh/settings") }
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    private static let kind = ProtectedFile.Kind(
        stage: .starting, name: "settings file", maximumByteCount: 64 << 10,
        tooLarge: "it has more than 64 KiB",
        forbiddenMode: 0o022, exposed: "others may write it", isReplaced: false, replaceAdvice: "")

    init(path: String) { self.path = path }

    /// Reads the file; empty if there is none.
    func read() throws -> [OptionDefault] {
        guard let bytes = try ProtectedFile(path: path, kind: Self.kind).read() else { return [] }
        let home = Self.variable("HOME")
        return try Self.parse(bytes.withBytes { String(decoding: $0, as: UTF8.self) }, path: path, home: home)
    }

    /// Reads the text of a settings file.
    ///
    /// - Parameter home: the folder that `~/` at the beginning of a value stands for.
    static func parse(_ text: String, path: String, home: String?) throws(UsageError) -> [OptionDefault] {
        var command: String?
        var defaults: [OptionDefault] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = line.prefix { $0 != "#" }.trimming(where: \.isWhitespace)
            let place = "\(path), line \(index + 1)"
            if line.isEmpty { continue }
            if line.hasPrefix("[") {
                guard line.hasSuffix("]") else {
                    throw UsageError("\(place): a section is written [command]")
                }
                command = String(line.dropFirst().dropLast().trimming(where: \.isWhitespace))
                continue
            }
            guard let end = line.firstIndex(of: "=") else {
                throw UsageError("\(place): a setting is written option = value")
            }
            let option = line[..<end].trimming(where: \.isWhitespace)
            var value = String(line[line.index(after: end)...].trimming(where: \.isWhitespace))
            guard !option.isEmpty, !value.isEmpty else {
                throw UsageError("\(place): a setting is written option = value")
            }
            if value.hasPrefix("~/"), let home { value = home + value.dropFirst() }
            defaults.append(
                OptionDefault(
                    command: command, option: String(option.drop { $0 == "-" }), value: value, place: place))
        }
        return defaults
    }
}
