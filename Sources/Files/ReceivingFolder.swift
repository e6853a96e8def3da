import Glibc
import NighCore

/// The folder that files are received into. It is held open, and everything happens by names in the open folder:
/// nothing is written anywhere else.
package final class ReceivingFolder: Sendable {
    let folder: OpenFolder

    /// Opens the folder. Throws if `path` is no folder, or if it cannot be written to.
    package init(_ path: String) throws(FileFailure) {
        let number = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { throw .system("files cannot be written to \(path)") }
        folder = OpenFolder(OpenDescriptor(number), path: path)
        guard faccessat(number, ".", W_OK | X_OK, 0) == 0 else {
            throw .system("files cannot be written to \(path)")
        }
    }

    /// The path as the user gave it.
    package var path: String { folder.path }

    /// Returns the path of the file with that name.
    package func path(of name: String) -> String { folder.path(of: name) }

    /// Returns whether anything has that name.
    package func has(_ name: String) -> Bool { folder.has(name) }

    /// The number of free bytes; nil if the file system does not say.
    package var room: Int? { folder.room }

    /// Finds the transfers that were not received completely, in the order of the names.
    package func unfinished() throws(FileFailure) -> [UnfinishedTransfer] {
        let parts = try folder.names().map(\.text).filter { $0.hasSuffix(".part") }.sorted()
        var found: [UnfinishedTransfer] = []
        for part in parts { if let transfer = try transfer(part) { found.append(transfer) } }
        return found
    }

    private func transfer(_ part: String) throws(FileFailure) -> UnfinishedTransfer? {
        guard let inner = try PartFolder.ownFolder(part, in: folder),
            let content = try TransferNote.content(in: inner), let names = try? inner.names()
        else { return nil }
        let files = names.filter { PartFolder.isDataName($0.text) || $0.text == TransferNote.name }
        let statuses = files.compactMap { name in inner.status(of: name.text).map { (name.text, $0) } }
        return UnfinishedTransfer(
            path: inner.path, sender: content.header.sender, name: content.header.name,
            partialBytes: statuses.reduce(0) { sum, file in
                file.0.utf8.count == 32 ? sum + Int(file.1.st_size) : sum
            },
            keptFiles: content.kept.count, lastChange: statuses.compactMap(\.1.modified).max() ?? 0,
            part: part)
    }

    /// Removes the data of an unfinished transfer. The files that are whole and have their names stay. Throws if the
    /// transfer is being continued.
    package func remove(_ transfer: UnfinishedTransfer) throws(FileFailure) {
        let location = PartFolder.Location(
            destination: folder, base: SafeFileName(keeping: String(transfer.part.dropLast(5))), number: 1)
        guard let part = try PartFolder.open(location, sender: transfer.sender, name: transfer.name) else {
            guard folder.has(transfer.part) else { return }
            throw FileFailure("\(transfer.path) is in use, and stays")
        }
        part.remove()
        guard !folder.has(transfer.part) else {
            throw FileFailure("\(transfer.path) holds other files, which stay")
        }
    }
}
