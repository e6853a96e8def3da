/// The file a trust store is kept in: text that a person can read and edit, one peer a line.
///
/// ```
/// nigh-peers 1
/// # paired or known, PeerID, since, last seen, name
/// paired a3r73d62fg5wbk2zkv66mhw3blwnwiyrgs7dbz23ivpy4g3zf6uq 2026-11-21 2026-11-23 "Puma"  # the living room
/// ```
///
/// Order, empty lines and remarks stay as a person has put them. A line that means nothing is reported by its number
/// and keeps the file from being written: what a person meant by it is not for a program to guess. Blocks, like every
/// file.
struct TrustFile: Sendable {
    private let file: ProtectedFile

    private static let kind = ProtectedFile.Kind(
        stage: .trusting, name: "peers file", maximumByteCount: 1 << 20,
        tooLarge: "it has more than \(1 << 20) bytes", forbiddenMode: 0o022, exposed: "others may write it",
        isReplaced: true,
        replaceAdvice: "restore it from a backup; or remove it, and pair again")

    /// The file at `path`, whose lock another process may hold for as long as `patience`.
    init(path: String, patience: Moment.Span = .seconds(10)) {
        file = ProtectedFile(path: path, kind: Self.kind, patience: patience)
    }

    private init(_ file: ProtectedFile) { self.file = file }

    /// `nigh/peers`, beside the identity.
    static func ofThisUser() throws(NighError) -> TrustFile {
        TrustFile(try .ofThisUser("peers", kind: kind))
    }

    /// Differs from an earlier one if the file was changed since.
    var stamp: ProtectedFile.Stamp { file.stamp }

    /// What the file holds; an empty book if there is none.
    func read() throws(NighError) -> TrustBook {
        guard let content = try file.read() else { return TrustBook() }
        let text = content.withBytes { String(validating: $0.bindMemory(to: UInt8.self), as: UTF8.self) }
        guard let text else { throw file.refusal("it is not UTF-8", advice: Self.kind.replaceAdvice) }
        do {
            return try TrustText.book(of: text)
        } catch {
            throw file.refusal(error.why, advice: error.advice)
        }
    }

    /// Reads the file, has `change` change what it holds, and writes it again; returns what it holds then. No other process
    /// changes it in between. Nothing is written if anything fails.
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
                    advice: "shorten the remarks in \(file.path)")
            }
            let content = SecretBytes(count: text.count)
            content.withBytes { $0.copyBytes(from: text) }
            try file.replace(with: content)
            return book
        }
    }
}
