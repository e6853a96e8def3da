import NighCore

/// The file that stores a trust store: text that a person can read and edit, one peer per line.
///
/// ```
/// nigh-peers 1
/// # paired or known, PeerID, since, last seen, name
/// paired a3r73d62fg5wbk2zkv66mhw3blwnwiyrgs7dbz23ivpy4g3zf6uq 2026-11-21 2026-11-23 "Puma"  # the living room
/// ```
///
/// Order, empty lines and comments stay as a person has written them. An invalid line is reported with its number, and
/// the file is not written until a person has repaired it, because a program cannot guess what was meant. Every call
/// may block, because it reads or writes a disk.
struct TrustFile: Sendable {
    private let file: ProtectedFile

    private static let kind = ProtectedFile.Kind(
        stage: .trusting, name: "peers file", maximumByteCount: 2 << 20,
        tooLarge: "it has more than \(2 << 20) bytes", forbiddenMode: 0o022, exposed: "others may write it",
        isReplaced: true,
        replaceAdvice: "restore it from a backup, or remove it and pair again")

    /// Creates a reference to the file at `path`. Another process may hold its lock for up to `lockTimeout`.
    init(path: String, lockTimeout: Moment.Span = .seconds(10)) {
        file = ProtectedFile(path: path, kind: Self.kind, lockTimeout: lockTimeout)
    }

    private init(_ file: ProtectedFile) { self.file = file }

    /// Returns the user's own file: `nigh/peers`, beside the identity.
    static func ofThisUser() throws(NighError) -> TrustFile {
        TrustFile(try .ofThisUser("peers", kind: kind))
    }

    /// The stamp of the file. It differs from an earlier one if the file has changed since.
    var stamp: ProtectedFile.Stamp { file.stamp }

    /// Reads the file. Returns an empty book if there is no file.
    func read() throws(NighError) -> TrustBook {
        guard let content = try file.read() else { return TrustBook() }
        let text = content.withBytes { String(validating: $0.bindMemory(to: UInt8.self), as: UTF8.self) }
        guard let text else { throw file.refusal("it is not UTF-8", advice: Self.kind.replaceAdvice) }
        do {
            return try TrustText.book(of: text)
        } catch {
            throw file.refusal(error.reason, advice: error.advice)
        }
    }

    /// Reads the file, applies `change`, writes the file, and returns the new content.
    ///
    /// No other process can change the file in between. If anything fails, nothing is written.
    func update(_ change: (inout TrustBook) -> Void) throws(NighError) -> TrustBook {
        try file.withLock { () throws(NighError) in
            var book = try read()
            change(&book)
            guard book.entries.count <= TrustBook.maximumCount else {
                throw NighError(
                    .trusting, .limit("paired peers", TrustBook.maximumCount), advice: "unpair or forget some"
                )
            }
            let text = Array(TrustText.text(of: book).utf8)
            guard text.count <= Self.kind.maximumByteCount else {
                throw NighError(
                    .trusting, .limit("bytes in the peers file", Self.kind.maximumByteCount),
                    advice: "shorten the comments in \(file.path)")
            }
            try file.replace(with: SecretBytes(copying: text))
            return book
        }
    }
}
