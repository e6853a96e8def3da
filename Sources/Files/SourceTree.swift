import Glibc
import NighCore

/// The files and folders of this computer that are sent in one offer.
///
/// Links that the user names are followed. Links, pipes, sockets and devices in folders are not sent; ``skipped`` names
/// them. Only a pipe that the user names is held open: every other file is opened when it is sent.
package final class SourceTree: FileSource {
    /// A file, a folder or the standard input that the user wants to send.
    package enum Entry: Sendable {
        /// A file or a folder, under its own name or another.
        case path(String, as: String? = nil)
        case standardInput(as: String)
    }

    /// Something in a folder that is not sent.
    package struct Skipped: Sendable {
        /// The path that a person sees.
        package let path: String
        /// A sentence that begins with "it".
        package let reason: String
    }

    /// The items to offer: the entries in their order, and the content of each folder in the order of the names' bytes.
    package let items: [FileItem]
    /// The files and folders that are not sent.
    package let skipped: [Skipped]

    private let nodes: [SourceWalk.Node]
    private let held: [Int: any SourceFile]
    /// The folder that a file was last opened in.
    private var recent: (index: Int, folder: OpenDescriptor)?

    /// Finds everything that is to be sent. `giveUp` is how long to wait for a program that writes into a named pipe.
    package init(_ entries: [Entry], limit: Int = 100_000, giveUp: Duration) throws(FileFailure) {
        var walk = SourceWalk(limit: limit, giveUp: giveUp)
        for entry in entries {
            switch entry {
            case .path(let path, let name): try walk.add(path, as: name)
            case .standardInput(let name): try walk.addStandardInput(as: name)
            }
        }
        items = walk.items
        skipped = walk.skipped
        nodes = walk.nodes
        held = walk.held
    }

    package func open(_ index: Int) throws(FileFailure) -> any SourceFile {
        if let file = held[index] { return file }
        let node = nodes[index]
        let label = label(of: index)
        guard items[index].kind == .file else { throw FileFailure("\(label) is a folder") }
        let file = try Self.open(node, in: try folder(node.parent), label)
        guard let status = file.status else { throw .system("\(label) cannot be read") }
        guard let size = items[index].size else {
            guard status.kind == S_IFREG else { throw .changed(label) }
            return SequentialFile(file, label: label, waitingForWriter: nil)
        }
        guard status.isSameFile(as: node.status), status.isUnchanged(since: node.status) else {
            throw .changed(label)
        }
        return SeekableFile(file, label: label, size: size, status)
    }

    /// Opens a file that was found, without following a link unless the user named it.
    static func open(
        _ node: SourceWalk.Node, in folder: OpenDescriptor?, _ label: String
    ) throws(FileFailure) -> OpenDescriptor {
        let flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | (node.parent == nil ? 0 : O_NOFOLLOW)
        let number = node.name.withUnsafeBufferPointer { name in
            let base = folder?.number ?? AT_FDCWD
            let number = openat(base, name.baseAddress!, flags | O_NONBLOCK)
            // Another program holds a lease on the file, and gives it up in a moment.
            return number < 0 && errno == EWOULDBLOCK ? openat(base, name.baseAddress!, flags) : number
        }
        guard number >= 0 else {
            // The file or folder is gone, or something else has its name.
            let isGone = errno == ENOENT || errno == ENOTDIR || errno == ELOOP
            throw isGone ? .changed(label) : .system("\(label) cannot be read")
        }
        return OpenDescriptor(number)
    }

    /// Opens the folder of that index; nil for files and folders that the user named.
    private func folder(_ index: Int?) throws(FileFailure) -> OpenDescriptor? {
        guard let index else { return nil }
        if let recent, recent.index == index { return recent.folder }
        let node = nodes[index]
        let label = label(of: index)
        let folder = try Self.open(node, in: try folder(node.parent), label)
        guard let status = folder.status, status.isSameFile(as: node.status) else { throw .changed(label) }
        recent = (index, folder)
        return folder
    }

    /// The path that a person sees.
    private func label(of index: Int) -> String {
        let node = nodes[index]
        let name = String(decoding: node.name.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        guard let parent = node.parent else { return name }
        let folder = label(of: parent)
        return folder == "." ? name : folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
    }
}

extension FileFailure {
    /// The failure for a file that is no longer the one that was offered.
    static func changed(_ label: String) -> FileFailure {
        FileFailure(
            "\(label) changed while it was sent; send it again once it no longer changes", .changed,
            other: "the file changed while it was sent")
    }
}
