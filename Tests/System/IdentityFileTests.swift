import Glibc
import NighTestKit
import Testing

@testable import NighCore
@testable import NighSystem

/// Tests the content of identity files. `ProtectedFileTests` has the tests for all such files.
@Suite struct IdentityFileTests {
    /// The first key of RFC 8032, section 7.1, as `openssl genpkey` writes it, and its PeerID.
    static let knownKey = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
        -----END PRIVATE KEY-----

        """
    private static let knownPeer = "a3r73d62fg5wbk2zkv66mhw3blwnwiyrgs7dbz23ivpy4g3zf6uq"

    private let folder = TemporaryFolder()
    private var path: String { folder.path + "/identity.pem" }

    private func peer(in text: String, mode: mode_t = 0o600) throws -> String {
        unlink(path)
        return try IdentityFile(path: folder.file("identity.pem", text, mode: mode)).load().peerID.description
    }

    /// The error with which loading the file ends.
    private func refusal(createIfMissing: Bool = true) -> NighError? {
        let error = #expect(throws: NighError.self) {
            try IdentityFile(path: path).load(createIfMissing: createIfMissing)
        }
        #expect(error?.stage == .identity)
        return error
    }

    @Test func `The first load creates a file that names the PeerID of its key`() throws {
        let missing = refusal(createIfMissing: false)
        #expect(missing?.cause == .unavailable("there is no identity file \(path)"))
        #expect(TemporaryFolder.names(in: folder.path).isEmpty)
        let file = IdentityFile(path: path)
        let identity = try file.load()
        let lines = TemporaryFolder.text(of: path).split(separator: "\n")
        #expect(lines.prefix(2) == ["PeerID: \(identity.peerID)", "-----BEGIN PRIVATE KEY-----"])
        #expect(try file.load() == identity)
        #expect(try file.load(createIfMissing: false) == identity)
    }

    @Test func `An ephemeral identity can be saved later`() throws {
        let identity = Identity.ephemeral()
        let file = IdentityFile(path: path)
        try file.save(identity)
        #expect(try file.load() == identity)
        try file.save(identity)
        let error = #expect(throws: NighError.self) { try file.save(.ephemeral()) }
        #expect(error?.advice == "name another file, or move this one away")
        #expect(try file.load() == identity)
    }

    @Test func `Files of other programs are read, and identities are written in the standard format`() throws
    {
        let key = Self.knownKey
        for text in [
            key, key.replacing("\n", with: "\r\n"), "the identity of the living room\n" + key,
            "PeerID: \(Self.knownPeer)\n" + key,
            "PeerID: \(Self.knownPeer)\n".replacing("\n", with: "\r\n") + key,
        ] {
            #expect(try peer(in: text) == Self.knownPeer)
        }
        let written = try IdentityFile(path: path).load().keyPair.pem()
        #expect(written.withBytes { String(decoding: $0, as: UTF8.self) } == key)
        // A file that is read-only for its owner is safe as well.
        #expect(try peer(in: key, mode: 0o400) == Self.knownPeer)
    }

    @Test func `A flipped bit in the key is detected`() throws {
        let marked = "PeerID: \(Self.knownPeer)\n" + Self.knownKey
        // Another seed, so the key is valid, but it is not this peer's.
        for (text, words) in [
            (marked.replacing("IJ1h", with: "IJ1i"), "does not belong to PeerID \(Self.knownPeer)"),
            (
                marked.replacing("PeerID: a", with: "PeerID: A"),
                "does not belong to the PeerID in the line above it"
            ),
        ] {
            _ = folder.file("identity.pem", text)
            let error = refusal()
            #expect(error.map { "\($0)" }?.contains("it is damaged: the key \(words)") == true)
            #expect(error?.advice?.contains("restore it from a backup") == true)
        }
    }

    @Test(arguments: [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o666, 0o777] as [mode_t])
    func `A file open to others is refused`(mode: mode_t) {
        _ = folder.file("identity.pem", Self.knownKey, mode: mode)
        let error = refusal()
        #expect(error?.advice == "`chmod 600 \(path)`")
        #expect(error.map { "\($0)" }?.contains("others may read or write it") == true)
    }

    @Test func `A link to a valid file is followed, and a dangling one is refused and kept`() throws {
        let target = folder.file("elsewhere.pem", Self.knownKey)
        #expect(symlink(target, path) == 0)
        #expect(try IdentityFile(path: path).load().peerID.description == Self.knownPeer)
        unlink(target)
        let error = refusal()
        #expect(error.map { "\($0)" }?.contains("symbolic link to a file that does not exist") == true)
        #expect(TemporaryFolder.names(in: folder.path) == ["identity.pem"])
    }

    @Test(
        arguments: [
            ("", "it is empty"), ("hello", "it is damaged"), (String(knownKey.prefix(60)), "it is damaged"),
            // A wrong length, outside and inside.
            (knownKey.replacing("MC4C", with: "MC8C"), "it is damaged"),
            (knownKey.replacing("BCIEIJ", with: "BCIEHJ"), "it is damaged"),
            (
                knownKey.replacing("PRIVATE", with: "PUBLIC"),
                "it holds PUBLIC KEY, not an Ed25519 private key"
            ),
            (String(repeating: "x", count: 20_000), "it is far too large for a key"),
            (Keys.ellipticCurve, "it holds id-ecPublicKey, not an Ed25519 private key"),
            (Keys.ellipticCurveOldForm, "it holds EC PRIVATE KEY, not an Ed25519 private key"),
            (Keys.ed448, "it holds ED448, not an Ed25519 private key"),
            (Keys.x25519, "it holds X25519, not an Ed25519 private key"),
            (Keys.withPassword, "its key is locked with a password"),
        ] as [(String, String)])
    func `A file without an ed 25519 key is refused and kept`(content: String, why: String) {
        _ = folder.file("identity.pem", content)
        let error = refusal()
        #expect(error.map { "\($0)" }?.contains("invalid identity file \(path): \(why)") == true)
        #expect(error?.advice != nil)
        #expect(TemporaryFolder.text(of: path) == content)
    }

    @Test func `Threads that start at once get one identity`() async throws {
        for round in 0..<20 {
            let file = IdentityFile(path: folder.path + "/\(round)/identity.pem")
            let peers = try await withThrowingTaskGroup { group in
                for _ in 0..<4 { group.addTask { try file.load().peerID } }
                return try await group.reduce(into: Set<PeerID>()) { $0.insert($1) }
            }
            #expect(peers.count == 1)
            #expect(TemporaryFolder.names(in: folder.path + "/\(round)") == ["identity.pem"])
        }
    }
}
