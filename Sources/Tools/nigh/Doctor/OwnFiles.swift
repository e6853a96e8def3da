import Glibc
import NighLoop
import SessionArguments

/// Checks the files that hold the user's identity and the known peers: whether they exist, whether they belong to the
/// user, and whether they are intact. Only reads: a missing file is not created.
enum OwnFiles {
    /// Checks the identity file step by step, up to the first step that fails.
    static func identity(_ chosen: IdentityFile?) -> [Finding] {
        let subject = "identity"
        let file: IdentityFile
        do throws(NighError) {
            if let chosen { file = chosen } else { file = try IdentityFile() }
        } catch {
            return [Finding("identity.file", subject, failed: error)]
        }
        if !Self.isThere(file.path) {
            let whatElse =
                chosen == nil ? "it is created when a program first needs it" : "it is created at first use"
            let folder = existingFolder(above: file.path)
            let isFolder = (Self.status(of: folder)?.st_mode ?? 0) & S_IFMT == S_IFDIR
            guard isFolder, access(folder, W_OK) == 0 else {
                return [
                    Finding(
                        "identity.file", subject, .fail,
                        "there is no file \(file.path), and \(folder) is no folder that you may write to",
                        advice: "make it one, or name another folder in XDG_DATA_HOME; with "
                            + "`--identity ephemeral`, commands need no file")
                ]
            }
            return [Finding("identity.file", subject, .pass, "no file \(file.path) yet; \(whatElse)")]
        }
        // Without a status it is in a folder that this user may not read, or a link that leads nowhere.
        let status = Self.status(of: file.path) ?? stat()
        // The file itself shows which step fails; the error says why.
        let steps: [(id: String, holds: Bool, finding: String)] = [
            ("identity.file", status.st_mode & S_IFMT == S_IFREG, file.path),
            ("identity.owner", status.st_uid == geteuid(), "yours"),
            (
                "identity.mode", status.st_mode & 0o077 == 0 && PathExposure(ofFileAt: file.path) == nil,
                "nobody else may read or replace it"
            ),
        ]
        do throws(NighError) {
            let identity = try file.load(createIfMissing: false)
            return steps.map { Finding($0.id, subject, .pass, $0.finding) }
                + [
                    Finding("identity.key", subject, .pass, "you are \(identity.peerID)"),
                    use(of: identity.peerID, in: file),
                ]
        } catch {
            let sound = steps.prefix { $0.holds }
            let id = steps.first { !$0.holds }?.id ?? "identity.key"
            return sound.map { Finding($0.id, subject, .pass, $0.finding) } + [
                Finding(id, subject, failed: error)
            ]
        }
    }

    /// Says which programs use the identity now.
    private static func use(of identity: PeerID, in file: IdentityFile) -> Finding {
        let users = IdentityUsers(of: identity, in: file)
        let list = users.isEmpty ? "no running program" : users.lines.joined(separator: ", ")
        guard users.hasEarlierVersion else {
            return Finding("identity.use", "identity", .pass, "in use by \(list)")
        }
        return Finding(
            "identity.use", "identity", .warn, "in use by \(list)",
            advice:
                "update or end that program: beside it, all others here are trusted by up-to-date peers only")
    }

    /// The lowest folder on the way to a file that exists.
    private static func existingFolder(above path: String) -> String {
        var parts = path.split(separator: "/", omittingEmptySubsequences: false)
        while parts.count > 1 {
            parts.removeLast()
            let folder = parts.joined(separator: "/")
            if folder.isEmpty { break }
            if access(folder, F_OK) == 0 { return folder }
        }
        return path.hasPrefix("/") ? "/" : "."
    }

    /// Whether something has this name, as far as the user may know.
    private static func isThere(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 || errno != ENOENT && errno != ENOTDIR
    }

    private static func status(of path: String) -> stat? {
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }

    /// Checks whether the trust store can be read.
    static func trust() -> Finding {
        let (id, subject) = ("trust.store", "known peers")
        do throws(NighError) {
            let peers = try TrustStore.standard().peers
            let paired = peers.count(where: \.isPaired)
            return Finding(id, subject, .pass, "\(peers.count), \(paired) of them paired")
        } catch {
            return Finding(id, subject, failed: error)
        }
    }

    /// Returns a warning about the peer at the end of `path`, if there is a reason for one.
    static func warning(about path: PeerPath) -> Finding? {
        let own = try? IdentityFile().load(createIfMissing: false).peerID
        let trust: PeerTrust? =
            if let announced = path.announcedFalsely {
                .falselyAnnounced(as: announced)
            } else if path.identity == own {
                .paired
            } else {
                (try? TrustStore.standard())?.trust(in: path.identity, called: path.name)
            }
        guard let warning = PeerWarning(path.peer, name: path.name.description, trust: trust) else {
            return nil
        }
        return Finding("peer.name", "peer", .warn, warning.sentence, advice: PeerWarning.advice)
    }
}
