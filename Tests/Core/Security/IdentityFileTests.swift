import Glibc
import NighTestKit
import Testing

@testable import NighCore

/// The first key of RFC 8032, section 7.1, as `openssl genpkey` writes it.
private let knownKey = """
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
    -----END PRIVATE KEY-----

    """

@Suite struct IdentityFileTests {
    let folder = TemporaryFolder()

    // MARK: Creating a file

    @Test func theDefaultPathFollowsTheXDGSpecification() throws {
        let inData = "/data/nigh/identity.pem"
        #expect(try IdentityFile(dataFolder: "/data", homeFolder: "/home/ada").path == inData)
        let inHome = "/home/ada/.local/share/nigh/identity.pem"
        #expect(try IdentityFile(dataFolder: nil, homeFolder: "/home/ada").path == inHome)
        #expect(try IdentityFile(dataFolder: "", homeFolder: "/home/ada").path == inHome)
        #expect(try IdentityFile(dataFolder: "relative", homeFolder: "/home/ada").path == inHome)
        let error = #expect(throws: NighError.self) { try IdentityFile(dataFolder: nil, homeFolder: "") }
        #expect(error?.stage == .identity)
        #expect(error?.advice?.contains("HOME") == true)
    }

    @Test func theFirstLoadCreatesAFileThatOnlyItsOwnerCanRead() throws {
        let file = IdentityFile(path: folder.path + "/share/nigh/identity.pem")
        let identity = try file.load()
        #expect(TemporaryFolder.mode(of: file.path) == 0o600)
        #expect(TemporaryFolder.mode(of: folder.path + "/share") == 0o700)
        #expect(TemporaryFolder.mode(of: folder.path + "/share/nigh") == 0o700)
        #expect(TemporaryFolder.names(in: folder.path + "/share/nigh") == ["identity.pem"])
        #expect(try file.load() == identity)
        #expect(try file.load(createIfMissing: false) == identity)
    }

    @Test func anEphemeralIdentityCanBeSavedLater() throws {
        let identity = Identity.ephemeral()
        let file = IdentityFile(path: folder.path + "/share/nigh/identity.pem")
        try file.save(identity)
        #expect(TemporaryFolder.mode(of: file.path) == 0o600)
        #expect(try file.load() == identity)
        try file.save(identity)
        let error = #expect(throws: NighError.self) { try file.save(.ephemeral()) }
        #expect(error?.advice == "name another file, or move this one away")
        #expect(try file.load() == identity)
    }

    @Test func filesFromOtherProgramsAreRead() throws {
        let plain = IdentityFile(path: folder.file("plain.pem", knownKey))
        let peer = "a3r73d62fg5wbk2zkv66mhw3blwnwiyrgs7dbz23ivpy4g3zf6uq"
        #expect(try plain.load().peerID.description == peer)
        let windows = knownKey.split(separator: "\n").joined(separator: "\r\n") + "\r\n"
        #expect(try IdentityFile(path: folder.file("crlf.pem", windows)).load().peerID.description == peer)
        let commented = "the identity of the living room\n" + knownKey
        #expect(try IdentityFile(path: folder.file("noted.pem", commented)).load().peerID.description == peer)
        // A file that is read-only for its owner is safe as well.
        let locked = IdentityFile(path: folder.file("locked.pem", knownKey, mode: 0o400))
        #expect(try locked.load().peerID.description == peer)
    }

    @Test func identitiesAreWrittenInTheStandardFormat() throws {
        let original = IdentityFile(path: folder.file("known.pem", knownKey))
        let text = try original.load().keyPair.pem().withBytes { String(decoding: $0, as: UTF8.self) }
        #expect(text == knownKey)
    }

    @Test func theFileNamesThePeerIDOfItsKey() throws {
        let file = IdentityFile(path: folder.path + "/identity.pem")
        let peer = try file.load().peerID
        let lines = TemporaryFolder.text(of: file.path).split(separator: "\n")
        #expect(lines.first.map(String.init) == "PeerID: \(peer)")
        #expect(lines.dropFirst().first == "-----BEGIN PRIVATE KEY-----")
    }

    @Test func aFlippedBitInTheKeyIsDetected() throws {
        let owner = "a3r73d62fg5wbk2zkv66mhw3blwnwiyrgs7dbz23ivpy4g3zf6uq"
        let marked = "PeerID: \(owner)\n" + knownKey
        #expect(try IdentityFile(path: folder.file("sound.pem", marked)).load().peerID.description == owner)
        let windows = marked.replacing("\n", with: "\r\n")
        #expect(try IdentityFile(path: folder.file("crlf.pem", windows)).load().peerID.description == owner)
        // Another seed, so the key is valid, but it is not this peer's.
        let flipped = folder.file("flipped.pem", marked.replacing("IJ1h", with: "IJ1i"))
        let error = refusal(of: flipped)
        #expect(
            error.map { "\($0)" }?.contains("it is damaged: the key does not belong to PeerID \(owner)")
                == true)
        #expect(error?.advice?.contains("restore it from a backup") == true)
        let unreadable = refusal(
            of: folder.file("owner.pem", marked.replacing("PeerID: a", with: "PeerID: A")))
        #expect(
            unreadable.map { "\($0)" }?.contains("does not belong to the PeerID in the line above it") == true
        )
    }

    @Test func anExistingFolderKeepsItsMode() throws {
        chmod(folder.path, 0o755)
        _ = try IdentityFile(path: folder.path + "/identity.pem").load()
        #expect(TemporaryFolder.mode(of: folder.path) == 0o755)
    }

    @Test func aLinkToAValidFileIsFollowed() throws {
        let target = folder.file("elsewhere.pem", knownKey)
        let link = folder.path + "/identity.pem"
        #expect(symlink(target, link) == 0)
        #expect(try IdentityFile(path: link).load() == IdentityFile(path: target).load())
    }

    @Test func aMissingFileIsAnErrorIfItMayNotBeCreated() {
        let error = refusal(of: folder.path + "/identity.pem", createIfMissing: false)
        #expect(error?.cause == .unavailable("there is no identity file \(folder.path)/identity.pem"))
        #expect(TemporaryFolder.names(in: folder.path).isEmpty)
    }

    // MARK: Refusals

    @Test(arguments: [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o666, 0o777] as [mode_t])
    func aFileOpenToOthersIsRefused(mode: mode_t) {
        let path = folder.file("identity.pem", knownKey, mode: mode)
        let error = refusal(of: path)
        #expect(error?.advice == "`chmod 600 \(path)`")
        #expect(error.map { "\($0)" }?.contains("others may read or write it") == true)
        #expect(TemporaryFolder.mode(of: path) == mode, "the file's owner decides, not this program")
    }

    @Test func adviceCanBePastedIntoAShell() {
        let path = folder.file("Ada's key.pem", knownKey, mode: 0o644)
        #expect(refusal(of: path)?.advice == "`chmod 600 '\(folder.path)/Ada'\\''s key.pem'`")
    }

    @Test func aLinkToAFileOpenToOthersIsRefused() {
        let target = folder.file("elsewhere.pem", knownKey, mode: 0o644)
        let link = folder.path + "/identity.pem"
        #expect(symlink(target, link) == 0)
        #expect(refusal(of: link)?.advice == "`chmod 600 \(link)`")
    }

    @Test func aDanglingLinkIsRefusedAndKept() {
        let link = folder.path + "/identity.pem"
        #expect(symlink(folder.path + "/nowhere", link) == 0)
        let error = refusal(of: link)
        #expect(error.map { "\($0)" }?.contains("symbolic link to a file that does not exist") == true)
        #expect(TemporaryFolder.names(in: folder.path) == ["identity.pem"])
    }

    @Test func aFileThatOthersCouldReplaceIsNeitherReadNorCreated() throws {
        let inner = folder.path + "/nigh"
        let file = IdentityFile(path: inner + "/identity.pem")
        _ = try file.load()
        for place in [inner, folder.path] {
            chmod(place, 0o777)
            for path in [file.path, inner + "/new.pem"] {
                let error = refusal(of: path)
                #expect(error.map { "\($0)" }?.contains("others may write") == true)
                #expect(error?.advice == "`chmod go-w \(place)`")
            }
            chmod(place, 0o700)
        }
        #expect(TemporaryFolder.names(in: inner) == ["identity.pem"])
        _ = try file.load(createIfMissing: false)
    }

    @Test func aFileOfAnotherUserIsRefused() {
        // Only root can give a file away. Other users take /etc/passwd, which belongs to root.
        var path = "/etc/passwd"
        if geteuid() == 0 {
            path = folder.file("identity.pem", knownKey)
            #expect(chown(path, 12_345, 12_345) == 0)
        }
        let error = refusal(of: path)
        #expect(error.map { "\($0)" }?.contains("it belongs to user") == true)
        #expect(error?.advice?.contains("`chown \(geteuid()) \(path)`") == true)
    }

    @Test func onlyARegularFileIsAccepted() {
        let directory = folder.path + "/directory"
        #expect(mkdir(directory, 0o700) == 0)
        let pipe = folder.path + "/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        for path in [directory, pipe, "/dev/null"] {
            #expect(refusal(of: path).map { "\($0)" }?.contains("is not a regular file") == true, "\(path)")
        }
    }

    @Test(arguments: Unusable.all)
    func aFileWithoutAnEd25519KeyIsRefusedAndKept(unusable: Unusable) {
        let path = folder.file("identity.pem", unusable.content)
        let error = refusal(of: path)
        let sentence = error.map { "\($0)" } ?? ""
        #expect(sentence.contains("invalid identity file \(path): \(unusable.why)"))
        #expect(error?.advice != nil)
        #expect(TemporaryFolder.text(of: path) == unusable.content)
    }

    @Test func aFolderThatCannotBeMadeIsReported() {
        let inTheWay = folder.file("nigh", "")
        let error = refusal(of: inTheWay + "/identity.pem")
        #expect(error?.cause == .system(ENOTDIR, "cannot open \(inTheWay)/identity.pem: Not a directory"))
        let beyond = refusal(of: "/proc/nigh/identity.pem")
        #expect(beyond.map { "\($0)" }?.contains("cannot create the folder /proc/nigh") == true)
    }

    // MARK: Races

    @Test func threadsThatStartAtOnceGetOneIdentity() async throws {
        for round in 0..<20 {
            let file = IdentityFile(path: folder.path + "/\(round)/nigh/identity.pem")
            let peers = try await withThrowingTaskGroup { group in
                for _ in 0..<4 { group.addTask { try file.load().peerID } }
                return try await group.reduce(into: Set<PeerID>()) { $0.insert($1) }
            }
            #expect(peers.count == 1)
            #expect(TemporaryFolder.names(in: folder.path + "/\(round)/nigh") == ["identity.pem"])
        }
    }

    @Test func processesThatStartAtOnceGetOneIdentity() async throws {
        let path = folder.path + "/nigh/identity.pem"
        let peers = await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask { () -> String? in
                    let result = await #expect(
                        processExitsWith: .success, observing: [\.standardOutputContent]
                    ) { [path = path as String] in
                        let peer = try IdentityFile(path: path).load().peerID
                        print("peer \(peer) peer")
                    }
                    let output = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
                    return output.split(separator: " ").compactMap { PeerID(String($0))?.description }.first
                }
            }
            return await group.reduce(into: [String?]()) { $0.append($1) }
        }
        let kept = try IdentityFile(path: path).load(createIfMissing: false).peerID.description
        #expect(peers == [kept, kept, kept, kept])
    }

    /// The error with which loading the file at `path` ends. Checks its stage.
    private func refusal(of path: String, createIfMissing: Bool = true) -> NighError? {
        let error = #expect(throws: NighError.self) {
            try IdentityFile(path: path).load(createIfMissing: createIfMissing)
        }
        #expect(error?.stage == .identity)
        return error
    }
}

/// Contents of a file that are no Ed25519 key, and the error for each.
struct Unusable: CustomTestStringConvertible {
    let testDescription: String
    let content: String
    let why: String

    init(_ name: String, _ content: String, _ why: String) {
        testDescription = name
        self.content = content
        self.why = why
    }

    static let all = [
        Unusable("nothing", "", "it is empty"),
        Unusable("words", "hello", "it is damaged"),
        Unusable("half a file", String(knownKey.prefix(60)), "it is damaged"),
        Unusable("a wrong length", knownKey.replacing("MC4C", with: "MC8C"), "it is damaged"),
        Unusable("a wrong inner length", knownKey.replacing("BCIEIJ", with: "BCIEHJ"), "it is damaged"),
        Unusable(
            "a public key", knownKey.replacing("PRIVATE", with: "PUBLIC"),
            "it holds PUBLIC KEY, not an Ed25519 private key"),
        Unusable("far too much", String(repeating: "x", count: 20_000), "it is far too large for a key"),
        Unusable("P-256", Keys.ellipticCurve, "it holds id-ecPublicKey, not an Ed25519 private key"),
        Unusable(
            "P-256, old form", Keys.ellipticCurveOldForm,
            "it holds EC PRIVATE KEY, not an Ed25519 private key"),
        Unusable("Ed448", Keys.ed448, "it holds ED448, not an Ed25519 private key"),
        Unusable("X25519", Keys.x25519, "it holds X25519, not an Ed25519 private key"),
        Unusable("a password", Keys.withPassword, "its key is locked with a password"),
    ]
}
