/// Writes the fields of infrequent frames, in network order, into a growing array.
package struct FieldWriter {
    /// The bytes written so far.
    package private(set) var bytes: [UInt8]

    /// Creates a writer that appends to `bytes`.
    package init(behind bytes: consuming [UInt8] = []) { self.bytes = bytes }

    /// Begins again, in the memory that the writer already has.
    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    package mutating func write<Number: FixedWidthInteger>(_ number: Number) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func write(raw: some Sequence<UInt8>) { bytes.append(contentsOf: raw) }

    /// Writes text with its length as one byte in front. Text longer than 255 bytes is cut between characters.
    package mutating func write(short text: String) {
        let kept = Self.cut(text, to: Int(UInt8.max))
        write(UInt8(kept.utf8.count))
        write(raw: kept.utf8)
    }

    /// Writes text with its length as two bytes in front. Text longer than `limit` bytes is cut between characters.
    package mutating func write(long text: String, atMost limit: Int = Int(UInt16.max)) {
        let kept = Self.cut(text, to: min(limit, Int(UInt16.max)))
        write(UInt16(kept.utf8.count))
        write(raw: kept.utf8)
    }

    fileprivate static func cut(_ text: String, to limit: Int) -> String {
        var kept = text
        while kept.utf8.count > limit { kept.removeLast() }
        return kept
    }

    /// Overwrites the four bytes at `position` with `number`.
    package mutating func overwrite(_ number: UInt32, at position: Int) {
        withUnsafeBytes(of: number.bigEndian) { bytes.replaceSubrange(position..<position + 4, with: $0) }
    }

    /// Writes bytes with their count as two bytes in front. At most 65,535 bytes.
    package mutating func write(block: [UInt8]) {
        precondition(block.count <= UInt16.max)
        write(UInt16(block.count))
        write(raw: block)
    }
}

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

/// Writes the fields of a payload, in network order, into memory of exactly its length.
package struct PayloadWriter {
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

    package mutating func write<Number: FixedWidthInteger>(_ number: Number) {
        claim(MemoryLayout<Number>.size).storeBytes(of: number.bigEndian, as: Number.self)
    }

    package mutating func write(raw bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        claim(bytes.count).copyMemory(from: source, byteCount: bytes.count)
    }

    package mutating func write(raw bytes: [UInt8]) { bytes.withUnsafeBytes { write(raw: $0) } }

    /// Writes text as `FieldWriter` does, in `length(ofShort:)` bytes.
    package mutating func write(short text: String) {
        var kept = FieldWriter.cut(text, to: Int(UInt8.max))
        write(UInt8(kept.utf8.count))
        kept.withUTF8 { write(raw: UnsafeRawBufferPointer($0)) }
    }

    /// Returns the number of bytes that `write(short:)` writes.
    package static func length(ofShort text: String) -> Int {
        1 + FieldWriter.cut(text, to: Int(UInt8.max)).utf8.count
    }

    /// Writes bytes with their count as two bytes in front. At most 65,535 bytes.
    package mutating func write(block: [UInt8]) {
        precondition(block.count <= UInt16.max)
        write(UInt16(block.count))
        write(raw: block)
    }
}

/// Reads the fields of a frame. Every read is checked, and an error names the field that is missing or wrong.
package struct FieldReader {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    package var remaining: Int { bytes.count &- position }

    package mutating func take(_ count: Int, _ what: String) throws(WireError) -> UnsafeRawBufferPointer {
        guard count >= 0, count <= remaining else { throw Self.cutShort(what) }
        defer { position &+= count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position &+ count])
    }

    private static func cutShort(_ what: String) -> WireError { .malformed("\(what) is cut short") }

    package mutating func number<Number: FixedWidthInteger>(_ type: Number.Type, _ what: String)
        throws(WireError)
        -> Number
    {
        let size = MemoryLayout<Number>.size
        guard size <= remaining else { throw Self.cutShort(what) }
        defer { position &+= size }
        return Number(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: Number.self))
    }

    /// Reads text with its length as one byte in front. It must be UTF-8.
    package mutating func shortText(_ what: String) throws(WireError) -> String {
        let count = Int(try number(UInt8.self, what))
        return try text(of: try take(count, what), what)
    }

    /// Reads text with its length as two bytes in front. It must be UTF-8 and have at most `limit` bytes.
    package mutating func longText(atMost limit: Int, _ what: String) throws(WireError) -> String {
        let count = Int(try number(UInt16.self, what))
        guard count <= limit else { throw .malformed("\(what) has \(count) bytes, the limit is \(limit)") }
        return try text(of: try take(count, what), what)
    }

    private func text(of raw: UnsafeRawBufferPointer, _ what: String) throws(WireError) -> String {
        // Nearly all texts are ASCII, for which nothing else has to be checked.
        if raw.allSatisfy(\.isPrintableASCII) { return String(decoding: raw, as: UTF8.self) }
        guard let text = String(validating: raw.bindMemory(to: UInt8.self), as: UTF8.self) else {
            throw .malformed("\(what) is not UTF-8")
        }
        return text
    }

    /// Reads short text for people, with control characters replaced by spaces.
    ///
    /// Such words are often shown on a terminal as they are, and a peer must not be able to move its cursor.
    mutating func displayText(_ what: String) throws(WireError) -> String {
        let text = try shortText(what)
        guard text.hasControlCharacter else { return text }
        var shown = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            shown.append(scalar.properties.generalCategory == .control ? " " : scalar)
        }
        return String(shown)
    }

    /// Reads bytes with their count as two bytes in front. At most `limit` bytes.
    package mutating func bytes(atMost limit: Int, _ what: String) throws(WireError) -> [UInt8] {
        let count = Int(try number(UInt16.self, what))
        guard count <= limit else { throw .malformed("\(what) has \(count) bytes, the limit is \(limit)") }
        return Array(try take(count, what))
    }

    /// Returns all bytes that have not been read.
    mutating func rest() -> UnsafeRawBufferPointer {
        defer { position = bytes.count }
        return UnsafeRawBufferPointer(rebasing: bytes[position...])
    }

    /// Fails unless all bytes have been read.
    package func finish(_ what: String) throws(WireError) {
        guard remaining == 0 else { throw .malformed("\(what) has \(remaining) bytes too many") }
    }
}
