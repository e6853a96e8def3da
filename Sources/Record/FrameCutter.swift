import NighCore

/// Cuts one direction of a link into its preface and frames, and keeps as many bytes of each frame as are wanted.
///
/// It trusts no length before the bytes have come: it never holds more than those. A frame longer than any link allows
/// only makes it skip. Once it has cut wrongly, it goes on cutting wrongly, but a link ends where that happens.
struct FrameCutter {
    enum Piece: Equatable {
        case preface(ByteSlice)
        case frame(RecordedFrame)
    }

    private let direction: PacketDirection
    /// The most payload bytes of a frame that are kept.
    private let headLimit: Int
    private var head: [UInt8] = []
    private var isBehindPreface = false
    /// The type and length of the frame that is arriving.
    private var header: (type: UInt8, length: Int)?
    private var missing = 0
    private var kept: [UInt8] = []

    private static let prefaceByteCount = Preface.byteCount
    private static let headerByteCount = 4

    init(_ direction: PacketDirection, headLimit: Int) {
        self.direction = direction
        self.headLimit = headLimit
    }

    /// Takes bytes that passed, and calls `piece` with each piece that is complete with them.
    mutating func feed(_ bytes: ByteSlice, _ piece: (Piece) -> Void) {
        var position = 0
        while position < bytes.count {
            guard isBehindPreface else {
                position += fillHead(to: Self.prefaceByteCount, from: bytes, at: position)
                guard head.count == Self.prefaceByteCount else { return }
                isBehindPreface = true
                piece(.preface(ByteSlice(head)))
                head.removeAll(keepingCapacity: true)
                continue
            }
            guard let header else {
                position += fillHead(to: Self.headerByteCount, from: bytes, at: position)
                guard head.count == Self.headerByteCount else { return }
                let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
                self.header = (head[3], length)
                missing = length
                head.removeAll(keepingCapacity: true)
                if length == 0 { finish(ByteSlice([]), piece) }
                continue
            }
            let available = min(missing, bytes.count - position)
            if kept.isEmpty, missing == header.length, available == missing {
                // The whole payload is here, so nothing is copied.
                missing = 0
                finish(bytes[position..<position + min(available, headLimit)], piece)
            } else {
                let wanted = min(available, max(headLimit - kept.count, 0))
                bytes[position..<position + wanted].withUnsafeBytes { kept.append(contentsOf: $0) }
                missing -= available
                if missing == 0 { finish(ByteSlice(kept), piece) }
            }
            position += available
        }
    }

    /// Returns the frame that has begun and will not be completed.
    func rest() -> RecordedFrame? {
        header.map {
            RecordedFrame(
                direction: direction, type: $0.type, length: $0.length, payload: ByteSlice(kept),
                isCutOff: true)
        }
    }

    private mutating func fillHead(to count: Int, from bytes: ByteSlice, at position: Int) -> Int {
        let taken = min(count - head.count, bytes.count - position)
        bytes[position..<position + taken].withUnsafeBytes { head.append(contentsOf: $0) }
        return taken
    }

    private mutating func finish(_ payload: ByteSlice, _ piece: (Piece) -> Void) {
        guard let header else { return }
        self.header = nil
        kept.removeAll(keepingCapacity: kept.capacity <= 1 << 16)
        piece(
            .frame(
                RecordedFrame(
                    direction: direction, type: header.type, length: header.length, payload: payload)))
    }
}
