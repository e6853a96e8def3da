import NighCore

/// A frame that one end of a serial line sends the other.
///
/// On the line, a frame is its kind, its fields and a CRC-32C of both, all stuffed so that no byte is zero, between two
/// zero bytes. So a reader that begins in the middle, or misses bytes, finds the next frame.
/// [serial.md](../../../docs/reference/transports/serial.md) has the format.
package enum SerialFrame: Equatable {
    /// Sent from time to time, and at once when something in it has changed.
    case state(State)
    /// Asks the end with that ID for a pipe with this number. Repeated until `state` or `refuse` answers.
    case open(pipe: UInt32, to: UInt64)
    /// Reports that there will be no pipe with this number.
    case refuse(pipe: UInt32)
    /// Carries a packet of a `SequencedStream`.
    case packet(pipe: UInt32, [UInt8])

    package struct State: Equatable {
        /// The ID of the end that sends this. Each start of a transport has its own.
        package var id: UInt64
        /// The pipe that the end has or asks for; 0 for none.
        package var pipe: UInt32
        /// The last pipe that ended in good order at this end.
        package var finished: UInt32
        /// Whether the end shuts down.
        package var isLeaving: Bool
        /// The advertisement of the end, empty for none; nil if it has not changed.
        package var advertisement: [UInt8]?

        package init(
            id: UInt64, pipe: UInt32 = 0, finished: UInt32 = 0, isLeaving: Bool = false,
            advertisement: [UInt8]? = nil
        ) {
            self.id = id
            self.pipe = pipe
            self.finished = finished
            self.isLeaving = isLeaving
            self.advertisement = advertisement
        }
    }

    private enum Kind: UInt8 {
        case state = 1
        case open = 2
        case refuse = 3
        case packet = 4
    }

    private static let leavingFlag: UInt8 = 1
    private static let advertisementFlag: UInt8 = 2
    private static let checksumLength = 4
    /// The length of the longest frame before it is stuffed: a state with the longest advertisement.
    static let limit = Advertisement.maximumByteCount + 32

    /// The frame as it is on the line.
    package var bytes: [UInt8] {
        var fields = FieldWriter()
        switch self {
        case .state(let state):
            fields.write(Kind.state.rawValue)
            fields.write(state.id)
            fields.write(state.pipe)
            fields.write(state.finished)
            let leaving = state.isLeaving ? Self.leavingFlag : 0
            fields.write(leaving | (state.advertisement == nil ? 0 : Self.advertisementFlag))
            fields.write(raw: state.advertisement ?? [])
        case .open(let pipe, let id):
            fields.write(Kind.open.rawValue)
            fields.write(pipe)
            fields.write(id)
        case .refuse(let pipe):
            fields.write(Kind.refuse.rawValue)
            fields.write(pipe)
        case .packet(let pipe, let packet):
            fields.write(Kind.packet.rawValue)
            fields.write(pipe)
            fields.write(raw: packet)
        }
        fields.write(fields.bytes.withUnsafeBytes { CRC32C.checksum(of: $0) })
        return [0] + ByteStuffing.stuffed(fields.bytes) + [0]
    }

    /// Parses the bytes between two zero bytes. Returns nil if that is not a frame, or one of a later version.
    init?(stuffed: [UInt8]) {
        guard let bytes = ByteStuffing.unstuffed(stuffed), bytes.count > Self.checksumLength else {
            return nil
        }
        let frame = bytes.withUnsafeBytes { bytes -> SerialFrame? in
            var end = FieldReader(.init(rebasing: bytes.suffix(Self.checksumLength)))
            let body = UnsafeRawBufferPointer(rebasing: bytes.dropLast(Self.checksumLength))
            guard (try? end.number(UInt32.self, "checksum")) == CRC32C.checksum(of: body) else { return nil }
            var fields = FieldReader(body)
            return try? Self.read(&fields)
        }
        guard let frame else { return nil }
        self = frame
    }

    private static func read(_ fields: inout FieldReader) throws(WireError) -> SerialFrame? {
        switch Kind(rawValue: try fields.number(UInt8.self, "kind of a frame")) {
        case .state:
            var state = State(
                id: try fields.number(UInt64.self, "ID of an end"),
                pipe: try fields.number(UInt32.self, "number of a pipe"),
                finished: try fields.number(UInt32.self, "number of the last pipe"))
            let flags = try fields.number(UInt8.self, "flags")
            state.isLeaving = flags & leavingFlag != 0
            if flags & advertisementFlag != 0 {
                state.advertisement = Array(try fields.take(fields.remaining, "advertisement"))
            }
            return .state(state)
        case .open:
            return .open(
                pipe: try fields.number(UInt32.self, "number of a pipe"),
                to: try fields.number(UInt64.self, "ID of an end"))
        case .refuse: return .refuse(pipe: try fields.number(UInt32.self, "number of a pipe"))
        case .packet:
            let pipe = try fields.number(UInt32.self, "number of a pipe")
            return .packet(pipe: pipe, Array(try fields.take(fields.remaining, "packet")))
        case nil: return nil
        }
    }
}
