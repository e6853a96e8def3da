/// The payload of a frame, which is written to where it leaves from.
package protocol FramePayload {
    /// The number of bytes that `write` writes.
    var payloadLength: Int { get }

    /// Writes all fields.
    func write(to writer: inout PayloadWriter)
}

extension FramePayload {
    /// The payload as an array, for tests and tools.
    package var payload: [UInt8] {
        let length = payloadLength
        return [UInt8](unsafeUninitializedCapacity: length) { bytes, count in
            var writer = PayloadWriter(.init(start: bytes.baseAddress, count: length))
            write(to: &writer)
            count = length
        }
    }
}

/// Writes the fields of a payload into memory of exactly its length.
package struct PayloadWriter: FieldWriting {
    private var rest: UnsafeMutableRawBufferPointer

    /// Creates a writer that fills `bytes` from the front.
    init(_ bytes: UnsafeMutableRawBufferPointer) { rest = bytes }

    /// Whether all of the memory is written.
    var isFull: Bool { rest.isEmpty }

    /// Returns the next `count` bytes, which the caller writes at once.
    mutating func claim(_ count: Int) -> UnsafeMutableRawPointer {
        precondition(count >= 0 && count <= rest.count, "a payload is longer than its length")
        defer { rest = UnsafeMutableRawBufferPointer(rebasing: rest[count...]) }
        return rest.baseAddress.unsafelyUnwrapped
    }

    package mutating func write(raw bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        claim(bytes.count).copyMemory(from: source, byteCount: bytes.count)
    }
}
