import Glibc
import NighCore

/// Receives the files of one offer into a folder.
///
/// What is incomplete of each offered file or folder is in a folder `NAME.part`, from which the same sender can
/// continue. Everything that this store needs to continue is there, so that nothing is lost if the program is killed.
package final class FolderStore: FileStore {
    private let destination: OpenFolder
    private let sender: PeerID
    private let items: [FileItem]
    private let replaces: Bool
    private let finalName: SafeFileName?

    /// The files and folders that were offered by themselves: each name, and the items that are that or in it.
    private var tops: [(name: String, items: [Int])] = []
    /// The index in `tops` for each item.
    private var topIndices: [Int] = []
    /// The numbers of the parts that earlier transfers left, by the name without a number.
    private lazy var leftNumbers = findLeftNumbers()
    /// The number of the part of each top that was opened, by its index.
    private var numbers: [Int: Int] = [:]
    /// The parts that something still refers to.
    private var openParts: [Int: Weak] = [:]
    /// The last parts that were used. Of more, the descriptors would not suffice.
    private var recent: [PartFolder] = []

    private struct Weak { weak var part: PartFolder? }
    private static let mostRecent = 16

    /// Creates the store for an offer. `finalName` is the name that a single file gets, whatever the sender calls it.
    package init(
        _ folder: ReceivingFolder, sender: PeerID, items: [FileItem], replacing: Bool = false,
        finalName: SafeFileName? = nil
    ) {
        destination = folder.folder
        self.sender = sender
        self.items = items
        replaces = replacing
        self.finalName = finalName
        var indices: [[UInt8]: Int] = [:]
        for (index, item) in items.enumerated() {
            let name = item.components.first ?? ""
            let top = indices[Array(name.utf8)] ?? tops.count
            if top == tops.count {
                indices[Array(name.utf8)] = top
                tops.append((name, []))
            }
            tops[top].items.append(index)
            topIndices.append(top)
        }
    }

    /// Leaves no trace of what never had any bytes, once its files are closed.
    deinit {
        for index in numbers.keys { openPart(index)?.isTemporary = true }
    }

    package var room: Int? { destination.room }

    package var present: Int {
        items.indices.reduce(0) { sum, index in
            guard items[index].kind == .file, let part = leftPart(of: topIndices[index]) else { return sum }
            let key = PartFolder.key(of: items[index].path)
            guard !part.isComplete(key) else { return sum + (items[index].size ?? 0) }
            guard let status = part.folder.status(of: key) else { return sum }
            // What was reserved for the file is not free any more, and it is the file that needs it.
            let held = max(Int(status.st_size), Int(status.st_blocks) * 512)
            return sum + min(held, items[index].size ?? held)
        }
    }

    package func open(_ index: Int) throws(FileFailure) -> StoredItem {
        let item = items[index]
        let part = try part(for: index)
        guard item.kind == .file else {
            _ = try part.finalFolder(item.components)
            return .folder
        }
        let key = PartFolder.key(of: item.path)
        if let kept = try part.keptFile(key, item.components) {
            return .kept(path: destination.path(of: kept.path), hash: kept.hash)
        }
        return .part(try PartFile(item, key, in: part, replacing: replaces))
    }

    package func openAnew(_ index: Int) throws(FileFailure) -> any StoredPart {
        let item = items[index]
        return try PartFile(
            item, PartFolder.key(of: item.path), in: try part(for: index), replacing: replaces)
    }

    package func finish() {
        for (index, top) in tops.enumerated() {
            guard numbers[index] != nil, let part = openPart(index) else { continue }
            let isComplete = top.items.allSatisfy { index in
                items[index].kind == .folder || part.isComplete(PartFolder.key(of: items[index].path))
            }
            guard isComplete else { continue }
            part.remove()
            numbers[index] = nil
            openParts[index] = nil
            recent.removeAll { $0 === part }
        }
    }

    // MARK: Parts

    /// Opens what an earlier transfer left of the top that an item belongs to, or creates its part.
    private func part(for index: Int) throws(FileFailure) -> PartFolder {
        let components = items[index].components
        guard components.count <= FileItem.mostComponents else {
            throw FileFailure(
                "\(items[index].name) lies too deep: a path has at most \(FileItem.mostComponents) names",
                other: "the path of a file has too many names")
        }
        let top = topIndices[index]
        if let part = leftPart(of: top) { return part }
        let part = try createPart(of: top)
        use(part, for: top)
        return part
    }

    /// Returns the part of a top that is open, or that an earlier transfer left.
    private func leftPart(of top: Int) -> PartFolder? {
        if let part = openPart(top) { return part }
        guard let part = findPart(of: top) else { return nil }
        use(part, for: top)
        return part
    }

    private func base(of top: Int) -> SafeFileName { finalName ?? SafeFileName(tops[top].name) }

    private func openPart(_ top: Int) -> PartFolder? {
        if let part = openParts[top]?.part { return part }
        guard let number = numbers[top], let part = openPart(of: top, number) else { return nil }
        use(part, for: top)
        return part
    }

    private func openPart(of top: Int, _ number: Int) -> PartFolder? {
        let place = PartFolder.Place(destination: destination, base: base(of: top), number: number)
        return PartFolder.open(place, sender: sender, name: tops[top].name)
    }

    private func use(_ part: PartFolder, for top: Int) {
        numbers[top] = part.number
        openParts[top] = Weak(part: part)
        recent.append(part)
        if recent.count > Self.mostRecent { recent.removeFirst() }
    }

    private func findPart(of top: Int) -> PartFolder? {
        for number in leftNumbers[base(of: top).text] ?? [] {
            if let part = openPart(of: top, number) { return part }
        }
        return nil
    }

    private func findLeftNumbers() -> [String: [Int]] {
        var numbers: [String: [Int]] = [:]
        let suffix = ".part"
        for name in (try? destination.names()) ?? [] where name.text.hasSuffix(suffix) {
            let text = String(name.text.dropLast(suffix.count))
            numbers[text, default: []].append(1)
            if let (base, number) = SafeFileName.unnumbered(text) {
                numbers[base, default: []].append(number)
            }
        }
        return numbers.mapValues { $0.sorted() }
    }

    /// Creates a part under the first number whose names are free. If files are replaced, a name is also free if its
    /// file may be.
    private func createPart(of top: Int) throws(FileFailure) -> PartFolder {
        let base = base(of: top)
        let isFile = tops[top].items.allSatisfy { items[$0].kind == .file && items[$0].components.count < 2 }
        for number in SafeFileName.numbers {
            let place = PartFolder.Place(destination: destination, base: base, number: number)
            let name = place.name
            let isTaken =
                replaces && isFile ? !destination.isReplaceable(name.text) : destination.has(name.text)
            guard !isTaken else { continue }
            if let part = try PartFolder.create(place, sender: sender, name: tops[top].name) { return part }
        }
        throw FileFailure("\(destination.path(of: base.text)) and all its numbered names exist")
    }
}
