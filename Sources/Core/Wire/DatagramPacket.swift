/// The form of a packet on a datagram path: a header that everybody can read, content, and a tag that protects both.
package enum DatagramPacket {
    /// The length of the header: the receiver's connection (8), the number of the packet (8).
    package static let headerByteCount = 16

    /// The length up to which every path must carry packets. It is the least that IPv6 networks carry, less the headers
    /// of IP and UDP.
    package static let leastLongest = 1_200

    /// Reads the connection at the beginning of a packet; nil if the packet is too short.
    package static func connection(of packet: UnsafeRawBufferPointer) -> UInt64? {
        guard packet.count >= headerByteCount else { return nil }
        return UInt64(bigEndian: packet.loadUnaligned(as: UInt64.self))
    }

    /// Reads the number of a packet that has a whole header.
    package static func number(of packet: UnsafeRawBufferPointer) -> UInt64 {
        UInt64(bigEndian: packet.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    package static func writeHeader(
        connection: UInt64, number: UInt64, to packet: UnsafeMutableRawBufferPointer
    ) {
        packet.storeBytes(of: connection.bigEndian, as: UInt64.self)
        packet.storeBytes(of: number.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
}

/// The content of a packet. Its first byte is the kind.
package enum DatagramContent: Equatable {
    /// Asks the other side for an answer with the same token. Zeros may follow, so that the packet has the length that
    /// is tried.
    case probe(token: UInt64)
    case answer(token: UInt64)
    /// A whole message.
    case message(DatagramOrder, UnsafeRawBufferPointer)
    /// A part of a message that is too long for a packet.
    case fragment(DatagramOrder, Fragment, UnsafeRawBufferPointer)
    /// A report on the packets that the receiver of this one has sent.
    case report(Report)

    package struct Fragment: Equatable {
        /// The number of the message, among those that were sent in parts.
        package var message: UInt32
        package var index: UInt8
        package var count: UInt8
    }

    package struct Report: Equatable {
        /// The highest number of a packet that has come, and for how many microseconds that was not reported.
        package var highest: UInt64
        package var delay: UInt32
        /// The number of packets that have come.
        package var received: UInt64
    }

    private enum Kind: UInt8, CaseIterable {
        case probe = 1
        case answer = 2
        case message = 3
        case fragment = 4
        case report = 5
    }

    /// The names of the kinds in docs/reference/PROTOCOL.md.
    package static let kindNames = Kind.allCases.map { "\($0)" }

    /// Returns the name of a kind. An unknown one is named by its number, such as `0x93`.
    package static func name(ofKind kind: UInt8) -> String {
        Kind(rawValue: kind).map { "\($0)" } ?? "0x\(kind < 16 ? "0" : "")\(String(kind, radix: 16))"
    }

    /// The bytes in front of a message's own.
    package static let messageOverhead = 2
    package static let fragmentOverhead = 8
    static let tokenByteCount = 9
    static let reportByteCount = 21

    /// Reads the content of a packet. Returns nil if it is of a kind that only later versions know. Fails if it breaks
    /// the rules of its kind; then the packet is ignored.
    package init?(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        switch Kind(rawValue: try reader.number(UInt8.self, "the kind of a packet")) {
        case .probe: self = .probe(token: try reader.number(UInt64.self, "a probe's token"))
        case .answer: self = .answer(token: try reader.number(UInt64.self, "an answer's token"))
        case .message:
            let order = DatagramOrder(rawValue: try reader.number(UInt8.self, "a message's order"))
            self = .message(order, reader.rest())
        case .fragment:
            let order = DatagramOrder(rawValue: try reader.number(UInt8.self, "a fragment's order"))
            let fragment = Fragment(
                message: try reader.number(UInt32.self, "a fragment's message"),
                index: try reader.number(UInt8.self, "a fragment's index"),
                count: try reader.number(UInt8.self, "a fragment's count"))
            guard fragment.index < fragment.count, reader.remaining > 0 else {
                throw .malformed("a fragment that belongs to no message")
            }
            self = .fragment(order, fragment, reader.rest())
        case .report:
            self = .report(
                Report(
                    highest: try reader.number(UInt64.self, "a report's highest number"),
                    delay: try reader.number(UInt32.self, "a report's delay"),
                    received: try reader.number(UInt64.self, "a report's count")))
        case nil: return nil
        }
    }

    /// Writes the content to the beginning of `bytes`, where there must be room. Returns its length.
    package func write(to bytes: UnsafeMutableRawBufferPointer) -> Int {
        switch self {
        case .probe(let token): return Self.write(.probe, token, to: bytes)
        case .answer(let token): return Self.write(.answer, token, to: bytes)
        case .message(let order, let message):
            bytes[0] = Kind.message.rawValue
            bytes[1] = order.rawValue
            UnsafeMutableRawBufferPointer(rebasing: bytes[Self.messageOverhead...]).copyMemory(from: message)
            return Self.messageOverhead + message.count
        case .fragment(let order, let fragment, let part):
            bytes[0] = Kind.fragment.rawValue
            bytes[1] = order.rawValue
            bytes.storeBytes(of: fragment.message.bigEndian, toByteOffset: 2, as: UInt32.self)
            bytes[6] = fragment.index
            bytes[7] = fragment.count
            UnsafeMutableRawBufferPointer(rebasing: bytes[Self.fragmentOverhead...]).copyMemory(from: part)
            return Self.fragmentOverhead + part.count
        case .report(let report):
            bytes[0] = Kind.report.rawValue
            bytes.storeBytes(of: report.highest.bigEndian, toByteOffset: 1, as: UInt64.self)
            bytes.storeBytes(of: report.delay.bigEndian, toByteOffset: 9, as: UInt32.self)
            bytes.storeBytes(of: report.received.bigEndian, toByteOffset: 13, as: UInt64.self)
            return Self.reportByteCount
        }
    }

    private static func write(_ kind: Kind, _ token: UInt64, to bytes: UnsafeMutableRawBufferPointer) -> Int {
        bytes[0] = kind.rawValue
        bytes.storeBytes(of: token.bigEndian, toByteOffset: 1, as: UInt64.self)
        return tokenByteCount
    }

    package static func == (left: DatagramContent, right: DatagramContent) -> Bool {
        switch (left, right) {
        case (.probe(let left), .probe(let right)), (.answer(let left), .answer(let right)): left == right
        case (.message(let order, let left), .message(let other, let right)):
            order == other && left.elementsEqual(right)
        case (.fragment(let order, let head, let left), .fragment(let other, let second, let right)):
            order == other && head == second && left.elementsEqual(right)
        case (.report(let left), .report(let right)): left == right
        default: false
        }
    }
}

/// In which order unreliable messages are delivered, as a byte.
package struct DatagramOrder: RawRepresentable, Equatable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// As they come.
    package static let unordered = DatagramOrder(rawValue: 0)

    /// Of the messages without a key, only those that are newer than all before.
    package static let sequenced = DatagramOrder(rawValue: 1)

    /// Of the messages with one key, only those that are newer than all before.
    package static func newest(key: UInt8) -> DatagramOrder { DatagramOrder(rawValue: 2 + key) }

    /// The highest key of a message.
    package static let highestKey: UInt8 = 253

    /// The key of the messages; nil for those without one.
    package var key: UInt8? { rawValue > Self.sequenced.rawValue ? rawValue - 2 : nil }

    /// Whether the newest message of this order may wait for room.
    var mayWait: Bool { rawValue > Self.sequenced.rawValue }
}
