import NighCore

/// Why a WebSocket is closed, as RFC 6455 numbers it.
package enum WebSocketCode: UInt16, Error {
    case normal = 1000
    case goingAway = 1001
    case protocolError = 1002
    case unsupportedData = 1003
    case policyViolation = 1008
    case tooBig = 1009
}

/// Reads the frames that a browser sends: binary messages, and control frames between them.
///
/// A value without I/O. The content of a message is unmasked in place, so nothing is copied. A message may come in
/// pieces of any size, and is given out as it comes.
package struct WebSocketReader {
    /// The most bytes of one message.
    package static let longestMessage = 65_536
    private static let longestControl = 125

    package enum Event: Equatable {
        /// The next bytes of a message, perhaps the last ones.
        case bytes(ByteSlice, endsMessage: Bool)
        /// A ping, with the bytes to send back.
        case ping([UInt8])
        /// The browser closes the WebSocket.
        case close
    }

    private enum Operation: UInt8 {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10

        var isControl: Bool { rawValue >= 8 }
    }

    /// A frame whose header has come.
    private struct Frame {
        let operation: Operation
        let isLast: Bool
        let mask: UInt32
        let count: Int
        var position = 0
    }

    private var input = ByteQueue()
    private var header: [UInt8] = []
    private var frame: Frame?
    /// The payload of the control frame under way.
    private var control: [UInt8] = []
    /// How long the message under way is so far; nil between messages.
    private var messageLength: Int?
    /// How many frames have begun.
    private(set) var frameCount = 0

    /// Creates a reader at the beginning of a WebSocket.
    package init() {}

    /// Takes bytes that have come, and that nobody else reads.
    package mutating func append(_ bytes: ByteSlice) { input.append(bytes) }

    /// Returns the next event, or nil if more bytes are needed.
    package mutating func next() throws(WebSocketCode) -> Event? {
        while true {
            guard let current = frame else {
                guard let missing = missingHeaderBytes else {
                    try beginFrame()
                    continue
                }
                guard let bytes = input.popFirst(atMost: missing) else { return nil }
                bytes.withUnsafeBytes { header += $0 }
                if header.count == 2 { try checkBeginning() }
                continue
            }
            if current.position == current.count {
                frame = nil
                if let event = endFrame(current) { return event }
                continue
            }
            guard let bytes = input.popFirst(atMost: current.count - current.position) else { return nil }
            Self.unmask(bytes, current.mask, at: current.position)
            frame?.position += bytes.count
            if current.operation.isControl {
                bytes.withUnsafeBytes { control += $0 }
            } else {
                let isAll = current.position + bytes.count == current.count
                return .bytes(bytes, endsMessage: endMessageIfLast(isAll ? current : nil))
            }
        }
    }

    /// How many bytes of the header are missing; nil if it is whole.
    private var missingHeaderBytes: Int? {
        guard header.count >= 2 else { return 2 - header.count }
        let lengthBytes =
            switch header[1] & 0x7F {
            case 126: 2
            case 127: 8
            default: 0
            }
        let missing = 2 + lengthBytes + 4 - header.count
        return missing > 0 ? missing : nil
    }

    /// Checks the first two bytes of a header: there are no extensions, and browsers mask everything.
    private func checkBeginning() throws(WebSocketCode) {
        guard header[0] & 0x70 == 0, header[1] & 0x80 != 0 else { throw .protocolError }
    }

    private mutating func beginFrame() throws(WebSocketCode) {
        let bytes = header
        header = []
        frameCount += 1
        guard let operation = Operation(rawValue: bytes[0] & 0x0F) else { throw .protocolError }
        let isLast = bytes[0] & 0x80 != 0
        let short = UInt64(bytes[1] & 0x7F)
        let count = short < 126 ? short : bytes[2..<bytes.count - 4].reduce(0) { $0 << 8 | UInt64($1) }
        guard short < 126 || count > (short == 126 ? 125 : 65_535) else { throw .protocolError }
        let mask = bytes.suffix(4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        if operation.isControl {
            guard isLast, count <= Self.longestControl else { throw .protocolError }
        } else {
            if operation == .text { throw .unsupportedData }
            guard (operation == .continuation) == (messageLength != nil) else { throw .protocolError }
            let length = UInt64(messageLength ?? 0).addingReportingOverflow(count)
            guard !length.overflow, length.partialValue <= Self.longestMessage else { throw .tooBig }
            messageLength = Int(length.partialValue)
        }
        frame = Frame(operation: operation, isLast: isLast, mask: mask, count: Int(count))
    }

    /// Ends the message if its last frame is whole. Returns whether it did.
    private mutating func endMessageIfLast(_ frame: Frame?) -> Bool {
        guard let frame, frame.isLast else { return false }
        messageLength = nil
        self.frame = nil
        return true
    }

    /// Handles a frame that has arrived whole. Returns its event, if it has one.
    private mutating func endFrame(_ frame: Frame) -> Event? {
        defer { control = [] }
        switch frame.operation {
        case .ping: return .ping(control)
        case .close: return .close
        case .pong, .text: return nil
        case .binary, .continuation:
            // An empty last frame.
            guard endMessageIfLast(frame) else { return nil }
            return .bytes(ByteSlice([]), endsMessage: true)
        }
    }

    /// Unmasks bytes of a frame, which begin at this position.
    private static func unmask(_ bytes: ByteSlice, _ mask: UInt32, at position: Int) {
        let turn = UInt32(position % 4) * 8
        let mask = turn == 0 ? mask : mask >> turn | mask << (32 - turn)
        bytes.withUnsafeBytes { bytes in
            // They were read for this reader alone, so nobody sees them change.
            let bytes = UnsafeMutableRawBufferPointer(mutating: bytes)
            let wide = UInt64(mask) << 32 | UInt64(mask)
            var index = 0
            while index + 8 <= bytes.count {
                let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                bytes.storeBytes(of: word ^ wide.littleEndian, toByteOffset: index, as: UInt64.self)
                index += 8
            }
            while index < bytes.count {
                bytes[index] ^= UInt8(truncatingIfNeeded: mask >> (UInt32(index % 4) * 8))
                index += 1
            }
        }
    }
}

/// The frames that the server sends. They are not masked.
enum WebSocketFrame {
    /// The header of a binary message of this many bytes, at most 65,536.
    static func header(of count: Int) -> [UInt8] { header(0x82, count) }

    static func pong(_ bytes: [UInt8]) -> [UInt8] { header(0x8A, bytes.count) + bytes }

    static func close(_ code: WebSocketCode) -> [UInt8] {
        [0x88, 2, UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)]
    }

    private static func header(_ first: UInt8, _ count: Int) -> [UInt8] {
        switch count {
        case 0..<126: [first, UInt8(count)]
        case 126..<65_536: [first, 126, UInt8(count >> 8), UInt8(count & 0xFF)]
        default:
            [first, 127, 0, 0, 0, 0] + (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) }
        }
    }
}
