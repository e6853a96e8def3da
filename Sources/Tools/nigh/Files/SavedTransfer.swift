import Glibc
import NighCore
import NighFiles
import NighLoop
import NighSystem
import Synchronization

/// The record of an unfinished `nigh send`, with which `nigh transfers` can list and continue it: a small text file in
/// the user's data folder. The program that sends holds a lock on it.
///
/// A record decides which files go to which peer. So it is not used if other users could have written it.
///
/// `@unchecked Sendable`: only the thread of one `FileSender` uses a record, except for `forget`.
final class SavedTransfer: @unchecked Sendable {
    /// The content of the file.
    private(set) var content: Content
    let id: String
    private let folder: String
    /// The locked file; nil while nothing is written, or if another program sends the same.
    private var file: OpenDescriptor?
    private var writtenAt = Moment(nanoseconds: 0)
    /// Whether the file is written, and whether it must not be written any more.
    private let isWritten = Atomic<Bool>(false)
    private let isForgotten = Atomic<Bool>(false)

    /// The time between two notes of how far the transfer is.
    private static let interval = Moment.Span.seconds(2)

    /// Creates the record of a command. It is written when the files are offered. Nil if there is no data folder.
    init?(of command: SendCommand, to peer: PeerChoice, _ files: FilesToSend) {
        guard let folder = Self.folder else { return nil }
        self.folder = folder
        content = Content(
            names: TransferText.names(files.items), total: files.size,
            arguments: command.arguments(to: peer, files.paths))
        id = command.record ?? Self.id(of: content.arguments.joined(separator: "\n"))
    }

    /// The folder with the records of this user; nil if there is no data folder.
    static var folder: String? { DataFolder.ofThisUser.map { "\($0)/transfers" } }

    /// A short name for what `text` describes.
    static func id(of text: String) -> String {
        Array(Array(text.utf8).withUnsafeBytes { SHA256.hash($0) }.prefix(4)).hexadecimal
    }

    private var path: String { "\(folder)/\(id)" }

    // MARK: Writing

    /// Notes that the files are offered to this peer. Does nothing if the record cannot be written, or if others could
    /// replace it: sending works without.
    func begin(with peer: Peer) {
        content.peer = peer.identity
        content.peerName = "\(peer.name)"
        guard file != nil || Self.lock(path) != nil || !Self.exists(path) else { return }
        for parent in [DataFolder.ofThisUser ?? folder, folder] { mkdir(parent, 0o700) }
        guard PathExposure(ofFileAt: path) == nil else { return }
        write()
    }

    /// Notes how far the transfer is, from time to time.
    func note(done: Int) {
        guard file != nil, done != content.done, LoopThread.now - writtenAt >= Self.interval else { return }
        content.done = done
        write()
    }

    /// Notes how far the transfer came, at its end.
    func noteEnd(done: Int) {
        guard file != nil, done != content.done else { return }
        content.done = done
        write()
    }

    /// Writes the record anew. It is never half written.
    private func write() {
        guard !isForgotten.load(ordering: .acquiring) else { return }
        writtenAt = LoopThread.now
        content.changed = time(nil)
        let draft = "\(folder)/.\(id).\(getpid())"
        let number = open(draft, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard number >= 0 else { return }
        let new = OpenDescriptor(number)
        let isComplete =
            flock(number, LOCK_EX | LOCK_NB) == 0
            && Array(content.text.utf8).withUnsafeBytes { new.write($0) }
        guard isComplete, rename(draft, path) == 0 else {
            unlink(draft)
            return
        }
        file = new
        isWritten.store(true, ordering: .releasing)
        // It was forgotten meanwhile.
        if isForgotten.load(ordering: .acquiring) { unlink(path) }
    }

    /// Removes the file for good, because everything has arrived. May be called on any thread.
    func forget() {
        isForgotten.store(true, ordering: .releasing)
        if isWritten.load(ordering: .acquiring) { unlink(path) }
    }

    /// Removes the record: there is nothing to continue.
    func remove() {
        if file != nil { unlink(path) }
        file = nil
    }

    // MARK: The records of this user

    /// Reads all records in a folder, by ID. One that others could have written is refused.
    static func all(in folder: String? = folder) -> [(id: String, content: Result<Content, NighError>)] {
        guard let folder, let names = try? OpenFolder(folder).names() else { return [] }
        let ids = names.map(\.text).filter { $0.utf8.count == 8 && !$0.hasPrefix(".") }
        return ids.sorted().compactMap { id in
            do throws(NighError) {
                return try content(of: "\(folder)/\(id)").map { (id, .success($0)) }
            } catch {
                return (id, .failure(error))
            }
        }
    }

    private static let kind = ProtectedFile.Kind(
        stage: .sending, name: "record of a transfer", maximumByteCount: 16 << 20,
        tooLarge: "it has more than \(16 << 20) bytes", forbiddenMode: 0o022, exposed: "others may write it",
        isReplaced: true, replaceAdvice: "`nigh transfers remove` removes it")

    private static func content(of path: String) throws(NighError) -> Content? {
        guard let bytes = try ProtectedFile(path: path, kind: kind).read() else { return nil }
        return Content(bytes.withBytes { String(decoding: $0, as: UTF8.self) })
    }

    private static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    private static func lock(_ path: String) -> OpenDescriptor? {
        let number = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard number >= 0 else { return nil }
        let file = OpenDescriptor(number)
        return flock(number, LOCK_EX | LOCK_NB) == 0 ? file : nil
    }

    /// Returns whether a program sends these files now.
    static func isInUse(_ id: String) -> Bool {
        guard let folder else { return false }
        let path = "\(folder)/\(id)"
        return exists(path) && lock(path) == nil
    }

    /// Removes the record of an unfinished transfer. Throws if a program sends these files now.
    static func remove(_ id: String) throws(FileFailure) {
        guard !isInUse(id) else { throw FileFailure("\(id) is in use: these files are being sent now") }
        if let folder { unlink("\(folder)/\(id)") }
    }
}

extension SavedTransfer {
    /// The content of a record: lines of a name and a value.
    struct Content: Sendable {
        /// The peer that the files were offered to.
        var peer: PeerID?
        var peerName = ""
        /// The names of the files and folders, with "/" behind those of folders.
        var names: [String]
        var done = 0
        var total: Int?
        /// When it was written, in seconds since 1970.
        var changed = 0
        /// The command line that continues the transfer.
        var arguments: [String]

        init(names: [String], total: Int?, arguments: [String]) {
            self.names = names
            self.total = total
            self.arguments = arguments
        }

        private static let explanation =
            "An unfinished nigh send. `nigh transfers` lists it, and continues it. This file can be removed."

        var text: String {
            var lines = [Self.explanation]
            if let peer { lines.append("peer \(peer)") }
            lines.append("peer-name \(Self.escaped(peerName))")
            lines += names.map { "name \(Self.escaped($0))" }
            lines.append("done \(done)")
            if let total { lines.append("total \(total)") }
            lines.append("changed \(changed)")
            lines += arguments.map { "argument \(Self.escaped($0))" }
            return lines.joined(separator: "\n") + "\n"
        }

        /// Parses a record. Returns nil for anything else.
        init?(_ text: String) {
            // In bytes: a mark at the beginning of a name would join the blank before it, and be one character with it.
            let lines = text.utf8.split(separator: UInt8(ascii: "\n"))
            guard let first = lines.first, first.elementsEqual(Self.explanation.utf8) else { return nil }
            self.init(names: [], total: nil, arguments: [])
            for line in lines.dropFirst() {
                guard let blank = line.firstIndex(of: UInt8(ascii: " ")) else { return nil }
                let value = Self.unescaped(line[line.index(after: blank)...])
                switch String(decoding: line[..<blank], as: UTF8.self) {
                case "peer": peer = PeerID(value)
                case "peer-name": peerName = value
                case "name": names.append(value)
                case "done": done = Int(value) ?? 0
                case "total": total = Int(value)
                case "changed": changed = Int(value) ?? 0
                case "argument": arguments.append(value)
                default: break
                }
            }
        }

        private static func escaped(_ text: String) -> String {
            text.unicodeScalars.map { $0 == "\\" ? "\\\\" : $0 == "\n" ? "\\n" : String($0) }.joined()
        }

        private static func unescaped(_ text: Substring.UTF8View) -> String {
            var plain: [UInt8] = []
            var rest = text
            while let next = rest.popFirst() {
                guard next == UInt8(ascii: "\\"), let code = rest.popFirst() else {
                    plain.append(next)
                    continue
                }
                plain.append(code == UInt8(ascii: "n") ? UInt8(ascii: "\n") : code)
            }
            return String(decoding: plain, as: UTF8.self)
        }
    }
}

extension SendCommand {
    /// The command line that does the same in any folder, without the plugins: no code is run because a file says so.
    func arguments(to peer: PeerChoice, _ paths: [String]) -> [String] {
        var arguments = ["send", "--to", "\(peer)"]
        func add(_ option: String, _ value: String?) { if let value { arguments += [option, value] } }
        add("--transport", session.transports)
        if session.service != SessionOptions.ownService { add("--service", "\(session.service)") }
        add("--name", session.name.map { "\($0)" })
        switch session.identity {
        case .file(let file): add("--identity", Self.absolute(file.path))
        case .ephemeral: add("--identity", "ephemeral")
        case .delegate, nil: break
        }
        if session.security != .encrypted { add("--security", session.security.rawValue) }
        if session.relays != .paired { add("--relays", session.relays.rawValue) }
        add("--through", session.through.map { "\($0)" })
        add("--wait", giveUp.map { "\(Int($0.seconds))s" })
        add("--as", name)
        return arguments + ["--"] + paths.map(Self.absolute)
    }

    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return "\(String(cString: folder))/\(path)"
    }
}
