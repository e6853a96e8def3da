/// A value of CBOR (RFC 8949), without the parts that Codable has no use for: tags are passed over, and lengths are
/// known beforehand.
enum CBORItem {
    case unsigned(UInt64)
    /// The number -1 - n.
    case negative(UInt64)
    case bytes([UInt8])
    case text(String)
    case array([CBORItem])
    case map([(key: String, value: CBORItem)])
    case bool(Bool)
    case null
    case float(Float)
    case double(Double)

    /// How deep arrays and maps may lie in each other.
    static let deepest = 64
    /// The number of values that one message may have, since each takes more memory than the byte that it may be.
    static let mostItems = 1 << 20

    private enum Major: UInt8 {
        case unsigned, negative, bytes, text, array, map, tag, simple
    }

    // MARK: Writing

    func write(to bytes: inout [UInt8]) {
        switch self {
        case .unsigned(let number): Self.writeHead(.unsigned, number, to: &bytes)
        case .negative(let number): Self.writeHead(.negative, number, to: &bytes)
        case .bytes(let content):
            Self.writeHead(.bytes, UInt64(content.count), to: &bytes)
            bytes += content
        case .text(let text): Self.write(text, to: &bytes)
        case .array(let items):
            Self.writeHead(.array, UInt64(items.count), to: &bytes)
            for item in items { item.write(to: &bytes) }
        case .map(let pairs):
            Self.writeHead(.map, UInt64(pairs.count), to: &bytes)
            for (key, value) in pairs {
                Self.write(key, to: &bytes)
                value.write(to: &bytes)
            }
        case .bool(let value): bytes.append(value ? 0xF5 : 0xF4)
        case .null: bytes.append(0xF6)
        case .float(let value):
            bytes.append(0xFA)
            withUnsafeBytes(of: value.bitPattern.bigEndian) { bytes += $0 }
        case .double(let value):
            bytes.append(0xFB)
            withUnsafeBytes(of: value.bitPattern.bigEndian) { bytes += $0 }
        }
    }

    private static func write(_ text: String, to bytes: inout [UInt8]) {
        writeHead(.text, UInt64(text.utf8.count), to: &bytes)
        bytes += text.utf8
    }

    private static func writeHead(_ major: Major, _ number: UInt64, to bytes: inout [UInt8]) {
        let kind = major.rawValue << 5
        switch number {
        case 0..<24: bytes.append(kind | UInt8(number))
        case 0...UInt64(UInt8.max): bytes += [kind | 24, UInt8(number)]
        case 0...UInt64(UInt16.max):
            bytes.append(kind | 25)
            withUnsafeBytes(of: UInt16(number).bigEndian) { bytes += $0 }
        case 0...UInt64(UInt32.max):
            bytes.append(kind | 26)
            withUnsafeBytes(of: UInt32(number).bigEndian) { bytes += $0 }
        default:
            bytes.append(kind | 27)
            withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
        }
    }

    // MARK: Reading

    /// Why bytes are no value.
    struct Malformed: Error {
        let reason: String
    }

    /// Reads a value, which must be all there is.
    init(reading bytes: UnsafeRawBufferPointer) throws(Malformed) {
        var reader = Reader(bytes: bytes)
        self = try reader.item(depth: 0)
        guard reader.position == bytes.count else { throw Malformed(reason: "something follows the value") }
    }

    private struct Reader {
        let bytes: UnsafeRawBufferPointer
        var position = 0
        var itemCount = 0

        mutating func item(depth: Int) throws(Malformed) -> CBORItem {
            itemCount += 1
            guard itemCount <= mostItems else { throw Malformed(reason: "there are too many values") }
            guard depth <= deepest else { throw Malformed(reason: "values lie too deep in each other") }
            let first = try number(UInt8.self)
            guard let major = Major(rawValue: first >> 5) else { throw Malformed(reason: "an unknown kind") }
            if major == .simple { return try simple(first & 31) }
            let count = try argument(first & 31)
            switch major {
            case .unsigned: return .unsigned(count)
            case .negative: return .negative(count)
            case .bytes: return .bytes(Array(try take(count)))
            case .text: return .text(try text(count))
            case .array:
                var items: [CBORItem] = []
                items.reserveCapacity(try sensible(count))
                for _ in 0..<count { items.append(try item(depth: depth + 1)) }
                return .array(items)
            case .map:
                var pairs: [(key: String, value: CBORItem)] = []
                pairs.reserveCapacity(try sensible(count))
                for _ in 0..<count {
                    let key = try key(depth: depth + 1)
                    pairs.append((key, try item(depth: depth + 1)))
                }
                return .map(pairs)
            case .tag: return try item(depth: depth + 1)
            case .simple: throw Malformed(reason: "an unknown kind")
            }
        }

        /// The key of a map, also one that another language wrote as a number.
        private mutating func key(depth: Int) throws(Malformed) -> String {
            switch try item(depth: depth) {
            case .text(let text): return text
            case .unsigned(let number): return "\(number)"
            case .negative(let number) where number < UInt64(Int64.max): return "-\(number + 1)"
            default: throw Malformed(reason: "a key that is no text")
            }
        }

        private mutating func simple(_ kind: UInt8) throws(Malformed) -> CBORItem {
            switch kind {
            case 20: .bool(false)
            case 21: .bool(true)
            case 22, 23: .null
            case 25: .float(Self.half(try number(UInt16.self)))
            case 26: .float(Float(bitPattern: try number(UInt32.self)))
            case 27: .double(Double(bitPattern: try number(UInt64.self)))
            default: throw Malformed(reason: "an unknown simple value")
            }
        }

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
        private mutating func argument(_ kind: UInt8) throws(Malformed) -> UInt64 {
            switch kind {
            case 0..<24: UInt64(kind)
            case 24: UInt64(try number(UInt8.self))
            case 25: UInt64(try number(UInt16.self))
            case 26: UInt64(try number(UInt32.self))
            case 27: try number(UInt64.self)
            default: throw Malformed(reason: "a length that is not known beforehand")
            }
        }

        /// A number of values, of which each takes a byte at least.
        private func sensible(_ count: UInt64) throws(Malformed) -> Int {
            guard count <= UInt64(min(bytes.count - position, mostItems)) else {
                throw Malformed(reason: "it is cut short")
            }
            return Int(count)
        }

        private mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) throws(Malformed)
            -> Number
        {
            let raw = try take(UInt64(MemoryLayout<Number>.size))
            return Number(bigEndian: raw.loadUnaligned(as: Number.self))
        }

        private mutating func take(_ count: UInt64) throws(Malformed) -> UnsafeRawBufferPointer {
            guard count <= UInt64(bytes.count - position) else { throw Malformed(reason: "it is cut short") }
            defer { position += Int(count) }
            return UnsafeRawBufferPointer(rebasing: bytes[position..<position + Int(count)])
        }

        private mutating func text(_ count: UInt64) throws(Malformed) -> String {
            let raw = try take(count)
            guard let text = String(validating: raw.bindMemory(to: UInt8.self), as: UTF8.self) else {
                throw Malformed(reason: "a text that is not UTF-8")
            }
            return text
        }
    }
}
