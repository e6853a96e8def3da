import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighFiles

/// A suite that receives files into a folder, without another side.
protocol ReceivesFiles {
    /// Holds the folder, so that it shows what is written outside it.
    var outer: TemporaryFolder { get }
    var sender: PeerID { get }
}

extension ReceivesFiles {
    /// The path of the folder that files are received into.
    var inbox: String {
        let path = "\(outer.path)/inbox"
        mkdir(path, 0o700)
        return path
    }

    func path(_ name: String) -> String { "\(inbox)/\(name)" }

    /// The names in the folder, sorted.
    var names: [String] { names(".") }

    func names(_ folder: String) -> [String] { TemporaryFolder.names(in: path(folder)) }

    func text(_ name: String) -> String { TemporaryFolder.text(of: path(name)) }

    func exists(_ name: String) -> Bool { status(name) != nil }

    func status(_ name: String) -> stat? {
        var status = stat()
        return lstat(path(name), &status) == 0 ? status : nil
    }

    @discardableResult
    func make(_ name: String, _ text: String) -> String { write(text, path(name), O_EXCL) }

    /// Adds text to a file.
    func append(_ text: String, to name: String) { write(text, path(name), O_APPEND) }

    @discardableResult
    private func write(_ text: String, _ path: String, _ flags: Int32) -> String {
        let file = OpenDescriptor(open(path, O_WRONLY | O_CREAT | flags, 0o600))
        precondition(Array(text.utf8).withUnsafeBytes { file.write($0) })
        return path
    }

    /// The name of the data of an offered path.
    func key(_ path: String) -> String { PartFolder.key(of: path) }

    func hash(_ text: String) -> [UInt8] { Array(text.utf8).withUnsafeBytes { SHA256.hash($0) } }

    /// Leaves a part of a file.
    func left(_ name: String, _ text: String) throws { try store(name).part().write(text) }

    /// The items of an offer, in which a path that ends in "/" is a folder.
    private func items(_ paths: [String]) -> [FileItem] {
        paths.map { path in
            path.utf8.last == UInt8(ascii: "/")
                ? FileItem(.folder, path: String(path.dropLast()), size: 0) : FileItem(path: path, size: 3)
        }
    }

    /// Receives an offer with a text for each file, to its end. Returns the places of the files.
    @discardableResult
    func receive(
        _ offer: KeyValuePairs<String, String>, replacing: Bool = false, as name: SafeFileName? = nil,
        skipsCopies: Bool = false
    ) throws -> [String?] {
        let items = items(offer.map(\.key))
        let store = try store(items, replacing: replacing, as: name, skipsCopies: skipsCopies)
        var places: [String?] = []
        for (index, (_, text)) in offer.enumerated() {
            if items[index].kind == .folder {
                _ = try store.open(index)
            } else {
                places.append(try store.receive(text, index))
            }
        }
        store.finish()
        return places
    }

    func store(
        _ paths: String..., from sender: PeerID? = nil, replacing: Bool = false, skipsCopies: Bool = false
    ) throws -> FolderStore {
        try store(items(paths), from: sender, replacing: replacing, skipsCopies: skipsCopies)
    }

    func store(
        _ items: [FileItem], from sender: PeerID? = nil, replacing: Bool = false,
        as name: SafeFileName? = nil,
        skipsCopies: Bool = false, keepsModes: Bool = false
    ) throws -> FolderStore {
        FolderStore(
            try ReceivingFolder(inbox), sender: sender ?? self.sender, items: items, replacing: replacing,
            finalName: name, skipsCopies: skipsCopies, keepsModes: keepsModes)
    }
}

extension FileStore {
    /// Opens a file that is expected to be a part.
    func part(_ index: Int = 0) throws -> any StoredPart {
        guard case .part(let part) = try open(index) else {
            throw FileFailure("item \(index) is a folder, or kept")
        }
        return part
    }

    /// Receives a whole file. Returns its path.
    @discardableResult
    func receive(_ text: String, _ index: Int = 0) throws -> String? {
        let part = try part(index)
        try part.write(text)
        return try part.keep(text)
    }

    /// Opens a file that is expected to be kept.
    func kept(_ index: Int = 0) throws -> (path: String, hash: [UInt8])? {
        guard case .kept(let path, let hash) = try open(index) else { return nil }
        return (path, hash)
    }
}

extension StoredPart {
    func write(_ text: String, at offset: Int? = nil) throws {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: text.utf8.count, alignment: 1)
        defer { bytes.deallocate() }
        bytes.copyBytes(from: text.utf8)
        try write(UnsafeRawBufferPointer(bytes), at: offset ?? count)
    }

    @discardableResult
    func keep(_ text: String) throws -> String? {
        try keep(Array(text.utf8).withUnsafeBytes { SHA256.hash($0) })
    }

    /// All that is there.
    var text: String {
        get throws {
            let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: count + 1, alignment: 1)
            defer { bytes.deallocate() }
            let length = try read(into: bytes, at: 0)
            return String(decoding: bytes[..<length], as: UTF8.self)
        }
    }
}

/// Returns the failure that `body` throws.
func failure(_ body: () throws -> Void) -> FileFailure? {
    do {
        try body()
        return nil
    } catch { return error as? FileFailure }
}
