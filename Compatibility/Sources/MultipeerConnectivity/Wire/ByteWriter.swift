/// Writes the fields of a message one after the other.
struct ByteWriter {
    private(set) var bytes: [UInt8] = []

    mutating func put(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// Writes bytes with their number in front.
    mutating func put(field: [UInt8]) {
        put(UInt32(field.count))
        bytes += field
    }

    /// Writes bytes whose number is known to the reader.
    mutating func put(rest: [UInt8]) { bytes += rest }
}

/// Reads the fields of a message. Each of its methods returns nil if there are not enough bytes.
struct ByteReader {
    private let all: UnsafeRawBufferPointer
    private var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { all = bytes }

    var isAtEnd: Bool { position == all.count }

    mutating func bytes(_ count: Int) -> [UInt8]? {
        guard count <= all.count - position else { return nil }
        defer { position += count }
        return Array(all[position..<(position + count)])
    }

    mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
        bytes(MemoryLayout<Number>.size)?.reduce(Number(0)) { $0 << 8 | Number($1) }
    }

    /// Reads bytes that have their number in front.
    mutating func field() -> [UInt8]? { number(UInt32.self).flatMap { bytes(Int($0)) } }

    /// Reads such fields up to the end.
    mutating func fields() -> [[UInt8]]? {
        var fields: [[UInt8]] = []
        while !isAtEnd {
            guard let field = field() else { return nil }
            fields.append(field)
        }
        return fields
    }

    /// Reads all that is left.
    mutating func rest() -> [UInt8] { bytes(all.count - position) ?? [] }
}
