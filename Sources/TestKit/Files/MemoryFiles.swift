import Glibc
import NighCore
import NighFiles

/// Files in memory that are offered to a peer, for tests.
package final class MemoryFiles: FileSource {
    /// The bytes of each item; empty for folders.
    package var contents: [[UInt8]]
    package var items: [FileItem]
    /// Items that cannot be opened.
    package var unreadable: Set<Int> = []
    /// Whether too many files are open, so that none can be opened.
    package var lacksDescriptors = false
    /// Items whose size is said to be unknown, and that can be read only once.
    package let pipes: Set<Int>

    /// Offers these files. A path that ends in "/" is a folder.
    package init(_ files: [(path: String, bytes: [UInt8])], pipes: Set<Int> = []) {
        contents = files.map(\.bytes)
        self.pipes = pipes
        items = files.enumerated().map { index, file in
            file.path.hasSuffix("/")
                ? FileItem(.folder, path: String(file.path.dropLast()), size: 0)
                : FileItem(path: file.path, size: pipes.contains(index) ? nil : file.bytes.count)
        }
    }

    package func open(_ index: Int) throws(FileFailure) -> any SourceFile {
        guard !unreadable.contains(index) else { throw FileFailure("\(items[index].path) cannot be read") }
        guard !lacksDescriptors else { throw .system("opening \(items[index].path)", EMFILE) }
        return OpenFile(self, index)
    }

    private final class OpenFile: SourceFile {
        private let files: MemoryFiles
        private let index: Int
        private let opened: [UInt8]
        /// The bytes that were read.
        private var position = 0

        init(_ files: MemoryFiles, _ index: Int) {
            self.files = files
            self.index = index
            opened = files.contents[index]
        }

        var isSeekable: Bool { !files.pipes.contains(index) }

        func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileFailure) -> Int {
            guard isSeekable || offset == position else {
                throw FileFailure("\(files.items[index].path) cannot be read again from its beginning")
            }
            let piece = files.contents[index].dropFirst(offset).prefix(bytes.count)
            bytes.copyBytes(from: piece)
            position = offset + piece.count
            return piece.count
        }

        func checkUnchanged(_ count: Int) throws(FileFailure) {
            guard count == opened.count, files.contents[index] == opened else {
                throw FileFailure(
                    "\(files.items[index].path) changed while it was sent", .changed,
                    other: "the file changed while it was sent")
            }
        }
    }
}

/// A disk in memory that outlives the programs which receive files on it, for tests.
package final class MemoryDisk {
    /// The received bytes of files that are not whole.
    package var parts: [String: [UInt8]] = [:]
    /// The whole files, under their names.
    package var files: [String: [UInt8]] = [:]
    package var folders: Set<String> = []
    /// The files that earlier transfers of an offer kept: the name and the hash, by the path in the offer.
    package var kept: [String: (name: String, hash: [UInt8])] = [:]
    /// The bytes that fit in all.
    package var capacity = Int.max
    /// The writes after which a byte of what was written changes, counted down.
    package var writesBeforeDamage: Int?
    /// The most parts that can be open at once.
    package var mostOpen = Int.max
    /// Whether other programs leave what is written alone, as far as a receiver can tell.
    package var isUntouched = true
    /// The open ones of the files that are not whole. As on a real disk, each is opened once at a time.
    private var open: Set<String> = []

    package init() {}

    package var used: Int {
        parts.values.reduce(0) { $0 + $1.count } + files.values.reduce(0) { $0 + $1.count }
    }

    /// Returns where a new program receives an offer.
    package func store(for items: [FileItem]) -> any FileStore { Store(self, items) }

    private final class Store: FileStore {
        private let disk: MemoryDisk
        private let items: [FileItem]

        init(_ disk: MemoryDisk, _ items: [FileItem]) {
            self.disk = disk
            self.items = items
        }

        var room: Int? { disk.capacity - disk.used }

        var present: Int {
            items.reduce(0) { sum, item in
                sum + (disk.kept[item.path] != nil ? item.size ?? 0 : disk.parts[item.path]?.count ?? 0)
            }
        }

        func open(_ index: Int) throws(FileFailure) -> StoredItem {
            let item = items[index]
            if item.kind == .folder {
                disk.folders.insert(item.path)
                return .folder
            }
            if let kept = disk.kept[item.path] { return .kept(path: kept.name, hash: kept.hash) }
            return .part(try Part(disk, item.path, size: item.size))
        }

        func openAnew(_ index: Int) throws(FileFailure) -> any StoredPart {
            disk.kept[items[index].path] = nil
            return try Part(disk, items[index].path, size: nil)
        }

        func finish() { for item in items { disk.kept[item.path] = nil } }
    }

    private final class Part: StoredPart {
        private let disk: MemoryDisk
        private let path: String
        private let size: Int?

        init(_ disk: MemoryDisk, _ path: String, size: Int?) throws(FileFailure) {
            guard disk.open.count < disk.mostOpen else { throw .system("opening \(path)", EMFILE) }
            guard disk.open.insert(path).inserted else {
                throw FileFailure("\(path) is open", other: "it is being received there already")
            }
            self.disk = disk
            self.path = path
            self.size = size
            count = disk.parts[path]?.count ?? 0
        }

        deinit { disk.open.remove(path) }

        let count: Int
        var isUntouched: Bool { disk.isUntouched }

        func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileFailure) -> Int {
            let piece = (disk.parts[path] ?? []).dropFirst(offset).prefix(bytes.count)
            bytes.copyBytes(from: piece)
            return piece.count
        }

        func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileFailure) {
            let held = count(of: path)
            guard max(0, offset + bytes.count - held) <= disk.capacity - disk.used else {
                throw FileFailure("the disk is full", .noSpace, other: "no space is left")
            }
            precondition(offset <= held, "a gap in \(path)")
            disk.parts[path, default: []].replaceSubrange(
                offset..<min(offset + bytes.count, held), with: bytes)
            guard let left = disk.writesBeforeDamage else { return }
            disk.writesBeforeDamage = left > 0 ? left - 1 : nil
            if left == 0 { disk.parts[path]?[offset] ^= 0x20 }
        }

        private func count(of path: String) -> Int { disk.parts[path]?.count ?? 0 }

        func truncate(to count: Int) throws(FileFailure) {
            disk.parts[path] = Array((disk.parts[path] ?? []).prefix(count))
        }

        func keep(_ hash: [UInt8]) throws(FileFailure) -> String? {
            var name = path
            var number = 1
            while disk.files[name] != nil {
                number += 1
                name = "\(path) (\(number))"
            }
            disk.files[name] = disk.parts[path] ?? []
            disk.parts[path] = nil
            disk.kept[path] = (name, hash)
            return name
        }

        func discard() { disk.parts[path] = nil }

        func mayBeThere() -> Bool { size.map { disk.files[path]?.count == $0 } ?? false }

        func compareNext(with hash: [UInt8]) throws(FileFailure) -> Comparison {
            guard let there = disk.files[path], there.withUnsafeBytes({ SHA256.hash($0) }) == hash else {
                return .other
            }
            disk.kept[path] = (path, hash)
            return .same(path: path)
        }
    }
}
