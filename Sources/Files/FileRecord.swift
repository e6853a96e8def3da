import NighCore

/// A record that one side of a transfer sends to the other on its stream. docs/reference/PROTOCOL.md describes the
/// bytes: a kind, a length, and the bytes that have this length.
///
/// A decoded record is well formed; `OutgoingFiles` and `IncomingFiles` decide whether it is allowed now.
package enum FileRecord: Equatable {
    // From the sender.

    /// The sender offers this number of items, which follow. Its first record.
    case offer(count: Int, metadata: [UInt8], version: FileVersion = .first)
    case item(FileItem)
    /// The bytes in the next `data` records belong to this item, from this offset on.
    case begin(index: Int, offset: Int)
    /// This number of bytes of the file follows. They are no part of the record.
    case data(count: Int)
    /// The file is whole: it has this size and hash.
    case end(index: Int, size: Int, hash: [UInt8])
    /// The file that the receiver kept earlier is the one that is offered.
    case same(index: Int)
    /// The sender cannot send this item.
    case missing(index: Int, FileFault)
    /// The hash of the whole file, for which the receiver has asked.
    case claim(index: Int, size: Int, hash: [UInt8])

    // From the receiver.

    /// The receiver takes the offer.
    case accept
    /// The receiver has this number of bytes more of the item, behind those that it has reported. They have this hash.
    case have(index: Int, count: Int, hash: [UInt8])
    /// The receiver has reported all that it has of the item, and takes the rest.
    case ready(index: Int)
    /// The receiver kept the whole file earlier, with this hash.
    case whole(index: Int, hash: [UInt8])
    /// The receiver has written this number of bytes of the item.
    case stored(index: Int, count: Int)
    /// The item is whole, verified and on the disk, under its name.
    case kept(index: Int)
    /// The receiver cannot take this item.
    case failed(index: Int, FileFault)
    /// The receiver has a file of this name and size, and asks for the hash of the sender's.
    case compare(index: Int)

    // From either side.

    /// The transfer is over.
    case stop(FileFault)
    /// Nothing moves until `resumed`, for a reason that a person can read.
    case paused(String)
    case resumed
}

extension FileRecord {
    /// The most items in an offer.
    package static let mostItems = 100_000
    /// The most bytes that the sender's program can add to an offer.
    package static let longestMetadata = 4_096
    /// The most bytes of the paths, types and metadata of all items of an offer.
    static let mostListedBytes = 16 << 20
    /// The most bytes of a piece that the receiver reports with a hash.
    static let longestPiece = 1 << 20
    /// The most bytes of a file in one record.
    package static let mostData = 128 << 10
    /// The longest record that is not of data.
    static let longest = 16 << 10
    static let headerLength = 5
    private static let longestWords = 255
    /// The number of the kind of an executable file.
    private static let executable: UInt8 = 2
    private static let unknown = Int64.min

    private enum Kind: UInt8 {
        case offer = 1
        case item = 2
        case begin = 3
        case data = 4
        case end = 5
        case same = 6
        case missing = 7
        case claim = 8
        case accept = 16
        case have = 17
        case ready = 18
        case whole = 19
        case stored = 20
        case kept = 21
        case failed = 22
        case compare = 23
        case stop = 32
        case paused = 33
        case resumed = 34
    }

    private var kind: Kind {
        switch self {
        case .offer: .offer
        case .item: .item
        case .begin: .begin
        case .data: .data
        case .end: .end
        case .same: .same
        case .missing: .missing
        case .claim: .claim
        case .accept: .accept
        case .have: .have
        case .ready: .ready
        case .whole: .whole
        case .stored: .stored
        case .kept: .kept
        case .failed: .failed
        case .compare: .compare
        case .stop: .stop
        case .paused: .paused
        case .resumed: .resumed
        }
    }

    // MARK: Encoding

    /// The record with its header. The bytes of a file follow behind a `data` record.
    package var bytes: [UInt8] {
        var fields = FieldWriter(behind: [kind.rawValue, 0, 0, 0, 0])
        switch self {
        case .offer(let count, let metadata, let version):
            fields.write(version.rawValue)
            fields.write(UInt32(count))
            fields.write(block: metadata)
        case .item(let item): Self.write(item, to: &fields)
        case .begin(let index, let offset), .stored(let index, let offset):
            fields.write(UInt32(index))
            fields.write(UInt64(offset))
        case .data(let count): fields.overwrite(UInt32(count), at: 1)
        case .end(let index, let size, let hash), .claim(let index, let size, let hash):
            fields.write(UInt32(index))
            fields.write(UInt64(size))
            fields.write(raw: hash)
        case .same(let index), .ready(let index), .kept(let index), .compare(let index):
            fields.write(UInt32(index))
        case .missing(let index, let fault), .failed(let index, let fault):
            fields.write(UInt32(index))
            Self.write(fault, to: &fields)
        case .have(let index, let count, let hash):
            fields.write(UInt32(index))
            fields.write(UInt32(count))
            fields.write(raw: hash)
        case .whole(let index, let hash):
            fields.write(UInt32(index))
            fields.write(raw: hash)
        case .stop(let fault): Self.write(fault, to: &fields)
        case .paused(let words): fields.write(long: words, atMost: Self.longestWords)
        case .accept, .resumed: break
        }
        if kind != .data { fields.overwrite(UInt32(fields.bytes.count - Self.headerLength), at: 1) }
        return fields.bytes
    }

    private static func write(_ item: FileItem, to fields: inout FieldWriter) {
        fields.write(item.isExecutable ? executable : item.kind.rawValue)
        fields.write(item.size.map(Int64.init) ?? -1)
        fields.write(item.modified.map(Int64.init) ?? Self.unknown)
        fields.write(long: item.path, atMost: FileItem.longestPath)
        fields.write(short: item.type)
        fields.write(block: item.metadata)
    }

    private static func write(_ fault: FileFault, to fields: inout FieldWriter) {
        fields.write(fault.reason.rawValue)
        fields.write(long: fault.explanation, atMost: longestWords)
    }

    // MARK: Decoding

    /// Reads a header. Returns the length of the bytes that follow, and whether they are of a file.
    static func header(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> (length: Int, isData: Bool) {
        var reader = FieldReader(bytes)
        let isData = try reader.number(UInt8.self, "a record's kind") == Kind.data.rawValue
        let length = Int(try reader.number(UInt32.self, "a record's length"))
        guard isData ? (1...mostData).contains(length) : length <= longest else {
            throw .malformed("a record of \(length) bytes")
        }
        return (length, isData)
    }

    /// Reads a record that is not of data.
    init(_ bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        let number = try reader.number(UInt8.self, "a record's kind")
        _ = try reader.number(UInt32.self, "a record's length")
        switch Kind(rawValue: number) {
        case .offer:
            let number = try reader.number(UInt8.self, "an offer's version")
            guard let version = FileVersion(rawValue: number) else {
                throw .malformed("version \(number) of an offer")
            }
            let count = Int(try reader.number(UInt32.self, "an offer's count"))
            guard (1...Self.mostItems).contains(count) else { throw .malformed("an offer of \(count) items") }
            self = .offer(
                count: count,
                metadata: try reader.bytes(atMost: Self.longestMetadata, "what is added to an offer"),
                version: version)
        case .item: self = .item(try Self.item(&reader))
        case .begin:
            self = .begin(index: try Self.index(&reader), offset: try Self.size(&reader))
        case .end:
            self = .end(
                index: try Self.index(&reader), size: try Self.size(&reader), hash: try Self.hash(&reader))
        case .claim:
            self = .claim(
                index: try Self.index(&reader), size: try Self.size(&reader), hash: try Self.hash(&reader))
        case .compare: self = .compare(index: try Self.index(&reader))
        case .same: self = .same(index: try Self.index(&reader))
        case .missing: self = .missing(index: try Self.index(&reader), try Self.fault(&reader))
        case .accept: self = .accept
        case .have:
            self = .have(
                index: try Self.index(&reader),
                count: Int(try reader.number(UInt32.self, "a piece's length")),
                hash: try Self.hash(&reader))
        case .ready: self = .ready(index: try Self.index(&reader))
        case .whole: self = .whole(index: try Self.index(&reader), hash: try Self.hash(&reader))
        case .stored:
            self = .stored(index: try Self.index(&reader), count: try Self.size(&reader))
        case .kept: self = .kept(index: try Self.index(&reader))
        case .failed: self = .failed(index: try Self.index(&reader), try Self.fault(&reader))
        case .stop: self = .stop(try Self.fault(&reader))
        case .paused:
            self = .paused(Self.shown(try reader.longText(atMost: Self.longestWords, "a pause's reason")))
        case .resumed: self = .resumed
        case .data, nil: throw .malformed("a record of the unknown kind \(number)")
        }
        try reader.finish("a record")
    }

    private static func index(_ reader: inout FieldReader) throws(WireError) -> Int {
        Int(try reader.number(UInt32.self, "an item's number"))
    }

    private static func size(_ reader: inout FieldReader) throws(WireError) -> Int {
        guard let size = Int(exactly: try reader.number(UInt64.self, "a size")) else {
            throw .malformed("a size that no file has")
        }
        return size
    }

    private static func hash(_ reader: inout FieldReader) throws(WireError) -> [UInt8] {
        Array(try reader.take(SHA256.byteCount, "a hash"))
    }

    private static func fault(_ reader: inout FieldReader) throws(WireError) -> FileFault {
        let reason = FileFault.Reason(rawValue: try reader.number(UInt8.self, "a fault's reason")) ?? .other
        return FileFault(reason, shown(try reader.longText(atMost: longestWords, "a fault's words")))
    }

    /// Words of the peer, which a terminal may show, without control characters.
    private static func shown(_ words: String) -> String {
        String(
            String.UnicodeScalarView(
                words.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }))
    }

    private static func item(_ reader: inout FieldReader) throws(WireError) -> FileItem {
        let number = try reader.number(UInt8.self, "an item's kind")
        guard let kind = number == executable ? .file : FileItem.Kind(rawValue: number) else {
            throw .malformed("an item of kind \(number)")
        }
        let size = try reader.number(Int64.self, "an item's size")
        let modified = try reader.number(Int64.self, "an item's time")
        let path = try reader.longText(atMost: FileItem.longestPath, "an item's path")
        guard !path.isEmpty, (-1...Int64(FileItem.largestSize)).contains(size), kind == .file || size == 0
        else {
            throw .malformed("an item without a path, or with a size that no file has")
        }
        return FileItem(
            kind, path: path, size: size < 0 ? nil : Int(size),
            modified: modified == unknown ? nil : Int(modified), isExecutable: number == executable,
            type: try reader.shortText("an item's type"),
            metadata: try reader.bytes(atMost: FileItem.longestMetadata, "what is added to an item"))
    }
}

/// The version of the records, which an offer states.
package enum FileVersion: UInt8, Sendable {
    /// Nothing is compared, and no file is executable.
    case first = 1
    /// The receiver may ask for the hash of a file, and items say whether a file is executable.
    case comparing = 2
}

/// Cuts the bytes of a stream into records and the bytes of files.
package struct RecordCutter {
    /// The next part of the bytes.
    package enum Part {
        case record(FileRecord)
        /// Bytes of a file, in place.
        case data(UnsafeRawBufferPointer)
    }

    /// The record that has not come whole.
    private var partial: [UInt8] = []
    /// How many bytes of the file follow.
    private var dataLeft = 0

    package init() {}

    /// Passes the parts of `bytes` to `handle`, one after the other.
    package mutating func cut(
        _ bytes: UnsafeRawBufferPointer, _ handle: (Part) throws(WireError) -> Void
    ) throws(WireError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            if dataLeft > 0 {
                let count = min(dataLeft, rest.count)
                dataLeft -= count
                try handle(.data(UnsafeRawBufferPointer(rebasing: rest.prefix(count))))
                rest = rest.dropFirst(count)
                continue
            }
            take(FileRecord.headerLength, from: &rest)
            guard partial.count >= FileRecord.headerLength else { return }
            let (length, isData) = try partial.withUnsafeBufferPointer { bytes throws(WireError) in
                try FileRecord.header(UnsafeRawBufferPointer(bytes))
            }
            if isData {
                dataLeft = length
            } else {
                take(FileRecord.headerLength + length, from: &rest)
                guard partial.count == FileRecord.headerLength + length else { return }
                let record = try partial.withUnsafeBufferPointer { bytes throws(WireError) in
                    try FileRecord(UnsafeRawBufferPointer(bytes))
                }
                try handle(.record(record))
            }
            partial.removeAll(keepingCapacity: true)
        }
    }

    /// Adds bytes until there are `count` of the record.
    private mutating func take(_ count: Int, from rest: inout Slice<UnsafeRawBufferPointer>) {
        let missing = max(0, count - partial.count)
        partial.append(contentsOf: rest.prefix(missing))
        rest = rest.dropFirst(missing)
    }
}
