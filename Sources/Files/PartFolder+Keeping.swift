import Glibc
import NighCore

/// Knows which files are whole, even if the program was killed while it gave one its name.
///
/// A file gets its name first, then its line in the note; only then its data loses the name in this folder. So a file
/// with two names, whose second name is one that it can have been given, is whole.
extension PartFolder {
    /// Notes that a file is whole and has its name.
    func record(_ key: String, _ final: Final, size: Int, _ hash: [UInt8]) throws(FileFailure) {
        final.folder.sync()
        try note.append(.kept(key: key, NoteContent.Kept(size: size, hash: hash, path: final.path)))
        try note.sync()
    }

    /// Returns the whole file with this key; nil if it is not whole. Completes a step that a killed program began.
    func keptFile(_ key: String, _ names: [String]) throws(FileFailure) -> NoteContent.Kept? {
        let kept = note.content.kept[key]
        guard hasSecondName(key) else { return try movedFile(key, unless: kept) ?? kept }
        guard let file = try folder.open(key, O_RDONLY) else {
            throw .system("reading \(folder.path(of: key))")
        }
        let outer = try finalFolder(names.dropLast())
        guard let name = candidates(names).first(where: { outer.folder.leads($0, to: file) }) else {
            return kept
        }
        let final = Final(folder: outer.folder, path: outer.path(of: name))
        if final.path != kept?.path { try record(key, final, of: file) }
        folder.remove(key)
        return note.content.kept[key]
    }

    /// Returns whether the data has another name. The one that it had in order to replace a file is removed.
    private func hasSecondName(_ key: String) -> Bool {
        guard let status = folder.status(of: key), status.kind == S_IFREG, status.st_nlink > 1 else {
            return false
        }
        let new = key + Self.newSuffix
        if folder.status(of: new)?.isSameFile(as: status) == true { folder.remove(new) }
        return folder.status(of: key).map { $0.st_nlink > 1 } ?? false
    }

    /// Returns the file that was moved to its name without being noted.
    private func movedFile(_ key: String, unless kept: NoteContent.Kept?) throws(FileFailure) -> NoteContent
        .Kept?
    {
        guard let (number, path) = note.content.moving[key], path != kept?.path, !folder.has(key) else {
            return nil
        }
        let names = path.pathComponents
        guard let name = names.last, let outer = try destination.folder(at: names.dropLast()),
            let file = try outer.open(name, O_RDONLY), let status = file.status, status.kind == S_IFREG,
            UInt64(status.st_ino) == number
        else { return nil }
        try record(key, Final(folder: outer, path: path), of: file)
        return note.content.kept[key]
    }

    private func record(_ key: String, _ final: Final, of file: OpenDescriptor) throws(FileFailure) {
        let (size, hash) = try Self.hash(of: file, destination.path(of: final.path))
        try record(key, final, size: size, hash)
    }

    private static func hash(
        of file: OpenDescriptor, _ path: String
    ) throws(FileFailure) -> (size: Int, hash: [UInt8]) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { buffer.deallocate() }
        let running = RunningHash()
        var size = 0
        while true {
            let count = file.read(into: buffer, at: size)
            guard count >= 0 else { throw .system("reading \(path)") }
            guard count > 0 else { return (size, running.value) }
            running.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            size += count
        }
    }
}
