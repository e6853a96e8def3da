// What the two ends send each other, and its format on a wire of bytes that may lose or change some bytes and has no
// beginning.
//
// A frame is a kind, its fields, and a CRC-32 of both. Consistent overhead byte stuffing (COBS) removes all zero bytes
// from it, and a zero byte precedes and follows it. So a reader that begins in the middle gets the next frame complete.
import NighTransport

enum Frame: Equatable {
    /// Sent from time to time, and at once when something in it has changed.
    case state(State)
    /// Asks the end with that ID for a pipe with this number; repeated until `state` or `refuse` answers.
    case open(pipe: UInt32, to: UInt64)
    /// There will be no pipe with this number.
    case refuse(pipe: UInt32)
    /// Bytes of a pipe, and the number of the first byte.
    case data(pipe: UInt32, at: UInt64, bytes: [UInt8])
    /// What has arrived on a pipe.
    case acknowledge(pipe: UInt32, Acknowledgement)

    struct State: Equatable {
        /// The ID of the end that sends this; a different one after each start.
        var id: UInt64
        /// The pipe that it has or asks for; 0 for none.
        var pipe: UInt32 = 0
        /// The last pipe that it closed after all its bytes had arrived.
        var finished: UInt32 = 0
        /// Whether it is about to leave.
        var isLeaving = false
        /// What it advertises; empty for nothing.
        var advertisement: [UInt8] = []
    }

    struct Acknowledgement: Equatable {
        /// All bytes before this number have arrived.
        var received: UInt64
        /// No byte of this number or a later one may be sent.
        var limit: UInt64
        /// Whether later bytes came before that one, so that it must be sent again.
        var isGap: Bool
    }

    /// The most bytes of a pipe in one frame.
    static let pieceLimit = 1_024
    /// The most bytes of a frame before stuffing: the longest advertisement, and some fields.
    static let limit = Advertisement.maximumByteCount + 64

    /// The frame in wire format.
    var encoded: [UInt8] {
        var body: [UInt8] = []
        body.reserveCapacity(Self.limit)
        switch self {
        case .state(let state):
            body.append(1)
            body.put(state.id)
            body.put(state.pipe)
            body.put(state.finished)
            body.append(state.isLeaving ? 1 : 0)
            body += state.advertisement
        case .open(let pipe, let id):
            body.append(2)
            body.put(pipe)
            body.put(id)
        case .refuse(let pipe):
            body.append(3)
            body.put(pipe)
        case .data(let pipe, let number, let bytes):
            body.append(4)
            body.put(pipe)
            body.put(number)
            body += bytes
        case .acknowledge(let pipe, let answer):
            body.append(5)
            body.put(pipe)
            body.put(answer.received)
            body.put(answer.limit)
            body.append(answer.isGap ? 1 : 0)
        }
        body.put(Checksum.of(body[...]))
        return [0] + Stuffing.stuffed(body) + [0]
    }

    /// Decodes what is between two zero bytes; nil if it is not a frame, or not complete.
    init?(_ stuffed: ArraySlice<UInt8>) {
        guard let whole = Stuffing.unstuffed(stuffed), whole.count > 4 else { return nil }
        var end = Fields(whole[(whole.count - 4)...])
        let body = whole[..<(whole.count - 4)]
        guard end.number(UInt32.self) == Checksum.of(body) else { return nil }
        var fields = Fields(body.dropFirst())
        switch body.first {
        case 1:
            guard let id = fields.number(UInt64.self), let pipe = fields.number(UInt32.self),
                let finished = fields.number(UInt32.self), let leaving = fields.number(UInt8.self)
            else { return nil }
            self = .state(
                State(
                    id: id, pipe: pipe, finished: finished, isLeaving: leaving != 0,
                    advertisement: Array(fields.rest)))
        case 2:
            guard let pipe = fields.number(UInt32.self), let id = fields.number(UInt64.self) else {
                return nil
            }
            self = .open(pipe: pipe, to: id)
        case 3:
            guard let pipe = fields.number(UInt32.self) else { return nil }
            self = .refuse(pipe: pipe)
        case 4:
            guard let pipe = fields.number(UInt32.self), let number = fields.number(UInt64.self) else {
                return nil
            }
            self = .data(pipe: pipe, at: number, bytes: Array(fields.rest))
        case 5:
            guard let pipe = fields.number(UInt32.self), let received = fields.number(UInt64.self),
                let limit = fields.number(UInt64.self), let gap = fields.number(UInt8.self)
            else { return nil }
            self = .acknowledge(
                pipe: pipe, Acknowledgement(received: received, limit: limit, isGap: gap != 0))
        default: return nil  // A frame of a later version.
        }
    }
}

/// Splits what comes from the wire into frames, and drops what is not a frame.
struct FrameReader {
    private var part: [UInt8] = []

    mutating func read(_ bytes: UnsafeRawBufferPointer) -> [Frame] {
        var frames: [Frame] = []
        for piece in bytes.split(separator: 0, omittingEmptySubsequences: false).enumerated() {
            if piece.offset > 0 {
                if !part.isEmpty, let frame = Frame(part[...]) { frames.append(frame) }
                part.removeAll(keepingCapacity: true)
            }
            // What is longer than any frame cannot be one. It is cut off, and its checksum then fails.
            part += piece.element.prefix(2 * Frame.limit - part.count)
        }
        return frames
    }
}

extension [UInt8] {
    fileprivate mutating func put(_ number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.bigEndian) { self += $0 }
    }
}

/// Reads numbers from the front of some bytes.
private struct Fields {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
        let count = MemoryLayout<Number>.size
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count).reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }
}

private enum Stuffing {
    /// Each block begins with the distance to the next zero byte of `bytes`, and contains no zero byte.
    static func stuffed(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = [1]
        result.reserveCapacity(bytes.count + bytes.count / 254 + 2)
        var start = 0
        bytes.withUnsafeBufferPointer {
            for byte in $0 {
                if byte != 0 {
                    result.append(byte)
                    result[start] += 1
                }
                guard byte == 0 || result[start] == 255 else { continue }
                start = result.count
                result.append(1)
            }
        }
        return result
    }

    /// Restores the bytes; nil if the blocks do not fit.
    static func unstuffed(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let length = Int(bytes[index])
            guard length > 0, index + length <= bytes.endIndex else { return nil }
            result += bytes[(index + 1)..<(index + length)]
            index += length
            if length < 255, index < bytes.endIndex { result.append(0) }
        }
        return result
    }
}

private enum Checksum {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1 }
    }

    /// The CRC-32 that zip files use.
    static func of(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        table.withUnsafeBufferPointer { table in
            bytes.withUnsafeBufferPointer { bytes in
                var value = UInt32.max
                for byte in bytes { value = value >> 8 ^ table[Int(UInt8(truncatingIfNeeded: value) ^ byte)] }
                return ~value
            }
        }
    }
}
