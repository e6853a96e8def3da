/// Finds the frames in a stream of bytes that may be split anywhere.
///
/// Call `feed` with received bytes, then `next` until it returns nil. A frame that lies whole in one slice is
/// returned in place; only a frame that is split over several slices is copied together first. Pieces of large
/// messages are returned as they arrive and are never collected. Each announced length is checked before it is used,
/// and before memory is allocated for it.
///
/// After an error the frame borders in the stream are lost: do not use the decoder any more.
package struct FrameDecoder {
    /// One frame, or a part of a `piece` frame. Valid until the next call to the
    /// decoder, because the bytes are not copied.
    package struct Frame {
        package let type: UInt8
        package let bytes: UnsafeRawBufferPointer
        /// The number of header and payload bytes to count in flow control. For a piece that arrives in parts,
        /// the first part also counts the header.
        package let wireBytes: Int
    }

    /// The longest accepted payload. It is smaller before the hellos than afterwards.
    var maximumPayload: Int

    private var waiting = ByteQueue()
    private var current: ByteSlice? {
        didSet {
            position = 0
            front = current?.pointer ?? UnsafeRawBufferPointer(start: nil, count: 0)
        }
    }
    /// The bytes of `current`, stored because asking the slice for each frame would take a reference each time.
    private var front = UnsafeRawBufferPointer(start: nil, count: 0)
    private var position = 0

    /// The bytes of a frame that is split over slices and is being copied together, including its header.
    private var assembly: Chunk?
    private var assembled = 0

    private var pieceType: UInt8 = 0
    private var pieceLeft = 0
    /// The bytes of the piece's header that have not been counted yet.
    private var pieceHeaderBytes = 0

    package init(maximumPayload: Int) { self.maximumPayload = maximumPayload }

    /// Adds received bytes. The decoder keeps the slice until it is parsed.
    package mutating func feed(_ slice: ByteSlice) {
        if current == nil {
            current = slice.isEmpty ? nil : slice
        } else {
            waiting.append(slice)
        }
    }

    /// The number of bytes that were fed and have not been returned.
    package var unparsedByteCount: Int { (current?.count ?? 0) - position + waiting.byteCount + assembled }

    /// Returns the next frame or part of a piece. Nil if more bytes are needed.
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

    /// Returns the next frame if it is a message that lies whole at the front, as nearly all messages do.
    /// Otherwise returns nil; call `next` then.
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

    /// Returns a slice of `bytes` that stays valid after the decoder's next call. It shares memory and copies nothing.
    ///
    /// `bytes` are those of a frame, or of several whole frames one behind the other. The method is mutating only so
    /// that it is called in place: otherwise a class that holds the decoder would copy all of it first.
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

    /// Copies bytes of a split frame to the assembly chunk. Returns the frame once it is whole.
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

    /// Makes sure that the assembly chunk has `capacity` bytes and that nobody keeps a slice of
    /// it. The caller has checked `capacity`.
    private mutating func prepareAssembly(capacity: Int) {
        let isUnshared = assembled > 0 || isKnownUniquelyReferenced(&assembly)
        if isUnshared, let assembly, assembly.capacity >= capacity { return }
        let larger = Chunk(capacity: max(capacity, 256))
        if assembled > 0, let assembly { larger.base.copyMemory(from: assembly.base, byteCount: assembled) }
        assembly = larger
    }
}
