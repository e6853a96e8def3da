import Glibc

/// A folder that is held open. Everything in it is reached by a name in the open folder, so nothing happens anywhere
/// else, even if its path leads elsewhere by then.
package final class OpenFolder: Sendable {
    /// The path that a person sees.
    package let path: String
    let descriptor: OpenDescriptor

    init(_ descriptor: OpenDescriptor, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    /// Opens the folder that the user names. Symbolic links are followed.
    package init(_ path: String) throws(FileFailure) {
        let number = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { throw .system("\(path) cannot be opened") }
        self.path = path
        descriptor = OpenDescriptor(number)
    }

    /// Returns the path for a name in the folder.
    package func path(of name: String) -> String {
        path == "." ? name : path.hasSuffix("/") ? "\(path)\(name)" : "\(path)/\(name)"
    }

    // MARK: Looking

    /// The number of free bytes; nil if the file system does not say.
    package var room: Int? {
        var about = statvfs()
        guard fstatvfs(descriptor.number, &about) == 0, about.f_frsize > 0, about.f_blocks > 0 else {
            return nil
        }
        let (bytes, isTooMany) = Int(clamping: about.f_bavail).multipliedReportingOverflow(
            by: Int(clamping: about.f_frsize))
        return isTooMany ? .max : bytes
    }

    /// Returns the status of the file or folder with that name, without following a link; nil if there is none.
    func status(of name: String) -> stat? {
        var status = stat()
        return fstatat(descriptor.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
    }

    /// Returns whether anything has that name.
    package func has(_ name: String) -> Bool { status(of: name) != nil }

    /// Returns whether a file may take that name: if a plain file, a link or nothing has it, but no device, pipe or
    /// folder.
    func isReplaceable(_ name: String) -> Bool {
        guard let kind = status(of: name)?.kind else { return true }
        return kind == S_IFREG || kind == S_IFLNK
    }

    /// Returns whether that name leads to the open file or folder, and not to something else that was put there.
    func leads(_ name: String, to file: OpenDescriptor) -> Bool {
        guard let named = status(of: name), let opened = file.status else { return false }
        return named.isSameFile(as: opened)
    }

    /// Whether the path still leads to the open folder.
    var isInPlace: Bool {
        var named = stat()
        guard stat(path, &named) == 0, let opened = descriptor.status else { return false }
        return named.isSameFile(as: opened)
    }

    /// Returns the names in the folder, as the file system has them, in no order. Ends early after `limit` names.
    package func names(atMost limit: Int = .max) throws(FileFailure) -> [EntryName] {
        // Another open file, since reading moves its position.
        let number = openat(descriptor.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0, let stream = fdopendir(number) else {
            let failure = FileFailure.system("\(path) cannot be read")
            if number >= 0 { close(number) }
            throw failure
        }
        defer { closedir(stream) }
        var names: [EntryName] = []
        while names.count < limit {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw .system("\(path) cannot be read") }
                break
            }
            if let name = EntryName(entry) { names.append(name) }
        }
        return names
    }

    // MARK: Changing it

    /// Opens the folder of that name. Returns nil if there is none; a link to a folder is none. Throws only if too many
    /// files are open, which says nothing about the name.
    func folder(_ name: String) throws(FileFailure) -> OpenFolder? {
        let number = openat(
            descriptor.number, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        if number < 0 { try throwIfDescriptorsLack(for: name) }
        return number < 0 ? nil : OpenFolder(OpenDescriptor(number), path: path(of: name))
    }

    private func throwIfDescriptorsLack(for name: String) throws(FileFailure) {
        guard errno == EMFILE || errno == ENFILE else { return }
        throw .system("\(path(of: name)) cannot be opened")
    }

    /// Creates a folder of that name. Returns false if the name is taken.
    func makeFolder(_ name: String, mode: mode_t = 0o777) throws(FileFailure) -> Bool {
        if mkdirat(descriptor.number, name, mode) == 0 { return true }
        guard errno == EEXIST else { throw .system("creating \(path(of: name))") }
        return false
    }

    /// Creates and opens a folder of that name, which is on the disk then. Returns nil if the name is taken.
    func newFolder(_ name: String) throws(FileFailure) -> OpenFolder? {
        guard try makeFolder(name) else { return nil }
        sync()
        guard let folder = try folder(name) else { throw .system("\(path(of: name)) cannot be opened") }
        return folder
    }

    /// Opens a plain file, without following a link. Returns nil if that fails, with the reason in `errno`. Throws only
    /// if too many files are open, which says nothing about the name.
    package func open(_ name: String, _ flags: Int32) throws(FileFailure) -> OpenDescriptor? {
        let number = openat(
            descriptor.number, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0o644)
        if number < 0 { try throwIfDescriptorsLack(for: name) }
        return number < 0 ? nil : OpenDescriptor(number)
    }

    /// Gives an open file a name in this folder. Returns false if that fails, with the reason in `errno`.
    func link(_ file: OpenDescriptor, as name: String) -> Bool {
        linkat(AT_FDCWD, "/proc/self/fd/\(file.number)", descriptor.number, name, AT_SYMLINK_FOLLOW) == 0
    }

    /// Moves a file to another folder, where it replaces any file with its new name.
    func move(_ name: String, to folder: OpenFolder, as newName: String) throws(FileFailure) {
        guard renameat(descriptor.number, name, folder.descriptor.number, newName) == 0 else {
            throw .system("creating \(folder.path(of: newName))")
        }
    }

    /// Removes the file of that name.
    package func remove(_ name: String) { unlinkat(descriptor.number, name, 0) }

    /// Removes the folder of that name if it is empty. Returns false if that fails.
    @discardableResult
    func removeFolder(_ name: String) -> Bool { unlinkat(descriptor.number, name, AT_REMOVEDIR) == 0 }

    /// Flushes the folder's names to the disk.
    func sync() { fsync(descriptor.number) }
}

/// A name in a folder, as the file system has it. It need not be text.
package struct EntryName: Comparable {
    /// The bytes, with a zero behind them.
    let bytes: [CChar]

    /// Creates the name of an entry; nil for the entries of the folder itself and of the one it is in.
    init?(_ entry: UnsafeMutablePointer<dirent>) {
        let length = Int(entry.pointee.d_reclen) - MemoryLayout<dirent>.offset(of: \.d_name)!
        bytes = withUnsafePointer(to: &entry.pointee.d_name) { name in
            name.withMemoryRebound(to: CChar.self, capacity: length) {
                Array(UnsafeBufferPointer(start: $0, count: strlen($0) + 1))
            }
        }
        if text == "." || text == ".." { return nil }
    }

    /// The name as text. Bytes that are not UTF-8 become U+FFFD.
    package var text: String {
        String(decoding: bytes.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Whether the name is UTF-8.
    var isText: Bool { text.utf8.elementsEqual(bytes.dropLast().map(UInt8.init(bitPattern:))) }

    package static func < (left: EntryName, right: EntryName) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes) { UInt8(bitPattern: $0) < UInt8(bitPattern: $1) }
    }
}
