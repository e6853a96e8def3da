import NighCore

/// The bytes of a fuzzer's input, read from front to back as decisions and content. Behind its end, everything is zero.
///
/// A decision takes few bytes. So a small change of the input mostly changes the run only a little.
package struct Input {
    private let all: [UInt8]
    private var position = 0

    package init(_ bytes: [UInt8]) { all = bytes }

    var isAtEnd: Bool { position >= all.count }

    mutating func byte() -> UInt8 {
        guard !isAtEnd else { return 0 }
        defer { position += 1 }
        return all[position]
    }

    /// A big-endian number.
    mutating func number<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) -> Number {
        (0..<Number.bitWidth / 8).reduce(0) { number, _ in
            number << 8 | Number(truncatingIfNeeded: byte())
        }
    }

    mutating func number(below limit: Int) -> Int {
        guard limit > 1 else { return 0 }
        return limit <= 256 ? Int(byte()) % limit : Int(number(UInt16.self)) % limit
    }

    /// True for a 0. So the usual happens once the input has ended.
    mutating func isUsual(oneIn count: Int = 2) -> Bool { number(below: count) == 0 }

    mutating func pick<Elements: RandomAccessCollection>(_ elements: Elements) -> Elements.Element {
        elements[elements.index(elements.startIndex, offsetBy: number(below: elements.count))]
    }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in byte() } }

    /// At most 255 of the next bytes, behind a byte that says how many.
    mutating func content() -> [UInt8] { bytes(min(Int(byte()), all.count - position)) }

    /// All bytes that are left.
    mutating func rest() -> [UInt8] {
        defer { position = all.count }
        return Array(all.dropFirst(position))
    }

    /// The last bytes in the opposite order, for decisions of somebody else.
    func reversed(_ count: Int) -> [UInt8] { all.suffix(count).reversed() }

    /// `bytes` in slices, which share memory or not. A 0 leaves them whole.
    mutating func slices(of bytes: [UInt8]) -> [ByteSlice] {
        guard !bytes.isEmpty else { return [] }
        let whole = ByteSlice(bytes)
        let length = pick([bytes.count, 1, 2, 3, 5, 16, 700])
        let isShared = isUsual()
        return stride(from: 0, to: bytes.count, by: length).map { start in
            let slice = whole[start..<min(start + length, bytes.count)]
            return isShared ? slice : slice.copy()
        }
    }

    /// Changes `bytes` in one way. A 0 changes nothing.
    mutating func edit(_ bytes: inout [UInt8]) {
        let place = number(below: bytes.count + 1)
        switch number(below: 7) {
        case 1: if place < bytes.count { bytes[place] = byte() }
        case 2: if place < bytes.count { bytes[place] ^= 1 << (byte() % 8) }
        case 3: bytes.insert(contentsOf: content(), at: place)
        case 4: bytes.removeSubrange(place..<min(bytes.count, place + 1 + number(below: 16)))
        case 5: bytes.removeSubrange(place...)
        case 6:
            let number = withUnsafeBytes(of: number(UInt64.self).bigEndian) { $0.suffix(1 << (place % 4)) }
            for (index, byte) in zip(bytes.indices.dropFirst(place), number) { bytes[index] = byte }
        default: break
        }
    }

    /// `bytes` with up to three changes.
    mutating func edited(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<number(below: 4) { edit(&bytes) }
        return bytes
    }
}

/// A broken promise.
package struct Finding: Error, CustomStringConvertible {
    package let description: String
}

/// Throws a finding, unless `holds`.
func expect(_ holds: Bool, _ message: @autoclosure () -> String) throws {
    if !holds { throw Finding(description: message()) }
}

/// Returns the result of `body`, or nil if it refuses `bytes`. It must give a reason.
func accepted<Result>(
    _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws(WireError) -> Result
) throws -> Result? {
    try accepted { () throws(WireError) in try ByteSlice(bytes).withUnsafeBytes(body) }
}

/// Returns the result of `body`, or nil if it refuses its input. It must give a reason.
func accepted<Result>(_ body: () throws(WireError) -> Result) throws -> Result? {
    do throws(WireError) {
        return try body()
    } catch {
        try expect(!error.message.isEmpty, "refused without a reason")
        return nil
    }
}
