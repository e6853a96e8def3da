/// Writes fields in network order, each behind the last.
package protocol FieldWriting {
    /// Writes these bytes as they are.
    mutating func write(raw bytes: UnsafeRawBufferPointer)
}

extension FieldWriting {
    package mutating func write<Number: FixedWidthInteger>(_ number: Number) {
        withUnsafeBytes(of: number.bigEndian) { write(raw: $0) }
    }

    package mutating func write(raw bytes: [UInt8]) { bytes.withUnsafeBytes { write(raw: $0) } }

    /// Writes text with its length as one byte in front. Text longer than 255 bytes is cut between characters.
    package mutating func write(short text: String) {
        var kept = text.cut(to: Int(UInt8.max))
        write(UInt8(kept.utf8.count))
        kept.withUTF8 { write(raw: UnsafeRawBufferPointer($0)) }
    }

    /// Returns the number of bytes that `write(short:)` writes.
    package static func length(ofShort text: String) -> Int { 1 + text.cut(to: Int(UInt8.max)).utf8.count }

    /// Writes text with its length as two bytes in front. Text longer than `limit` bytes is cut between characters.
    package mutating func write(long text: String, atMost limit: Int = Int(UInt16.max)) {
        var kept = text.cut(to: min(limit, Int(UInt16.max)))
        write(UInt16(kept.utf8.count))
        kept.withUTF8 { write(raw: UnsafeRawBufferPointer($0)) }
    }

    /// Writes bytes with their count as two bytes in front. At most 65,535 bytes.
    package mutating func write(block: [UInt8]) {
        precondition(block.count <= UInt16.max)
        write(UInt16(block.count))
        write(raw: block)
    }
}

extension String {
    /// The first `limit` bytes, or fewer, so that no character is cut.
    fileprivate func cut(to limit: Int) -> String {
        var kept = self
        while kept.utf8.count > limit { kept.removeLast() }
        return kept
    }
}

/// Writes the fields of infrequent frames into a growing array.
package struct FieldWriter: FieldWriting {
    /// The bytes written so far.
    package private(set) var bytes: [UInt8]

    /// Creates a writer that appends to `bytes`.
    package init(behind bytes: consuming [UInt8] = []) { self.bytes = bytes }

    /// Begins again, in the memory that the writer already has.
    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    package mutating func write(raw bytes: UnsafeRawBufferPointer) { self.bytes.append(contentsOf: bytes) }

    /// Overwrites the four bytes at `position` with `number`.
    package mutating func overwrite(_ number: UInt32, at position: Int) {
        withUnsafeBytes(of: number.bigEndian) { bytes.replaceSubrange(position..<position + 4, with: $0) }
    }
}
