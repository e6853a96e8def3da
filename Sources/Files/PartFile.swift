import Glibc
import NighCore

/// A file that is not whole yet. Its data is in the folder `NAME.part`; when it is whole, the open file gets its name.
///
/// The file is locked while it is open. Symbolic links are not followed, and only a plain file is opened that belongs
/// to this user and has no other name.
final class PartFile: StoredPart {
    private let part: PartFolder
    private let item: FileItem
    private let names: [String]
    private let key: String
    private let file: OpenDescriptor
    private let lease: FileLease
    private let replaces: Bool
    private let skipsCopies: Bool
    private(set) var count: Int
    /// The most bytes that a file system takes for the last block of a file without having reserved any.
    private static let mostSlack = 1 << 20
    /// Whether it has become a whole file, or was removed.
    private var isOver = false
    private let keepsMode: Bool
    /// The files that are there under its name and have not been compared; nil before the first is looked for.
    private var others: [(file: OpenDescriptor, PartFolder.Final)]?
    /// The hash of the first bytes of the first of them.
    private var otherHash = RunningHash()
    private var otherPosition = 0

    init(
        _ item: FileItem, _ key: String, in part: PartFolder, replacing: Bool, skipsCopies: Bool,
        keepsMode: Bool
    ) throws(FileFailure) {
        file = try part.openData(key)
        guard let status = file.status else { throw .system("reading \(part.folder.path(of: key))") }
        count = Int(status.st_size)
        // An earlier version reserved space for the whole file. Space that a killed program has left reserved is given
        // back.
        if Int(status.st_blocks) * 512 - count > Self.mostSlack { ftruncate(file.number, count) }
        lease = FileLease(of: file)
        names = item.components
        replaces = replacing
        self.skipsCopies = skipsCopies
        self.keepsMode = keepsMode
        self.item = item
        self.key = key
        self.part = part
    }

    deinit {
        defer { flock(file.number, LOCK_UN) }
        guard !isOver else { return }
        if count == 0 { discard() }
    }

    var isUntouched: Bool { lease.isHeld() }

    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileFailure) -> Int {
        let count = file.fill(bytes, at: offset)
        guard count >= 0 else { throw .system("reading \(part.folder.path(of: key))") }
        return count
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileFailure) {
        precondition(offset <= count, "there is a hole in front of these bytes")
        guard file.write(bytes, at: offset) else { throw failedWriting() }
        count = max(count, offset + bytes.count)
    }

    func truncate(to count: Int) throws(FileFailure) {
        precondition(
            count <= self.count, "a file that is shorter than \(count) bytes was to be shortened to that")
        guard ftruncate(file.number, count) == 0 else { throw failedWriting() }
        self.count = count
    }

    private func failedWriting() -> FileFailure {
        let failure = FileFailure.system("writing \(part.folder.path(of: key))")
        // A part of the last bytes may have been written. If another program has shortened the file, its lease is
        // broken, and the file is read again at its end.
        if let status = file.status { count = max(count, Int(status.st_size)) }
        return failure
    }

    func keep(_ hash: [UInt8]) throws(FileFailure) -> String? {
        if skipsCopies, let copy = try part.earlierCopy(of: file, names, hash) {
            // Without its data the file is whole as soon as the note says so, whenever the program is killed.
            discard()
            try part.record(key, copy, size: count, hash)
            return part.destination.path(of: copy.path)
        }
        try prepare()
        let final = try part.place(file, key, names, replacing: replaces)
        // From here on, other programs open the file by its name, and need not wait.
        lease.release()
        try part.record(key, final, size: count, hash)
        isOver = true
        removeData()
        return part.destination.path(of: final.path)
    }

    /// Sets mode and time, and flushes the file to the disk.
    private func prepare() throws(FileFailure) {
        guard let status = file.status else { throw failedWriting() }
        let readable = status.st_mode & 0o644
        // Users who may read a program may run it.
        let mode = keepsMode && item.isExecutable ? readable | (readable & 0o444) >> 2 : readable
        guard status.st_mode & 0o7777 == mode || fchmod(file.number, mode) == 0 else { throw failedWriting() }
        if let modified = item.modified {
            let (seconds, rest) = modified.quotientAndRemainder(dividingBy: 1_000_000_000)
            let time =
                rest < 0
                ? timespec(tv_sec: seconds - 1, tv_nsec: rest + 1_000_000_000)
                : timespec(tv_sec: seconds, tv_nsec: rest)
            // A file system that cannot store the time leaves the file as good as it is.
            _ = withUnsafeBytes(of: (time, time)) {
                futimens(file.number, $0.bindMemory(to: timespec.self).baseAddress)
            }
        }
        guard fsync(file.number) == 0 else { throw failedWriting() }
    }

    func mayBeThere() -> Bool {
        guard skipsCopies, let size = item.size, size > 0 else { return false }
        others = try? part.earlierFiles(names, size: size)
        return others?.isEmpty == false
    }

    func compareNext(with hash: [UInt8]) throws(FileFailure) -> Comparison {
        guard let (file, final) = others?.first else { return .other }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { buffer.deallocate() }
        let count = file.fill(buffer, at: otherPosition)
        if count > 0 {
            otherHash.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            otherPosition += count
            return .undecided
        }
        guard count == 0, otherPosition == item.size, otherHash.value == hash, fsync(file.number) == 0 else {
            others?.removeFirst()
            (otherHash, otherPosition) = (RunningHash(), 0)
            return others?.isEmpty == true ? .other : .undecided
        }
        others = nil
        discard()
        try part.record(key, final, size: otherPosition, hash)
        return .same(path: part.destination.path(of: final.path))
    }

    func discard() {
        guard !isOver else { return }
        isOver = true
        lease.release()
        removeData()
    }

    private func removeData() {
        if part.folder.leads(key, to: file) { part.folder.remove(key) }
    }
}
