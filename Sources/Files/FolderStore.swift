import Glibc
import NighCore

/// Receives the files of one offer into a folder.
///
/// A folder `NAME.part` holds each offered file or folder until it is complete. Everything that this store needs to
/// continue with the same sender is there, so that nothing is lost if the program is killed.
package final class FolderStore: FileStore {
    private let destination: OpenFolder
    private let sender: PeerID
    private let items: [FileItem]
    private let replaces: Bool
    private let finalName: SafeFileName?
    private let skipsCopies: Bool
    private let keepsModes: Bool

    /// A file that is offered by itself, or a folder that is offered with all that is in it. There may be one for each
    /// item, so it takes little memory.
    private struct Top {
        /// The first item that is it or in it.
        let item: Int
        /// Whether it is a file.
        var isFile: Bool
    }

    private var tops: [Top] = []
    /// The index in `tops` for each item.
    private var topIndices: [Int32] = []
    /// The numbers of the parts that earlier transfers left, by the name without a number. Nil until they are looked
    /// for.
    private var leftNumbers: [String: [Int]]?
    /// The number of the part of each top that was opened, by its index.
    private var numbers: [Int: Int] = [:]
    /// The parts that something still refers to.
    private var openParts: [Int: WeakReference<PartFolder>] = [:]
    /// The last parts that were used. Of more, the descriptors would not suffice.
    private var recent: [PartFolder] = []

    private static let mostRecent = 16

    /// Creates the store for an offer.
    ///
    /// - Parameters:
    ///   - finalName: the name that a single file gets, regardless of the sender's name for it.
    ///   - skipsCopies: whether a file that is there already, in its place and with the same content, is not stored a
    ///     second time. The result then names the file that was there.
    ///   - keepsModes: whether files are executable that are so at the sender's.
    package init(
        _ folder: ReceivingFolder, sender: PeerID, items: [FileItem], replacing: Bool = false,
        finalName: SafeFileName? = nil, skipsCopies: Bool = false, keepsModes: Bool = false
    ) {
        destination = folder.folder
        self.sender = sender
        self.items = items
        replaces = replacing
        self.finalName = finalName
        topIndices.reserveCapacity(items.count)
        self.skipsCopies = skipsCopies
        self.keepsModes = keepsModes
        var indices: [[UInt8]: Int] = [:]
        for (index, item) in items.enumerated() {
            let components = item.components
            let top = indices[Array((components.first ?? "").utf8), default: tops.count]
            if top == tops.count {
                indices[Array((components.first ?? "").utf8)] = top
                tops.append(Top(item: index, isFile: true))
            }
            if item.kind == .folder || components.count > 1 { tops[top].isFile = false }
            topIndices.append(Int32(top))
        }
    }

    package var room: Int? { destination.room }

    package var present: Int {
        get throws(FileFailure) {
            guard try !findLeftNumbers().isEmpty else { return 0 }
            var sum = 0
            var last: (top: Int32, part: PartFolder?)?
            for (index, item) in items.enumerated() where item.kind == .file {
                let top = topIndices[index]
                if last?.top != top { last = (top, try leftPart(of: Int(top))) }
                guard let part = last?.part else { continue }
                let key = PartFolder.key(of: item.path)
                if part.isComplete(key) {
                    sum += item.size ?? 0
                } else if let status = part.folder.status(of: key) {
                    // Space that an earlier version reserved for the file is not free. Opening the file gives it back.
                    sum += min(max(Int(status.st_size), Int(status.st_blocks) * 512), item.size ?? .max)
                }
            }
            return sum
        }
    }

    package func open(_ index: Int) throws(FileFailure) -> StoredItem {
        let item = items[index]
        let part = try part(for: index)
        guard item.kind == .file else {
            let isThere = skipsCopies ? try !part.earlierFolders(item.components).isEmpty : false
            if !isThere { _ = try part.finalFolder(item.components) }
            return .folder
        }
        let key = PartFolder.key(of: item.path)
        if let kept = try part.keptFile(key, item.components) {
            return .kept(path: destination.path(of: kept.path), hash: kept.hash)
        }
        return .part(
            try PartFile(
                item, key, in: part, replacing: replaces, skipsCopies: skipsCopies, keepsMode: keepsModes))
    }

    package func openAnew(_ index: Int) throws(FileFailure) -> any StoredPart {
        let item = items[index]
        return try PartFile(
            item, PartFolder.key(of: item.path), in: try part(for: index), replacing: replaces,
            skipsCopies: skipsCopies, keepsMode: keepsModes)
    }

    package func finish() {
        let inTops = Dictionary(grouping: items.indices) { topIndices[$0] }
        for top in tops.indices {
            // A part that cannot be opened now stays until the same is received again, which removes it.
            guard numbers[top] != nil, let part = try? openPart(top) else { continue }
            let isComplete = inTops[Int32(top)]?.allSatisfy { index in
                items[index].kind == .folder || part.isComplete(PartFolder.key(of: items[index].path))
            }
            guard isComplete == true else { continue }
            part.remove()
            numbers[top] = nil
            openParts[top] = nil
            recent.removeAll { $0 === part }
        }
    }

    // MARK: Parts

    /// Opens the part that an earlier transfer has left of an item's top, or creates it.
    private func part(for index: Int) throws(FileFailure) -> PartFolder {
        let components = items[index].components
        guard components.count <= FileItem.mostComponents else {
            throw FileFailure(
                "\(items[index].name) lies too deep: a path has at most \(FileItem.mostComponents) names",
                other: "the path of a file has too many names")
        }
        let top = Int(topIndices[index])
        if let part = try leftPart(of: top) { return part }
        let part = try createPart(of: top)
        use(part, for: top)
        return part
    }

    /// Returns the part of a top that is open, or that an earlier transfer left.
    private func leftPart(of top: Int) throws(FileFailure) -> PartFolder? {
        if let part = try openPart(top) { return part }
        guard let part = try findPart(of: top) else { return nil }
        use(part, for: top)
        return part
    }

    private func name(of top: Int) -> String { items[tops[top].item].components.first ?? "" }

    private func base(of top: Int) -> SafeFileName { finalName ?? SafeFileName(name(of: top)) }

    private func openPart(_ top: Int) throws(FileFailure) -> PartFolder? {
        if let part = openParts[top]?.object { return part }
        guard let number = numbers[top], let part = try openPart(of: top, number) else { return nil }
        use(part, for: top)
        return part
    }

    private func openPart(of top: Int, _ number: Int) throws(FileFailure) -> PartFolder? {
        let location = PartFolder.Location(destination: destination, base: base(of: top), number: number)
        return try PartFolder.open(location, sender: sender, name: name(of: top))
    }

    private func use(_ part: PartFolder, for top: Int) {
        numbers[top] = part.number
        if openParts.count > 4 * Self.mostRecent { openParts = openParts.filter { $0.value.object != nil } }
        openParts[top] = WeakReference(part)
        recent.append(part)
        if recent.count > Self.mostRecent { recent.removeFirst() }
    }

    private func findPart(of top: Int) throws(FileFailure) -> PartFolder? {
        let numbers = try findLeftNumbers()
        guard !numbers.isEmpty else { return nil }
        for number in numbers[base(of: top).text] ?? [] {
            if let part = try openPart(of: top, number) { return part }
        }
        return nil
    }

    private func findLeftNumbers() throws(FileFailure) -> [String: [Int]] {
        if let leftNumbers { return leftNumbers }
        var numbers: [String: [Int]] = [:]
        let suffix = ".part"
        for name in try destination.names() where name.text.hasSuffix(suffix) {
            let text = String(name.text.dropLast(suffix.count))
            numbers[text, default: []].append(1)
            if let (base, number) = SafeFileName.unnumbered(text) {
                numbers[base, default: []].append(number)
            }
        }
        numbers = numbers.mapValues { $0.sorted() }
        leftNumbers = numbers
        return numbers
    }

    /// Creates a part under the first number whose names are free. If files are replaced, a name is also free if its
    /// file may be.
    private func createPart(of top: Int) throws(FileFailure) -> PartFolder {
        let base = base(of: top)
        let isFile = tops[top].isFile
        for number in SafeFileName.numbers {
            let location = PartFolder.Location(destination: destination, base: base, number: number)
            let name = location.name
            let isTaken =
                replaces && isFile ? !destination.isReplaceable(name.text) : destination.has(name.text)
            guard !isTaken else { continue }
            if let part = try PartFolder.create(location, sender: sender, name: self.name(of: top)) {
                return part
            }
        }
        throw FileFailure("\(destination.path(of: base.text)) and all its numbered names exist")
    }
}
