import NighCore

/// Reads a record in parts of any size: from a file, from a pipe, or while it is still being written.
///
/// Call `feed` with the bytes that were read, then `next` until it returns nil. Nothing is used before it is checked.
/// If a record ends in the middle of an entry, because its program was killed, it is read up to there. After an error,
/// `next` only throws that error.
public struct RecordReader: Sendable {
    /// Why bytes are not a record, or no longer one.
    public enum Fault: Error, Equatable, CustomStringConvertible {
        /// The bytes do not begin as a record does.
        case noRecord
        /// The record has another version than this reader.
        case version(UInt16)
        /// The bytes at this place are not an entry.
        case damaged(at: Int, String)

        /// The fault in words.
        public var description: String {
            switch self {
            case .noRecord: "this is not a record of nigh: it does not begin with NIGHREC"
            case .version(let version):
                "this record has version \(version), and this program reads version \(RecordFormat.version)"
            case .damaged(let place, let what): "the record is damaged at byte \(place): \(what)"
            }
        }
    }

    /// The time when the record was begun, in nanoseconds since 1970; nil until that was read.
    public private(set) var startTime: Int64?
    /// How many bytes of each payload the record has; nil for all.
    public private(set) var headLimit: Int?
    /// How many entries were skipped because this version does not know them.
    public private(set) var unknownEntryCount = 0

    private var buffer: [UInt8] = []
    private var position = 0
    /// The position in the record at which the buffer begins.
    private var offset = 0
    private var fault: Fault?

    /// Creates a reader at the beginning of a record.
    public init() {}

    /// How many bytes wait that are not a whole entry yet.
    public var unreadByteCount: Int { buffer.count - position }

    /// Adds bytes that were read.
    public mutating func feed(_ bytes: some Collection<UInt8>) {
        if position > 0 {
            buffer.removeFirst(position)
            offset += position
            position = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// Returns the next entry; nil if more bytes are needed.
    public mutating func next() throws(Fault) -> RecordEntry? {
        if let fault { throw fault }
        do throws(Fault) {
            if startTime == nil, try !readHeader() { return nil }
            while let body = try nextBody() {
                let place = offset + position
                position += 4 + body
                let start = position - body
                let entry: RecordEntry?
                do throws(FieldFault) {
                    entry = try Self.entry(of: buffer[start..<start + body])
                } catch {
                    throw .damaged(at: place, error.what)
                }
                if let entry { return entry }
                unknownEntryCount += 1
            }
            return nil
        } catch {
            fault = error
            throw error
        }
    }

    private mutating func readHeader() throws(Fault) -> Bool {
        let given = buffer[position...].prefix(RecordFormat.magic.count)
        guard given.elementsEqual(RecordFormat.magic.prefix(given.count)) else { throw .noRecord }
        guard unreadByteCount >= RecordFormat.headerByteCount else { return false }
        var fields = Fields(buffer[position..<position + RecordFormat.headerByteCount])
        do throws(FieldFault) {
            _ = try fields.take(RecordFormat.magic.count)
            let version = try fields.number(UInt16.self)
            guard version == RecordFormat.version else { throw FieldFault(what: "", version: version) }
            _ = try fields.number(UInt16.self)
            let limit = try fields.number(UInt32.self)
            headLimit = limit == RecordFormat.noHeadLimit ? nil : Int(limit)
            startTime = Int64(bitPattern: try fields.number(UInt64.self))
        } catch {
            if let version = error.version { throw .version(version) }
            throw .noRecord
        }
        position += RecordFormat.headerByteCount
        return true
    }

    /// Returns the length of the next entry, if all of it is there.
    private func nextBody() throws(Fault) -> Int? {
        guard unreadByteCount >= 4 else { return nil }
        let length = buffer[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
        guard length <= RecordFormat.longestEntry else {
            throw .damaged(at: offset + position, "an entry of \(length) bytes")
        }
        return unreadByteCount >= 4 + length ? length : nil
    }

    private static func entry(of body: ArraySlice<UInt8>) throws(FieldFault) -> RecordEntry? {
        var fields = Fields(body)
        guard let kind = RecordFormat.Kind(rawValue: try fields.number(UInt8.self)) else { return nil }
        let time = Int64(bitPattern: try fields.number(UInt64.self))
        let link = try fields.number(UInt64.self)
        let content = try content(of: kind, &fields)
        guard fields.isAtEnd else { throw FieldFault(what: "an entry has too many bytes") }
        return RecordEntry(time: time, link: link, content)
    }

    private static func content(
        of kind: RecordFormat.Kind, _ fields: inout Fields
    ) throws(FieldFault) -> RecordEntry.Content {
        switch kind {
        case .opened:
            let isDialled = try fields.flag()
            let scheme = try fields.text()
            let (local, remote) = (try fields.text(), try fields.text())
            return .opened(
                LinkOpening(
                    isDialled: isDialled, scheme: scheme, localAddress: TransportAddress(local),
                    remoteAddress: TransportAddress(remote)))
        case .secured: return .secured(try fields.peer(), wasResumed: try fields.flag())
        case .greeted:
            let peer = try fields.peer()
            let incarnation = try fields.number(UInt64.self)
            guard let service = ServiceName(try fields.text()) else {
                throw FieldFault(what: "a service name is invalid")
            }
            guard let name = DisplayName(try fields.text(), of: peer) else {
                throw FieldFault(what: "a display name is invalid")
            }
            return .greeted(
                LinkGreeting(peer: peer, name: name, service: service, incarnation: incarnation))
        case .preface:
            let (direction, _) = try fields.direction()
            return .preface(direction, ByteSlice(fields.rest()))
        case .frame:
            let (direction, isCutOff) = try fields.direction()
            let type = try fields.number(UInt8.self)
            let length = Int(try fields.number(UInt32.self))
            guard length < 1 << 24 else {
                throw FieldFault(what: "a frame is longer than its header can say")
            }
            let payload = ByteSlice(fields.rest())
            guard payload.count <= length else {
                throw FieldFault(what: "a frame has more bytes than its length says")
            }
            return .frame(
                RecordedFrame(
                    direction: direction, type: type, length: length, payload: payload, isCutOff: isCutOff))
        case .packet:
            guard let direction = PacketDirection(rawValue: try fields.number(UInt8.self)) else {
                throw FieldFault(what: "a direction is invalid")
            }
            let connection = try fields.number(UInt64.self)
            let number = try fields.number(UInt64.self)
            let length = Int(try fields.number(UInt32.self))
            guard length <= UInt16.max else {
                throw FieldFault(what: "a packet is longer than any path carries")
            }
            let content = ByteSlice(fields.rest())
            guard content.count <= length else {
                throw FieldFault(what: "a packet has more bytes than its length says")
            }
            return .packet(
                RecordedPacket(
                    direction: direction, connection: connection, number: number, length: length,
                    content: content))
        case .ended:
            let isByPeer = try fields.flag()
            let code = try fields.number(UInt16.self)
            return .ended(
                LinkEnding(
                    reason: try fields.text(), code: code == RecordFormat.noCode ? nil : code,
                    isByPeer: isByPeer))
        case .gap:
            return .gap(
                entries: try fields.number(UInt64.self), bytes: try fields.number(UInt64.self))
        }
    }
}

/// Why bytes are not a field.
private struct FieldFault: Error {
    let what: String
    var version: UInt16?

    init(what: String, version: UInt16? = nil) {
        self.what = what
        self.version = version
    }
}

/// Reads fields in network byte order, and checks each of them.
private struct Fields {
    private var bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    var isAtEnd: Bool { bytes.isEmpty }

    mutating func take(_ count: Int) throws(FieldFault) -> ArraySlice<UInt8> {
        guard bytes.count >= count else { throw FieldFault(what: "an entry is too short") }
        defer { bytes = bytes.dropFirst(count) }
        return bytes.prefix(count)
    }

    mutating func rest() -> ArraySlice<UInt8> {
        defer { bytes = bytes.suffix(0) }
        return bytes
    }

    mutating func number<Number: FixedWidthInteger & UnsignedInteger>(
        _ type: Number.Type
    ) throws(FieldFault) -> Number {
        try take(MemoryLayout<Number>.size).reduce(0) { ($0 &<< 8) | Number(truncatingIfNeeded: $1) }
    }

    mutating func flag() throws(FieldFault) -> Bool {
        switch try number(UInt8.self) {
        case 0: return false
        case 1: return true
        default: throw FieldFault(what: "neither 0 nor 1")
        }
    }

    mutating func direction() throws(FieldFault) -> (PacketDirection, isCutOff: Bool) {
        let number = try number(UInt8.self)
        guard let direction = PacketDirection(rawValue: number & ~RecordFormat.cutOffBit) else {
            throw FieldFault(what: "a direction is invalid")
        }
        return (direction, number & RecordFormat.cutOffBit != 0)
    }

    mutating func peer() throws(FieldFault) -> PeerID {
        guard let peer = PeerID(bytes: try take(PeerID.byteCount)) else {
            throw FieldFault(what: "a PeerID is invalid")
        }
        return peer
    }

    mutating func text() throws(FieldFault) -> String {
        let count = Int(try number(UInt16.self))
        guard let text = String(validating: try take(count), as: UTF8.self) else {
            throw FieldFault(what: "a text is not UTF-8")
        }
        return text
    }
}
