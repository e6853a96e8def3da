import NighCore
import NighSystem

/// The credentials of this client, as a file has them.
///
/// The file is of one of these forms; lines that begin with `#` do not count, except in the first:
/// - a file by `nsc`: a `.creds` file with a user's JWT and NKey seed;
/// - an NKey seed of a user, alone on a line;
/// - two lines, `user=NAME` and `password=PASSWORD`;
/// - one line, `token=TOKEN`.
///
/// All texts end with a zero, for C.
enum NATSCredentials: Sendable {
    case jwt(SecretBytes, seed: SecretBytes)
    case nkey(publicKey: String, seed: SecretBytes)
    case password(SecretBytes, user: SecretBytes)
    case token(SecretBytes)

    private static let kind = ProtectedFile.Kind(
        stage: .starting, name: "credentials file", maximumByteCount: 64 << 10,
        tooLarge: "it has more than 64 KiB", forbiddenMode: 0o077, exposed: "others may read or write it",
        isReplaced: false, replaceAdvice: advice)
    private static let advice =
        "write user= and password= on lines of their own, or token=, or an NKey seed, or name a .creds file"
    private static let jwtMark = "BEGIN NATS USER JWT"
    private static let seedMark = "BEGIN USER NKEY SEED"

    /// Reads the file at `path`. Blocks.
    static func read(path: String) throws(NighError) -> NATSCredentials {
        do throws(NighError) {
            guard let content = try ProtectedFile(path: path, kind: kind).read() else {
                throw NighError(
                    .starting, .invalid("credentials file \(path): it does not exist"), advice: advice)
            }
            guard let credentials = NATSCredentials(content) else {
                throw NighError(
                    .starting, .invalid("credentials file \(path): it has no credentials"), advice: advice)
            }
            return credentials
        } catch {
            var error = error
            error.transport = NATSOptions.scheme
            throw error
        }
    }

    /// Finds the credentials in the content of a file. Nil if there are none.
    init?(_ content: SecretBytes) {
        let found: NATSCredentials? = content.withBytes { bytes in
            let lines = Lines(bytes: UnsafeRawBufferPointer(bytes))
            if let jwt = lines.line(behind: Self.jwtMark) {
                guard let seed = lines.line(behind: Self.seedMark) else { return nil }
                return .jwt(Self.text(jwt), seed: Self.text(seed))
            }
            if let token = lines.value(of: "token=") { return .token(Self.text(token)) }
            if let user = lines.value(of: "user="), let password = lines.value(of: "password=") {
                return .password(Self.text(password), user: Self.text(user))
            }
            for line in lines.all where line.count == NKey.seedLength && line.first == UInt8(ascii: "S") {
                let seed = Self.text(line)
                if let key = NKey.publicKey(ofSeed: seed) { return .nkey(publicKey: key, seed: seed) }
            }
            return nil
        }
        guard let found else { return nil }
        self = found
    }

    private static func text(_ line: Slice<UnsafeRawBufferPointer>) -> SecretBytes {
        // The byte behind the text stays zero.
        let text = SecretBytes(count: line.count + 1)
        text.withBytes { $0.copyBytes(from: line) }
        return text
    }

    /// The lines of a file, without blanks at their ends. They are slices of it: a secret is copied only once.
    private struct Lines {
        typealias Line = Slice<UnsafeRawBufferPointer>

        let bytes: UnsafeRawBufferPointer

        var all: [Line] {
            bytes.split(separator: UInt8(ascii: "\n")).map { line in
                var line = line
                while let last = line.last, last <= 32 { line.removeLast() }
                while let first = line.first, first <= 32 { line.removeFirst() }
                return line
            }
        }

        /// Returns the line behind the one that contains `mark`.
        func line(behind mark: String) -> Line? {
            let lines = all
            let mark = Array(mark.utf8)
            guard
                let index = lines.firstIndex(where: { line in
                    line.indices.contains { line[$0...].starts(with: mark) }
                }), index + 1 < lines.count
            else { return nil }
            return lines[index + 1]
        }

        /// Returns the text behind `key` at the beginning of a line.
        func value(of key: String) -> Line? {
            let key = Array(key.utf8)
            guard let line = all.first(where: { $0.starts(with: key) }) else { return nil }
            let value = line.dropFirst(key.count)
            return value.isEmpty ? nil : value
        }
    }
}
