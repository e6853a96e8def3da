/// Checks bytes that were received, and lists the values in them.
struct CBORParser {
    typealias Entry = CBORTape.Entry

    private(set) var entries: [Entry] = []
    private let bytes: UnsafeRawBufferPointer
    private var position = 0
    /// The number of values and tags.
    private var itemCount = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        entries.reserveCapacity(min(bytes.count, 32))
    }

    private func malformed(_ reason: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: [], debugDescription: reason))
    }

    mutating func parse(isSequence: Bool) throws {
        guard isSequence else {
            try item(depth: 0)
            guard position == bytes.count else { throw malformed("something follows the value") }
            return
        }
        while position < bytes.count { try item(depth: 0) }
    }

    private mutating func item(depth: Int) throws {
        itemCount += 1
        guard itemCount <= CBORTape.mostItems else { throw malformed("there are too many values") }
        guard depth <= CBORTape.deepest else { throw malformed("values lie too deep in each other") }
        let first = try number(UInt8.self)
        // Three bits have eight values.
        let major = CBORMajor(rawValue: first >> 5)!
        let argument = major == .simple ? 0 : try argument(first & 31)
        switch major {
        case .unsigned: append(.unsigned, argument)
        case .negative: append(.negative, argument)
        case .bytes, .text:
            guard argument <= UInt64(bytes.count - position) else { throw malformed("it is cut short") }
            let content = bytes[position..<position + Int(argument)]
            if major == .text { try checkText(UnsafeRawBufferPointer(rebasing: content)) }
            let kind: CBORTape.Kind = major == .text ? .text : .bytes
            entries.append(Entry(kind: kind, value: UInt64(position), extent: content.count))
            position += content.count
        case .array, .map:
            // Each value takes a byte at least.
            guard argument <= UInt64(min(bytes.count - position, CBORTape.mostItems)) else {
                throw malformed("it is cut short")
            }
            let (kind, index): (CBORTape.Kind, Int) = (major == .map ? .map : .array, entries.count)
            append(kind, argument)
            for _ in 0..<argument {
                if major == .map { try key(depth: depth + 1) }
                try item(depth: depth + 1)
            }
            entries[index].extent = entries.count
        case .tag: try item(depth: depth + 1)
        case .simple: try simple(first & 31)
        }
    }

    private mutating func append(_ kind: CBORTape.Kind, _ value: UInt64) {
        entries.append(Entry(kind: kind, value: value))
    }

    private mutating func key(depth: Int) throws {
        let index = entries.count
        try item(depth: depth)
        switch entries[index].kind {
        case .text, .unsigned: break
        case .negative where entries[index].value < UInt64(Int64.max): break
        default: throw malformed("a key that is no text")
        }
    }

    private func checkText(_ text: UnsafeRawBufferPointer) throws {
        let isValid = text.withMemoryRebound(to: UInt8.self) { (try? UTF8Span(validating: $0.span)) != nil }
        guard isValid else { throw malformed("a text that is not UTF-8") }
    }

    private mutating func simple(_ kind: UInt8) throws {
        switch kind {
        case 20: append(.bool, 0)
        case 21: append(.bool, 1)
        case 22, 23: append(.null, 0)
        case 25: append(Double(Self.half(try number(UInt16.self))))
        case 26: append(Double(Float(bitPattern: try number(UInt32.self))))
        case 27: append(Double(bitPattern: try number(UInt64.self)))
        default: throw malformed("an unknown simple value")
        }
    }

    private mutating func append(_ number: Double) { append(.float, number.bitPattern) }

    /// A number of 16 bits, which some languages write where it loses nothing.
    private static func half(_ bits: UInt16) -> Float {
        let (exponent, fraction) = (Int(bits >> 10 & 31), Float(bits & 1_023))
        let magnitude: Float =
            switch exponent {
            case 0: fraction / 16_777_216
            case 31: fraction == 0 ? .infinity : .nan
            default: Float(sign: .plus, exponent: exponent - 15, significand: 1 + fraction / 1_024)
            }
        return bits & 0x8000 == 0 ? magnitude : -magnitude
    }

    /// The number in a head.
    private mutating func argument(_ kind: UInt8) throws -> UInt64 {
        switch kind {
        case 0..<24: UInt64(kind)
        case 24: UInt64(try number(UInt8.self))
        case 25: UInt64(try number(UInt16.self))
        case 26: UInt64(try number(UInt32.self))
        case 27: try number(UInt64.self)
        default: throw malformed("a length that is not known beforehand")
        }
    }

    private mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
        let size = MemoryLayout<Number>.size
        guard size <= bytes.count - position else { throw malformed("it is cut short") }
        defer { position += size }
        return Number(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: Number.self))
    }
}
