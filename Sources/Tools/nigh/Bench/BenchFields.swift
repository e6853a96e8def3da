/// Writes fields in network order.
struct BenchWriter {
    private(set) var bytes: [UInt8] = []

    mutating func write<Number: FixedWidthInteger>(_ number: Number) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func write(raw: some Sequence<UInt8>) { bytes.append(contentsOf: raw) }

    /// Text behind its length as one byte, cut between characters where it is too long.
    mutating func write(words: String) {
        var kept = words
        while kept.utf8.count > Int(UInt8.max) { kept.removeLast() }
        write(UInt8(kept.utf8.count))
        write(raw: kept.utf8)
    }

    mutating func write(_ amount: BenchAmount) {
        write(amount.messages)
        write(amount.bytes)
    }

    mutating func write(_ count: BenchCount) {
        write(count.amount)
        write(count.nanoseconds)
    }
}

/// Reads fields; every read is checked.
struct BenchReader {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) throws(BenchBreach) -> Number {
        Number(bigEndian: try take(MemoryLayout<Number>.size).loadUnaligned(as: Number.self))
    }

    mutating func raw(_ count: Int) throws(BenchBreach) -> [UInt8] { Array(try take(count)) }

    /// Text behind its length as one byte; must be UTF-8.
    mutating func words() throws(BenchBreach) -> String {
        let raw = try take(Int(try number(UInt8.self)))
        guard let text = String(validating: raw.bindMemory(to: UInt8.self), as: UTF8.self) else {
            throw BenchBreach("words that are not UTF-8")
        }
        return text
    }

    mutating func amount() throws(BenchBreach) -> BenchAmount {
        BenchAmount(messages: try number(UInt64.self), bytes: try number(UInt64.self))
    }

    mutating func count() throws(BenchBreach) -> BenchCount {
        BenchCount(amount: try amount(), nanoseconds: try number(UInt64.self))
    }

    func finish() throws(BenchBreach) {
        guard position == bytes.count else { throw BenchBreach("a message that is too long for its kind") }
    }

    private mutating func take(_ count: Int) throws(BenchBreach) -> UnsafeRawBufferPointer {
        guard count <= bytes.count - position else { throw BenchBreach("a message that is cut short") }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }
}
