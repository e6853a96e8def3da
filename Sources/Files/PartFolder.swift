import Glibc
import NighCore

/// The folder `NAME.part`, which holds the incomplete part of one offered file or folder: a note, and the data of each
/// file that is not whole yet.
final class PartFolder {
    /// The name that the whole file or folder is to get.
    let name: SafeFileName
    /// The name without its number.
    let base: SafeFileName
    /// The number of the name.
    let number: Int
    let folder: OpenFolder
    let note: TransferNote
    /// The folder that everything is received into.
    let destination: OpenFolder

    /// A transfer leaves no trace of files that never had any bytes.
    deinit { if isEmpty { remove() } }

    private init(_ location: Location, _ folder: OpenFolder, _ note: TransferNote) {
        name = location.name
        base = location.base
        number = location.number
        destination = location.destination
        self.folder = folder
        self.note = note
    }

    /// The destination and the name of such a folder.
    struct Location {
        let destination: OpenFolder
        let base: SafeFileName
        let number: Int
        var name: SafeFileName { base.numbered(number) }
    }

    /// Opens the folder of an earlier transfer. Returns nil if there is none, or if it is in use.
    static func open(_ location: Location, sender: PeerID, name: String) throws(FileFailure) -> PartFolder? {
        guard let folder = try ownFolder(location.name.part, in: location.destination),
            let note = try TransferNote.open(in: folder), note.content.header.sender == sender,
            note.content.header.name.utf8.elementsEqual(name.utf8)
        else { return nil }
        return PartFolder(location, folder, note)
    }

    /// Creates the folder. Returns nil if its name is taken.
    static func create(_ location: Location, sender: PeerID, name: String) throws(FileFailure) -> PartFolder?
    {
        let part = location.name.part
        let isNew = try location.destination.makeFolder(part, mode: 0o700)
        let header = NoteContent.Header(sender: sender, name: name, final: location.name.text)
        do throws(FileFailure) {
            guard let folder = try ownFolder(part, in: location.destination) else { return nil }
            // A program that was killed at this point left a note without a header, and nothing else.
            if !isNew, try folder.names(atMost: 2).map(\.text) != [TransferNote.name] { return nil }
            guard let note = try TransferNote.create(header, in: folder) else { return nil }
            return PartFolder(location, folder, note)
        } catch {
            if isNew { location.destination.removeFolder(part) }
            throw error
        }
    }

    /// Opens a folder of this user.
    static func ownFolder(
        _ name: String, in destination: OpenFolder
    ) throws(FileFailure) -> OpenFolder? {
        guard let folder = try destination.folder(name), folder.descriptor.status?.st_uid == geteuid() else {
            return nil
        }
        return folder
    }

    // MARK: Data

    /// Returns the name of a file's data: the hash of its offered path, which says nothing to the file system.
    static func key(of path: String) -> String {
        let hash = Array(path.utf8).withUnsafeBytes { SHA256.hash($0) }
        return Array(hash.prefix(16)).hexadecimal
    }

    /// Opens the data of a file, new or left from before. Anything else that has its name is removed, since the folder
    /// is for nothing else: a link, or a file with another name, which is not to be written to.
    func openData(_ key: String) throws(FileFailure) -> OpenDescriptor {
        if let status = folder.status(of: key), !Self.isData(status) { folder.remove(key) }
        let path = folder.path(of: key)
        guard let file = try folder.open(key, O_RDWR | O_CREAT) else {
            throw errno == EWOULDBLOCK ? Self.inUse(path) : .system("creating \(path)")
        }
        guard let status = file.status, Self.isData(status) else {
            throw FileFailure("\(path) was replaced during the transfer; send it again")
        }
        guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else { throw Self.inUse(path) }
        return file
    }

    /// Returns whether it is a plain file of this user with one name.
    private static func isData(_ status: stat) -> Bool {
        status.kind == S_IFREG && status.st_nlink == 1 && status.st_uid == geteuid()
    }

    private static func inUse(_ path: String) -> FileFailure {
        FileFailure(
            "\(path) is in use: it is being received already", other: "it is being received there already")
    }

    // MARK: The end

    /// Whether there is nothing that a transfer could continue with. The sender may know of each folder that was made.
    private var isEmpty: Bool {
        let content = note.content
        guard content.kept.isEmpty, content.moving.isEmpty, content.folders.isEmpty,
            let names = try? folder.names()
        else { return false }
        return names.allSatisfy { name in
            name.text == TransferNote.name || folder.status(of: name.text)?.st_size == 0
        }
    }

    /// Returns whether a file is whole, and has not been sent anew since.
    func isComplete(_ key: String) -> Bool { note.content.kept[key] != nil && !folder.has(key) }

    /// Removes the folder.
    func remove() {
        // The note is last: until then, the folder can be recognised.
        let names = (try? folder.names()) ?? []
        for name in names where Self.isDataName(name.text) { folder.remove(name.text) }
        folder.remove(TransferNote.name)
        guard destination.leads(name.part, to: folder.descriptor) else { return }
        destination.removeFolder(name.part)
    }

    /// Returns whether data, or a second name of it, has this name.
    static func isDataName(_ name: String) -> Bool {
        let key = name.hasSuffix(newSuffix) ? String(name.dropLast(newSuffix.count)) : name
        return key.utf8.count == 32 && [UInt8](hexadecimal: key) != nil
    }

    /// Follows the name of a file that is about to replace another.
    static let newSuffix = ".new"
}

extension OpenFolder {
    /// Opens the folder at a path in this one, without following links. Returns nil if there is none.
    func folder(at names: some Sequence<String>) throws(FileFailure) -> OpenFolder? {
        var folder = self
        for name in names {
            guard let next = try folder.folder(name) else { return nil }
            folder = next
        }
        return folder
    }
}
