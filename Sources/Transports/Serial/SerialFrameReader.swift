import NighCore

/// Finds the frames in the bytes of a serial line, and drops everything else.
package struct SerialFrameReader {
    private static let limit = ByteStuffing.limit(for: SerialFrame.limit)

    /// The bytes since the last zero, or the first of them if they are more than a frame has.
    private var part: [UInt8] = []

    package init() {}

    package mutating func read(_ bytes: UnsafeRawBufferPointer) -> [SerialFrame] {
        var frames: [SerialFrame] = []
        for (index, piece) in bytes.split(separator: 0, omittingEmptySubsequences: false).enumerated() {
            if index > 0 {
                if part.count <= Self.limit, let frame = SerialFrame(stuffed: part) { frames.append(frame) }
                part.removeAll(keepingCapacity: true)
            }
            part += piece.prefix(Self.limit + 1 - part.count)
        }
        return frames
    }
}
