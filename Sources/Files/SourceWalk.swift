import Glibc
import NighCore

/// Lists the files and folders to send, with the content of the folders.
struct SourceWalk {
    /// A file or folder that was found.
    struct Node {
        /// The index of the folder that it is in; nil for a file or folder that the user named.
        let parent: Int?
        /// The name in that folder, or the path that the user named. With a zero behind it.
        let name: [CChar]
        /// The status that the file system reported.
        let status: stat
    }

    /// The files and folders to offer, in order.
    private(set) var items: [FileItem] = []
    /// The node of each item.
    private(set) var nodes: [Node] = []
    /// The files and folders that are not offered, with the reasons.
    private(set) var skipped: [SourceTree.Skipped] = []
    /// The open files, by item, that cannot be opened once more.
    private(set) var held: [Int: any SourceFile] = [:]

    /// The bytes of the items in the list of the offer.
    private var listedBytes = 0
    private let limit: Int
    private let giveUp: Duration
    /// The path of the entry for each name that is offered.
    private var tops: [[UInt8]: String] = [:]

    init(limit: Int, giveUp: Duration) {
        self.limit = limit
        self.giveUp = giveUp
    }

    // MARK: The user's files and folders

    /// Adds the standard input.
    mutating func addStandardInput(as name: String) throws(FileFailure) {
        let label = "the standard input"
        let number = dup(STDIN_FILENO)
        guard number >= 0 else { throw .system("\(label) cannot be read") }
        try addFile(
            Top(path: label, name: name, file: OpenDescriptor(number), isNamed: false), held: true)
    }

    /// Adds the file at `path`, or the folder with all that is in it.
    mutating func add(_ path: String, as name: String?) throws(FileFailure) {
        let file = try Self.open(path)
        let name = if let name { name } else { try Self.name(of: path) }
        let top = Top(path: path, name: name, file: file, isNamed: true)
        guard file.status?.kind == S_IFDIR else { return try addFile(top, held: false) }
        let status = try add(top, .folder, nil)
        try addContent(of: OpenFolder(file, path: path), status, index: items.count - 1)
    }

    private struct Top {
        let path: String
        let name: String
        let file: OpenDescriptor
        /// Whether it has a path.
        let isNamed: Bool
    }

    private mutating func addFile(_ top: Top, held isHeld: Bool) throws(FileFailure) {
        guard let status = top.file.status else { throw .system("\(top.path) cannot be read") }
        let number = top.file.number
        let isPlain = status.kind == S_IFREG && lseek(number, 0, SEEK_CUR) == 0
        let size = isPlain ? try Self.trueSize(of: top.file, status, top.path) : nil
        let index = items.count
        try add(top, .file, size)
        if let size, isHeld {
            held[index] = SeekableFile(top.file, label: top.path, size: size, status)
        } else if isHeld || !isPlain {
            let isNamedPipe = top.isNamed && status.kind == S_IFIFO
            held[index] = SequentialFile(
                top.file, label: top.path, waitingForWriter: isNamedPipe ? giveUp : nil)
        }
    }

    @discardableResult
    private mutating func add(_ top: Top, _ kind: FileItem.Kind, _ size: Int?) throws(FileFailure) -> stat {
        guard let status = top.file.status else { throw .system("\(top.path) cannot be read") }
        let bytes = Array(top.name.utf8)
        guard !bytes.isEmpty, !bytes.contains(UInt8(ascii: "/")), !bytes.contains(0), top.name != ".",
            top.name != "..", bytes.count <= FileItem.longestPath
        else {
            throw FileFailure("\(top.path) cannot be sent under the name \"\(top.name)\"")
        }
        if let other = tops[bytes] {
            throw FileFailure(
                "\(other) and \(top.path) would both arrive as \(top.name); send one of them under another name"
            )
        }
        tops[bytes] = top.path
        try append(
            Node(parent: nil, name: Array(top.path.utf8CString), status: status), kind, path: top.name,
            label: top.path, size)
        return status
    }

    /// Opens a file or folder that the user named, without waiting for a writer if it is a pipe.
    private static func open(_ path: String) throws(FileFailure) -> OpenDescriptor {
        let flags = O_RDONLY | O_CLOEXEC | O_NOCTTY
        var number = Glibc.open(path, flags | O_NONBLOCK)
        // Another program holds a lease on the file, and gives it up in a moment.
        if number < 0, errno == EWOULDBLOCK { number = Glibc.open(path, flags) }
        guard number >= 0 else { throw .system("\(path) cannot be read") }
        return OpenDescriptor(number)
    }

    private static func name(of path: String) throws(FileFailure) -> String {
        if let last = path.pathComponents.last, last != ".", last != ".." { return last }
        guard let real = realpath(path, nil) else { throw .system("\(path) cannot be read") }
        defer { free(real) }
        guard let last = String(cString: real).pathComponents.last else {
            throw FileFailure("\(path) has no name that it could be sent under")
        }
        return last
    }

    // MARK: The content of folders

    private mutating func addContent(
        of folder: OpenFolder, _ status: stat, index: Int
    ) throws(FileFailure) {
        // One name more than there is room for shows that there are too many.
        let names = try folder.names(atMost: limit - items.count - skipped.count + 1).sorted()
        var texts: Set<[UInt8]> = []
        for name in names {
            let path = "\(items[index].path)/\(name.text)"
            let label = folder.path(of: name.text)
            guard texts.insert(Array(name.text.utf8)).inserted else {
                try skip(label, "its name is not UTF-8, and looks like that of another file")
                continue
            }
            var status = stat()
            let isThere = name.bytes.withUnsafeBufferPointer {
                fstatat(folder.descriptor.number, $0.baseAddress!, &status, AT_SYMLINK_NOFOLLOW) == 0
            }
            // It was removed meanwhile.
            guard isThere else { continue }
            let node = Node(parent: index, name: name.bytes, status: status)
            switch status.kind {
            case S_IFREG:
                let size: Int?
                do throws(FileFailure) {
                    size = try self.size(of: node, in: folder, label)
                } catch {
                    if error.lacksDescriptors { throw error }
                    try skip(label, "it cannot be read")
                    continue
                }
                try append(node, .file, path: path, label: label, size)
            case S_IFDIR:
                let inner: OpenFolder
                do throws(FileFailure) {
                    inner = try Self.folder(name, in: folder, label)
                } catch {
                    if error.lacksDescriptors { throw error }
                    try skip(label, "it cannot be read")
                    continue
                }
                try append(node, .folder, path: path, label: label, nil)
                try addContent(of: inner, status, index: items.count - 1)
            case S_IFLNK: try skip(label, "it is a symbolic link")
            case S_IFIFO: try skip(label, "it is a pipe")
            case S_IFSOCK: try skip(label, "it is a socket")
            default: try skip(label, "it is a device")
            }
        }
    }

    private static func folder(
        _ name: EntryName, in folder: OpenFolder, _ label: String
    ) throws(FileFailure) -> OpenFolder {
        let number = name.bytes.withUnsafeBufferPointer {
            openat(folder.descriptor.number, $0.baseAddress!, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        }
        guard number >= 0 else { throw .system("\(label) cannot be read") }
        return OpenFolder(OpenDescriptor(number), path: label)
    }

    /// Returns the size of a file in a folder; nil if the file system does not state it truly.
    private func size(of node: Node, in folder: OpenFolder, _ label: String) throws(FileFailure) -> Int? {
        // Only a file that occupies nothing on a disk can be one that the kernel generates.
        guard node.status.st_blocks == 0 else {
            let isReadable = node.name.withUnsafeBufferPointer {
                faccessat(folder.descriptor.number, $0.baseAddress!, R_OK, 0) == 0
            }
            guard isReadable else { throw .system("\(label) cannot be read") }
            return Int(node.status.st_size)
        }
        let file = try SourceTree.open(node, in: folder.descriptor, label)
        return try Self.trueSize(of: file, node.status, label)
    }

    /// Returns the size of a file; nil if it has not as many bytes as it reports. Files that the kernel generates when
    /// they are read report 0, or one page.
    private static func trueSize(
        of file: OpenDescriptor, _ status: stat, _ label: String
    ) throws(FileFailure) -> Int? {
        let size = Int(status.st_size)
        var byte: UInt8 = 0
        let last = size > 0 ? withUnsafeMutableBytes(of: &byte) { file.read(into: $0, at: size - 1) } : 1
        let next = withUnsafeMutableBytes(of: &byte) { file.read(into: $0, at: size) }
        guard last >= 0, next >= 0 else { throw .system("reading \(label)") }
        return last == 1 && next == 0 ? size : nil
    }

    // MARK: Limits

    private mutating func append(
        _ node: Node, _ kind: FileItem.Kind, path: String, label: String, _ size: Int?
    ) throws(FileFailure) {
        try checkCount()
        guard path.utf8.count <= FileItem.longestPath, path.pathComponents.count <= FileItem.mostComponents
        else {
            throw FileFailure(
                "\(label) lies too deep: a path has at most \(FileItem.mostComponents) names and \(FileItem.longestPath) bytes"
            )
        }
        let isPlain = node.status.kind == S_IFREG
        let item = FileItem(
            kind, path: path, size: kind == .folder ? 0 : size,
            modified: isPlain && size != nil ? node.status.modified : nil,
            isExecutable: isPlain && node.status.st_mode & S_IXUSR != 0)
        listedBytes += item.listedBytes
        guard listedBytes <= FileRecord.mostListedBytes else {
            throw FileFailure(
                "the paths of these files have more than \(FileRecord.mostListedBytes) bytes in all; send them in parts"
            )
        }
        items.append(item)
        nodes.append(node)
    }

    private mutating func skip(_ label: String, _ reason: String) throws(FileFailure) {
        try checkCount()
        skipped.append(SourceTree.Skipped(path: label, reason: reason))
    }

    private func checkCount() throws(FileFailure) {
        guard items.count + skipped.count < limit else {
            throw FileFailure(
                "there are more than \(limit) files and folders, which is the most that is sent at once")
        }
    }
}
