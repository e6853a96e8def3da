/// Reads the fields of a frame. Every read is checked, and an error names the field that is missing or wrong.
package struct FieldReader {
    @usableFromInline let bytes: UnsafeRawBufferPointer
    @usableFromInline var position = 0

    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    @inlinable package var remaining: Int { bytes.count &- position }

    package mutating func take(_ count: Int, _ what: String) throws(WireError) -> UnsafeRawBufferPointer {
        guard count >= 0, count <= remaining else { throw Self.cutShort(what) }
        defer { position &+= count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position &+ count])
    }

    @usableFromInline static func cutShort(_ what: String) -> WireError { .malformed("\(what) is cut short") }

    @inlinable package mutating func number<Number: FixedWidthInteger>(_ type: Number.Type, _ what: String)
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
    package mutating func displayText(_ what: String) throws(WireError) -> String {
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
