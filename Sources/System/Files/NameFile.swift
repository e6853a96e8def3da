import NighCore

/// The file with the display name that the user has chosen for this device. It lies beside
/// the identity, and all programs use it.
///
/// Reads and writes a disk, so never call this on a session's loop.
public struct NameFile: Hashable, Sendable {
    private let file: ProtectedFile

    private static let kind = ProtectedFile.Kind(
        stage: .identity, name: "name file", maximumByteCount: 1_024,
        tooLarge: "it is far too large for a name", forbiddenMode: 0o022, exposed: "others may write it",
        isReplaced: true, replaceAdvice: "remove it to use the device's own name")

    /// The path of the file, which need not exist yet.
    public var path: String { file.path }

    /// Creates a reference to the user's own file: `nigh/name` in `$XDG_DATA_HOME`, or
    /// in `~/.local/share` if that is unset.
    public init() throws(NighError) { file = try .ofThisUser("name", kind: Self.kind) }

    /// Creates a reference to the file at `path`.
    init(path: String) { file = ProtectedFile(path: path, kind: Self.kind) }

    /// Reads the name, which is the first line of the file. Nil if there is no file.
    public func read() throws(NighError) -> DisplayName? {
        guard let content = try file.read() else { return nil }
        let line = content.withBytes { bytes in
            let line = bytes.bindMemory(to: UInt8.self).prefix { $0 != UInt8(ascii: "\n") }
            // A file that was written on Windows ends its lines with two characters.
            let isEndedByTwo = line.last == UInt8(ascii: "\r")
            return String(validating: line.dropLast(isEndedByTwo ? 1 : 0), as: UTF8.self)
        }
        guard let line, let name = DisplayName(exactly: line) else {
            throw file.refusal(
                "its first line is not a name that people can see", advice: Self.kind.replaceAdvice)
        }
        return name
    }

    /// Writes `name` to the file.
    public func save(_ name: DisplayName) throws(NighError) {
        let text = Array("\(name)\n".utf8)
        try file.withLock { () throws(NighError) in try file.replace(with: SecretBytes(copying: text)) }
    }
}

extension DisplayName {
    /// Returns the name that the user has chosen (see `NameFile`), or
    /// `ofThisDevice()` if there is none. Reads a disk.
    public static func ofThisUser() throws(NighError) -> DisplayName {
        try NameFile().read() ?? ofThisDevice()
    }
}
