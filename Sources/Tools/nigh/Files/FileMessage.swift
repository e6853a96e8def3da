import NighCore

/// What a sender and a receiver of a file say to each other, one message of the session each; docs/nigh/files.md has their bytes.
///
/// Bytes of a peer become one of these, which cannot be wrong by itself, or a `FileStop` that says what is wrong with them. Whether it
/// may be said now is for `FileSending` and `FileReceiving` to judge.
enum FileMessage: Equatable {
    /// The sender has this file. Its first message.
    case offer(FileOffer)
    /// The receiver takes it, and has this much of it, with that hash.
    case ready(offset: Int, hash: [UInt8])
    /// The sender goes on from there: from where the receiver stands, or from the start. The first on the lane `bulk`.
    case begin(offset: Int)
    /// The next bytes of the file. On the lane `bulk`.
    case data(ByteSlice)
    /// That was all of it. On the lane `bulk`.
    case end(total: Int, hash: [UInt8])
    /// The receiver has written so much.
    case stored(Int)
    /// The receiver has all of it, and what it has written has this hash.
    case done(total: Int, hash: [UInt8])
    /// One side ends it.
    case stop(FileStop)
    /// The receiver has not decided yet, but is there.
    case waiting

    /// The version of what is said here.
    static let version: UInt8 = 1
    /// How many bytes of a file one message has at most.
    static let mostData = 256 << 10
    /// How many bytes any other message has at most.
    static let mostOther = 2_048
    static let hashLength = 32

    /// On which lane it travels: a `stop` is not to wait behind the file.
    var lane: Lane {
        switch self {
        case .begin, .data, .end: .bulk
        case .offer, .ready, .stored, .done, .stop, .waiting: .main
        }
    }
}

/// What a file is called and how large it is.
struct FileOffer: Equatable {
    /// What the sender calls it, as it came: 1 to 1,024 bytes in which anything may stand.
    let name: String
    /// Nil where the sender does not know it before the end.
    let size: Int?

    static let longestName = 1_024
}

/// Why one side ends it.
struct FileStop: Equatable {
    enum Reason: UInt8, CaseIterable {
        /// A person or a program has ended it; the same file may be sent again, and goes on.
        case cancelled = 1
        /// The receiver does not want it.
        case declined = 2
        /// It is larger than the receiver takes.
        case tooLarge = 3
        /// There is no room for it.
        case noSpace = 4
        /// It changed while it was sent.
        case changed = 5
        /// What was written is not what was sent.
        case damaged = 6
        /// One side cannot read or write its file.
        case fileTrouble = 7
        /// The receiver does not speak this version.
        case version = 8
        /// The other side broke the protocol.
        case breach = 9
        /// What a later version may know.
        case other = 0
    }

    let reason: Reason
    /// For a person: at most 255 bytes, in which anything may stand.
    let words: String

    init(_ reason: Reason, _ words: String) {
        self.reason = reason
        self.words = words
    }
}

// MARK: Bytes

extension FileMessage {
    private enum Kind: UInt8 {
        case offer = 1
        case ready = 2
        case begin = 3
        case data = 4
        case end = 5
        case stored = 6
        case done = 7
        case stop = 8
        case waiting = 9
    }

    private static let unknownSize = UInt64.max

    /// As it travels. A file's bytes are copied; who sends many writes `dataMark` before them instead.
    var bytes: [UInt8] {
        var fields = FieldWriter()
        func write(_ kind: Kind) { fields.write(kind.rawValue) }
        switch self {
        case .offer(let offer):
            write(.offer)
            fields.write(Self.version)
            fields.write(offer.size.map(UInt64.init) ?? Self.unknownSize)
            fields.write(long: offer.name, atMost: FileOffer.longestName)
        case .ready(let offset, let hash):
            write(.ready)
            fields.write(UInt64(offset))
            fields.write(raw: hash)
        case .begin(let offset):
            write(.begin)
            fields.write(UInt64(offset))
        case .data(let data):
            write(.data)
            data.withUnsafeBytes { fields.write(raw: $0) }
        case .end(let total, let hash):
            write(.end)
            fields.write(UInt64(total))
            fields.write(raw: hash)
        case .stored(let count):
            write(.stored)
            fields.write(UInt64(count))
        case .done(let total, let hash):
            write(.done)
            fields.write(UInt64(total))
            fields.write(raw: hash)
        case .stop(let stop):
            write(.stop)
            fields.write(stop.reason.rawValue)
            fields.write(long: stop.words, atMost: 255)
        case .waiting: write(.waiting)
        }
        return fields.bytes
    }

    /// The byte before those of a file.
    static var dataMark: UInt8 { Kind.data.rawValue }

    /// What `payload` says, sharing its memory. What it throws is to be answered with, and ends it.
    init(_ payload: ByteSlice) throws(FileStop.Breach) {
        guard payload.count > 0 else { throw .init("a message is empty") }
        self = try payload.withUnsafeBytes { bytes throws(FileStop.Breach) in
            try FileMessage(payload, reading: bytes)
        }
    }

    private init(_ payload: ByteSlice, reading bytes: UnsafeRawBufferPointer) throws(FileStop.Breach) {
        var reader = Reader(bytes)
        let number = try reader.number(UInt8.self)
        guard let kind = Kind(rawValue: number) else { throw .init("there is no message \(number)") }
        if kind == .data {
            guard (2...Self.mostData + 1).contains(payload.count) else {
                throw .init("a piece of the file has \(payload.count - 1) bytes")
            }
            self = .data(payload[1..<payload.count])
            return
        }
        guard payload.count <= Self.mostOther else { throw .init("a message has \(payload.count) bytes") }
        switch kind {
        case .offer: self = .offer(try FileOffer(&reader))
        case .ready: self = .ready(offset: try reader.size(), hash: try reader.hash())
        case .begin: self = .begin(offset: try reader.size())
        case .data: throw .init("two kinds at once")
        case .end: self = .end(total: try reader.size(), hash: try reader.hash())
        case .stored: self = .stored(try reader.size())
        case .done: self = .done(total: try reader.size(), hash: try reader.hash())
        case .stop:
            let reason = FileStop.Reason(rawValue: try reader.number(UInt8.self)) ?? .other
            self = .stop(FileStop(reason, try reader.text(atMost: 255)))
        case .waiting: self = .waiting
        }
        try reader.finish()
    }

    /// Reads fields; every read is checked.
    fileprivate struct Reader {
        private var fields: FieldReader

        init(_ bytes: UnsafeRawBufferPointer) { fields = FieldReader(bytes) }

        mutating func number<Number: FixedWidthInteger>(
            _ type: Number.Type
        ) throws(FileStop.Breach) -> Number {
            try read { fields throws(WireError) in try fields.number(type, "a message") }
        }

        mutating func size() throws(FileStop.Breach) -> Int {
            guard let size = Int(exactly: try number(UInt64.self)) else {
                throw .init("a size cannot be that large")
            }
            return size
        }

        mutating func sizeOrUnknown() throws(FileStop.Breach) -> Int? {
            let number = try number(UInt64.self)
            guard number != FileMessage.unknownSize else { return nil }
            guard let size = Int(exactly: number) else { throw .init("a size cannot be that large") }
            return size
        }

        mutating func hash() throws(FileStop.Breach) -> [UInt8] {
            try read { fields throws(WireError) in Array(try fields.take(FileMessage.hashLength, "a hash")) }
        }

        mutating func text(atMost limit: Int) throws(FileStop.Breach) -> String {
            try read { fields throws(WireError) in try fields.long(atMost: limit, "a text") }
        }

        mutating func finish() throws(FileStop.Breach) {
            try read { fields throws(WireError) in try fields.finish("a message") }
        }

        private mutating func read<Value>(
            _ body: (inout FieldReader) throws(WireError) -> Value
        ) throws(FileStop.Breach) -> Value {
            do throws(WireError) { return try body(&fields) } catch { throw .init(error.words) }
        }
    }
}

extension FileOffer {
    fileprivate init(_ reader: inout FileMessage.Reader) throws(FileStop.Breach) {
        let version = try reader.number(UInt8.self)
        guard version == FileMessage.version else {
            throw .init(
                .version, "version \(version) of sending files is not spoken here, but \(FileMessage.version)"
            )
        }
        size = try reader.sizeOrUnknown()
        name = try reader.text(atMost: Self.longestName)
        guard !name.isEmpty else { throw .init("a file has no name") }
    }
}

extension FileStop {
    /// What a peer said that it may not say.
    struct Breach: Error, Equatable {
        let stop: FileStop

        init(_ words: String) { stop = FileStop(.breach, words) }

        init(_ reason: Reason, _ words: String) { stop = FileStop(reason, words) }
    }
}
