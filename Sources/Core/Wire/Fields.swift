/// Writes the fields of rare frames, in network order, into a growing array.
package struct FieldWriter {
    /// What was written so far.
    package private(set) var bytes: [UInt8]

    /// A writer behind `bytes`.
    package init(behind bytes: consuming [UInt8] = []) { self.bytes = bytes }

    package mutating func write<Number: FixedWidthInteger>(_ number: Number) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func write(raw: some Sequence<UInt8>) { bytes.append(contentsOf: raw) }

    /// Text behind its length as one byte; cut between characters where it is longer than 255 bytes.
    package mutating func write(short text: String) {
        let kept = Self.cut(text, to: Int(UInt8.max))
        write(UInt8(kept.utf8.count))
        write(raw: kept.utf8)
    }

    /// Text behind its length as two bytes; cut between characters where it is longer than `limit`.
    package mutating func write(long text: String, atMost limit: Int = Int(UInt16.max)) {
        let kept = Self.cut(text, to: min(limit, Int(UInt16.max)))
        write(UInt16(kept.utf8.count))
        write(raw: kept.utf8)
    }

    private static func cut(_ text: String, to limit: Int) -> String {
        var kept = text
        while kept.utf8.count > limit { kept.removeLast() }
        return kept
    }

    /// Writes `number` over what stands at `position`.
    package mutating func overwrite(_ number: UInt32, at position: Int) {
        withUnsafeBytes(of: number.bigEndian) { bytes.replaceSubrange(position..<position + 4, with: $0) }
    }

    /// Bytes behind their length as two; at most 65,535.
    mutating func write(block: [UInt8]) {
        precondition(block.count <= UInt16.max)
        write(UInt16(block.count))
        write(raw: block)
    }
}

/// Reads the fields of a frame; every read is checked and fails with the name of what is missing or wrong.
package struct FieldReader {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    package var remaining: Int { bytes.count &- position }

    package mutating func take(_ count: Int, _ what: String) throws(WireError) -> UnsafeRawBufferPointer {
        guard count >= 0, count <= remaining else { throw .malformed("\(what) is cut short") }
        defer { position &+= count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position &+ count])
    }

    package mutating func number<Number: FixedWidthInteger>(_ type: Number.Type, _ what: String)
        throws(WireError)
        -> Number
    {
        let raw = try take(MemoryLayout<Number>.size, what)
        return Number(bigEndian: raw.loadUnaligned(as: Number.self))
    }

    /// Text behind a one-byte length; must be UTF-8.
    package mutating func short(_ what: String) throws(WireError) -> String {
        let count = Int(try number(UInt8.self, what))
        return try text(of: try take(count, what), what)
    }

    /// Text behind a two-byte length of at most `limit`; must be UTF-8.
    package mutating func long(atMost limit: Int, _ what: String) throws(WireError) -> String {
        let count = Int(try number(UInt16.self, what))
        guard count <= limit else { throw .malformed("\(what) has \(count) bytes, the limit is \(limit)") }
        return try text(of: try take(count, what), what)
    }

    private func text(of raw: UnsafeRawBufferPointer, _ what: String) throws(WireError) -> String {
        guard let text = String(validating: raw.bindMemory(to: UInt8.self), as: UTF8.self) else {
            throw .malformed("\(what) is not UTF-8")
        }
        return text
    }

    /// Short text that is meant for a person. Control characters become spaces: words are shown as they are, often on a
    /// terminal, and no peer is to move its cursor.
    mutating func words(_ what: String) throws(WireError) -> String {
        let text = try short(what)
        let isControl = { (scalar: Unicode.Scalar) in scalar.properties.generalCategory == .control }
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        var shown = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { shown.append(isControl(scalar) ? " " : scalar) }
        return String(shown)
    }

    /// Bytes behind a two-byte length, at most `limit`.
    mutating func block(atMost limit: Int, _ what: String) throws(WireError) -> [UInt8] {
        let count = Int(try number(UInt16.self, what))
        guard count <= limit else { throw .malformed("\(what) has \(count) bytes, the limit is \(limit)") }
        return Array(try take(count, what))
    }

    /// What is left.
    mutating func rest() -> UnsafeRawBufferPointer {
        defer { position = bytes.count }
        return UnsafeRawBufferPointer(rebasing: bytes[position...])
    }

    /// Fails unless everything was read.
    package func finish(_ what: String) throws(WireError) {
        guard remaining == 0 else { throw .malformed("\(what) has \(remaining) bytes too many") }
    }
}
