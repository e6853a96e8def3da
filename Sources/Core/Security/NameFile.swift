/// The file that says what this user's device is called on other people's screens, where they chose a name for good: beside the
/// identity, for all programs. Reads and writes a disk, so never on a session's loop.
public struct NameFile: Hashable, Sendable {
    private let file: ProtectedFile

    private static let kind = ProtectedFile.Kind(
        stage: .identity, name: "name file", maximumByteCount: 1_024,
        tooLarge: "it is far too large for a name", forbiddenMode: 0o022, exposed: "others may write it",
        isReplaced: true, replaceAdvice: "remove it, and the device's own name is used")

    /// Where the file is, or will be.
    public var path: String { file.path }

    /// The user's own file: `nigh/name` in `$XDG_DATA_HOME`, or where that is unset in `~/.local/share`.
    public init() throws(NighError) { file = try .ofThisUser("name", kind: Self.kind) }

    /// The file at `path`.
    init(path: String) { file = ProtectedFile(path: path, kind: Self.kind) }

    /// The name in the file, which is its first line; nil if there is no file.
    public func read() throws(NighError) -> DisplayName? {
        guard let content = try file.read() else { return nil }
        let text = content.withBytes { String(validating: $0.bindMemory(to: UInt8.self), as: UTF8.self) }
        let line = text?.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).first
        guard let line, let name = DisplayName(exactly: String(line)) else {
            throw file.refusal("its first line is no name", advice: Self.kind.replaceAdvice)
        }
        return name
    }

    /// Keeps `name` there.
    public func keep(_ name: DisplayName) throws(NighError) {
        let text = Array("\(name)\n".utf8)
        let content = SecretBytes(count: text.count)
        content.withBytes { $0.copyBytes(from: text) }
        try file.withLock { () throws(NighError) in try file.replace(with: content) }
    }
}

extension DisplayName {
    /// What this user's device is called: the name they chose for good (see ``NameFile``), else `ofThisDevice()`. Reads a disk.
    public static func ofThisUser() throws(NighError) -> DisplayName {
        try NameFile().read() ?? ofThisDevice()
    }
}
