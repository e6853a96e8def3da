/// Cuts a stream of bytes into frames, however the bytes were cut on their way.
///
/// Call `feed` with what came, then `next` until it is nil. Frames are handed out in place where they lie whole in
/// one slice; only a frame that is split over slices is copied together first. Pieces of large messages are handed
/// out as they come, never collected. No length is believed before it is checked, and nothing is allocated by one.
///
/// After an error the stream has no frame borders any more: the decoder must not be used again.
package struct FrameDecoder {
    /// One frame, or a part of a `piece` frame. Borrowed: valid until the next call to the decoder.
    package struct Frame {
        package let type: UInt8
        package let bytes: UnsafeRawBufferPointer
        /// How many bytes of header and payload this accounts for in flow control; the first part of a piece
        /// accounts for its header.
        package let wireBytes: Int
    }

    /// The longest payload accepted; smaller before the hellos than after.
    var maximumPayload: Int

    private var waiting = ByteQueue()
    private var current: ByteSlice? {
        didSet {
            position = 0
            front = current?.pointer ?? UnsafeRawBufferPointer(start: nil, count: 0)
        }
    }
    /// Where the bytes of `current` are: asking the slice itself for each frame would take a reference each time.
    private var front = UnsafeRawBufferPointer(start: nil, count: 0)
    private var position = 0

    /// Bytes of the frame being put together, header included, while it is split over slices.
    private var assembly: Chunk?
    private var assembled = 0

    private var pieceType: UInt8 = 0
    private var pieceLeft = 0
    /// The bytes of its header, until they have been accounted for.
    private var pieceHeaderBytes = 0

    package init(maximumPayload: Int) { self.maximumPayload = maximumPayload }

    /// Adds what came. The slices are kept until they are parsed.
    package mutating func feed(_ slice: ByteSlice) {
        if current == nil {
            current = slice.isEmpty ? nil : slice
        } else {
            waiting.append(slice)
        }
    }

    /// How many bytes were fed and have not been handed out.
    package var unparsedByteCount: Int { (current?.count ?? 0) - position + waiting.byteCount + assembled }

    /// The next frame, or part of a piece; nil when more bytes are needed.
    package mutating func next() throws(WireError) -> Frame? {
        while true {
            guard let base = front.baseAddress else { return nil }
            let available = front.count &- position
            guard available > 0 else {
                current = waiting.popFirst()
                continue
            }
            let start = base + position
            if pieceLeft > 0 {
                let count = min(pieceLeft, available)
                let wireBytes = count &+ pieceHeaderBytes
                pieceLeft &-= count
                pieceHeaderBytes = 0
                position &+= count
                return Frame(type: pieceType, bytes: .init(start: start, count: count), wireBytes: wireBytes)
            }
            if assembled == 0, available >= FrameHeader.byteCount {
                let header = FrameHeader(readingFrom: start)
                try check(header)
                if Self.isPiece(header.type) {
                    position &+= FrameHeader.byteCount
                    try begin(piece: header)
                    continue
                }
                let whole = FrameHeader.byteCount &+ header.payloadLength
                if available >= whole {
                    position &+= whole
                    return Frame(
                        type: header.type,
                        bytes: .init(start: start + FrameHeader.byteCount, count: header.payloadLength),
                        wireBytes: whole)
                }
            }
            if let frame = try assemble(from: start, available: available) { return frame }
        }
    }

    /// The next frame where it is a message that lies whole at the front, which nearly all are; else nil, and `next` finds
    /// out what there is.
    @inline(__always)
    package mutating func nextWholeMessage() -> Frame? {
        let available = front.count &- position
        guard available >= FrameHeader.byteCount, pieceLeft == 0, assembled == 0 else { return nil }
        let start = front.baseAddress.unsafelyUnwrapped + position
        let header = FrameHeader(readingFrom: start)
        let whole = FrameHeader.byteCount &+ header.payloadLength
        guard FrameType.isWholeMessage(header.type), header.payloadLength <= maximumPayload,
            available >= whole
        else { return nil }
        position &+= whole
        return Frame(
            type: header.type,
            bytes: .init(start: start + FrameHeader.byteCount, count: header.payloadLength), wireBytes: whole)
    }

    /// A slice of `bytes`, which are those of a frame or of several that lie whole one behind the other, that outlives the
    /// decoder's next call; shares memory, copies nothing.
    /// Mutating only to be called in place: a class that holds the decoder would hand out a copy of all of it.
    mutating func retain(_ bytes: UnsafeRawBufferPointer) -> ByteSlice {
        guard let address = bytes.baseAddress, !bytes.isEmpty else { return ByteSlice([]) }
        if let assembly, assembly.base <= address, address < assembly.base + assembly.capacity {
            let start = address - UnsafeRawPointer(assembly.base)
            return ByteSlice(chunk: assembly, start: start, end: start + bytes.count)
        }
        guard let current else { return ByteSlice(copying: bytes) }
        let start = address - UnsafeRawPointer(current.chunk.base)
        return ByteSlice(chunk: current.chunk, start: start, end: start + bytes.count)
    }

    private func check(_ header: FrameHeader) throws(WireError) {
        guard header.payloadLength <= maximumPayload else {
            throw .oversize(type: header.type, length: header.payloadLength, limit: maximumPayload)
        }
    }

    private static func isPiece(_ type: UInt8) -> Bool {
        type == FrameType.piece.rawValue || type == FrameType.bulkPiece.rawValue
    }

    private mutating func begin(piece header: FrameHeader) throws(WireError) {
        guard header.payloadLength > 0 else { throw .malformed("a piece without bytes") }
        pieceType = header.type
        pieceLeft = header.payloadLength
        pieceHeaderBytes = FrameHeader.byteCount
    }

    /// Moves bytes of a split frame to the assembly chunk; the frame once it is whole.
    private mutating func assemble(from start: UnsafeRawPointer, available: Int) throws(WireError) -> Frame? {
        let missingHeader = FrameHeader.byteCount &- assembled
        if missingHeader > 0 {
            let count = min(missingHeader, available)
            prepareAssembly(capacity: FrameHeader.byteCount)
            copyToAssembly(start, count)
            guard assembled == FrameHeader.byteCount, let assembly else { return nil }
            let header = FrameHeader(readingFrom: assembly.base)
            try check(header)
            if Self.isPiece(header.type) {
                assembled = 0
                try begin(piece: header)
                return nil
            }
            return header.payloadLength == 0 ? finishAssembly(header) : nil
        }
        guard let chunk = assembly else { return nil }
        let header = FrameHeader(readingFrom: chunk.base)
        let whole = FrameHeader.byteCount &+ header.payloadLength
        prepareAssembly(capacity: whole)
        copyToAssembly(start, min(whole &- assembled, available))
        return assembled == whole ? finishAssembly(header) : nil
    }

    private mutating func copyToAssembly(_ start: UnsafeRawPointer, _ count: Int) {
        guard let assembly else { return }
        (assembly.base + assembled).copyMemory(from: start, byteCount: count)
        assembled &+= count
        position &+= count
    }

    private mutating func finishAssembly(_ header: FrameHeader) -> Frame? {
        guard let assembly else { return nil }
        assembled = 0
        return Frame(
            type: header.type,
            bytes: .init(start: assembly.base + FrameHeader.byteCount, count: header.payloadLength),
            wireBytes: FrameHeader.byteCount &+ header.payloadLength)
    }

    /// Makes sure the assembly chunk has `capacity` and that nobody kept a slice of it; `capacity` was checked.
    private mutating func prepareAssembly(capacity: Int) {
        let isOurs = assembled > 0 || isKnownUniquelyReferenced(&assembly)
        if isOurs, let assembly, assembly.capacity >= capacity { return }
        let larger = Chunk(capacity: max(capacity, 256))
        if assembled > 0, let assembly { larger.base.copyMemory(from: assembly.base, byteCount: assembled) }
        assembly = larger
    }
}
