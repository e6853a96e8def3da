import NighCore

/// The messages between the sender and the receiver of a file, each in one message of the session; docs/reference/nigh/files.md
/// describes the bytes.
///
/// The bytes of a peer become a well-formed message, or a `FileStop.Breach` that says what is wrong with them.
/// `FileSendMachine` and `FileReceiveMachine` decide whether the message is allowed now.
enum FileMessage: Equatable {
    /// The sender offers this file. Its first message.
    case offer(FileOffer)
    /// The receiver takes the file. It has the first `offset` bytes, with that hash.
    case ready(offset: Int, hash: [UInt8])
    /// The sender continues at `offset`: the receiver's offset, or 0. The first message on the lane `bulk`.
    case begin(offset: Int)
    /// The next bytes of the file. On the lane `bulk`.
    case data(ByteSlice)
    /// The end of the file. On the lane `bulk`.
    case end(total: Int, hash: [UInt8])
    /// The receiver has written this many bytes.
    case stored(Int)
    /// The receiver has the whole file, and what it has written has this hash.
    case done(total: Int, hash: [UInt8])
    /// One side ends the transfer.
    case stop(FileStop)
    /// The receiver has not decided yet, but is still there.
    case waiting

    /// The version of this protocol.
    static let version: UInt8 = 1
    /// The maximum number of bytes of a file in one message.
    static let mostData = 256 << 10
    /// The maximum number of bytes in any other message.
    static let mostOther = 2_048
    static let hashLength = 32

    /// The lane on which the message travels. A `stop` must not wait behind the file.
    var lane: Lane {
        switch self {
        case .begin, .data, .end: .bulk
        case .offer, .ready, .stored, .done, .stop, .waiting: .main
        }
    }
}

/// The name and the size of a file.
struct FileOffer: Equatable {
    /// The sender's name for the file, unchanged: 1 to 1,024 bytes that may contain anything.
    let name: String
    /// Nil if the sender does not know the size before the end.
    let size: Int?

    static let longestName = 1_024
}

/// Why one side ends the transfer.
struct FileStop: Equatable {
    enum Reason: UInt8, CaseIterable {
        /// A person or a program ended it. The same file may be sent again and continues.
        case cancelled = 1
        /// The receiver does not want it.
        case declined = 2
        /// The file is larger than the receiver accepts.
        case tooLarge = 3
        /// The receiver has no space for the file.
        case noSpace = 4
        /// The file changed while it was sent.
        case changed = 5
        /// What was written is not what was sent.
        case damaged = 6
        /// One side cannot read or write its file.
        case fileTrouble = 7
        /// The receiver does not speak this version.
        case version = 8
        /// The other side broke the protocol.
        case breach = 9
        /// A reason that only a later version knows.
        case other = 0
    }

    let reason: Reason
    /// An explanation for a person: at most 255 bytes that may contain anything.
    let explanation: String

    init(_ reason: Reason, _ explanation: String) {
        self.reason = reason
        self.explanation = explanation
    }
}

// MARK: Encoding

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

    /// The encoded message. The bytes of a file are copied. To send many without a copy, write `dataMark` in front of
    /// them.
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
            fields.write(long: stop.explanation, atMost: 255)
        case .waiting: write(.waiting)
        }
        return fields.bytes
    }

    /// The byte in front of the bytes of a file.
    static var dataMark: UInt8 { Kind.data.rawValue }

    /// Decodes `payload` and shares its memory. The error that it throws is sent to the peer and ends the transfer.
    init(_ payload: ByteSlice) throws(FileStop.Breach) {
        guard payload.count > 0 else { throw .init("a message is empty") }
        self = try payload.withUnsafeBytes { bytes throws(FileStop.Breach) in
            try FileMessage(payload, reading: bytes)
        }
    }

    private init(_ payload: ByteSlice, reading bytes: UnsafeRawBufferPointer) throws(FileStop.Breach) {
        var reader = Reader(bytes)
        let number = try reader.number(UInt8.self)
        guard let kind = Kind(rawValue: number) else { throw .init("message kind \(number) is unknown") }
        if kind == .data {
            guard (2...Self.mostData + 1).contains(payload.count) else {
                throw .init("a data message has \(payload.count - 1) bytes")
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
            try read { fields throws(WireError) in try fields.longText(atMost: limit, "a text") }
        }

        mutating func finish() throws(FileStop.Breach) {
            try read { fields throws(WireError) in try fields.finish("a message") }
        }

        private mutating func read<Value>(
            _ body: (inout FieldReader) throws(WireError) -> Value
        ) throws(FileStop.Breach) -> Value {
            do throws(WireError) { return try body(&fields) } catch { throw .init(error.message) }
        }
    }
}

extension FileOffer {
    fileprivate init(_ reader: inout FileMessage.Reader) throws(FileStop.Breach) {
        let version = try reader.number(UInt8.self)
        guard version == FileMessage.version else {
            throw .init(
                .version,
                "version \(version) of the file protocol is not supported here, only \(FileMessage.version)")
        }
        size = try reader.sizeOrUnknown()
        name = try reader.text(atMost: Self.longestName)
        guard !name.isEmpty else { throw .init("a file has no name") }
    }
}

extension FileStop {
    /// A violation of the protocol by the peer.
    struct Breach: Error, Equatable {
        let stop: FileStop

        init(_ explanation: String) { stop = FileStop(.breach, explanation) }

        init(_ reason: Reason, _ explanation: String) { stop = FileStop(reason, explanation) }
    }
}
