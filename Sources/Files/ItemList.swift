import NighCore

/// The items of an offer, as a receiver gets them one after the other.
struct ItemList {
    private(set) var items: [FileItem] = []
    /// The bytes of their paths, types and metadata.
    private var listedBytes = 0

    /// Adds an item. Fails if the list has become too long.
    mutating func add(_ item: FileItem) throws(WireError) {
        listedBytes += item.listedBytes
        guard listedBytes <= FileRecord.mostListedBytes else {
            throw .malformed("an offer whose list has more than \(FileRecord.mostListedBytes) bytes")
        }
        items.append(item)
    }

    /// Notes the size of a file that was offered without one.
    mutating func noteSize(_ size: Int, of index: Int) {
        if items[index].size == nil { items[index].size = size }
    }

    /// Fails if a folder stands behind something that is in it.
    func checkOrder() throws(WireError) {
        var folders: [UInt64: Int] = [:]
        for (index, item) in items.enumerated() where item.kind == .folder {
            let path = try item.hashPath { _ in }
            if folders[path] == nil { folders[path] = index }
        }
        guard !folders.isEmpty else { return }
        for (index, item) in items.enumerated() {
            try item.hashPath { outer throws(WireError) in
                guard folders[outer] ?? 0 <= index else { throw .malformed("a folder behind what is in it") }
            }
        }
    }
}

extension FileItem {
    /// About how many bytes of memory the item takes at a receiver, from the offer to the end of the transfer.
    var heldBytes: Int { 256 + listedBytes }

    /// Calls `body` with a hash of the path of each folder that the item is in, the outermost first. Returns the hash
    /// of its own path. Paths of the same names have the same hash.
    @discardableResult
    fileprivate func hashPath(_ body: (UInt64) throws(WireError) -> Void) throws(WireError) -> UInt64 {
        // FNV-1a: a sender that makes two paths collide spoils its own offer only.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        var isInName = false
        var hasOuter = false
        for byte in path.utf8 {
            guard byte != UInt8(ascii: "/") else {
                isInName = false
                continue
            }
            if !isInName {
                if hasOuter { try body(hash) }
                hash = (hash ^ UInt64(UInt8(ascii: "/"))) &* 0x100_0000_01B3
                (isInName, hasOuter) = (true, true)
            }
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        return hash
    }
}
