import FoundationEssentials
import Nigh
import NighCore

/// Values as CBOR. What was accepted must mean the same when it is written again.
enum CBORTarget {
    private struct Point: Codable, Sendable {
        var x: Int8
        var y: Double
        var z: UInt32?
    }

    private enum Shape: Codable, Sendable {
        case none
        case circle(Point, radius: Float)
        indirect case both(Shape, Shape)
    }

    private struct Everything: Codable, Sendable {
        var shapes: [Shape]
        var points: [String: Point]
        var numbers: [Int: [UInt64]]
        var picture: Data
        var texts: [String?]
    }

    private static let shapes: [Shape] = [
        .none, .circle(Point(x: -1, y: 0.1, z: 7), radius: 2),
        .both(.none, .circle(Point(x: 1, y: 3, z: nil), radius: .infinity)),
    ]

    /// Dictionaries have one key each. The order of more would change from run to run, and a seed must be one input.
    private static let everything = Everything(
        shapes: shapes, points: ["a": Point(x: 1, y: 1.5, z: 1)], numbers: [-5: [1, .max]],
        picture: Data([1, 2, 3]), texts: ["a", nil, "Küche"])

    private static let valid: [[UInt8]] = {
        var all: [[UInt8]] = [
            // A number of 16 bits, a tag, keys that are numbers, a wrong text, a wrong length, and too deep a value.
            [0xF9, 0x3E, 0x00, 0xC1, 0x1A, 0, 1, 2, 3], [0xA2, 0x01, 0x81, 1, 0x20, 0x81, 2],
            [0x62, 0xC3, 0x28, 0x7F], [0x9B, 0, 0, 0, 0, 0, 1, 0, 0, 0xF6],
            [UInt8](repeating: 0x81, count: 70),
            // More keys than are searched one by one.
            [0xB4] + (0..<20 as Range<UInt8>).flatMap { [0x61, 0x61 + $0, 0x81, $0] },
        ]
        for value in [everything, shapes, shapes[1], shapes[2]] as [any Encodable] {
            let writer = CBORSequenceWriter()
            for _ in 0..<2 { try? writer.append(value) }
            all.append(writer.bytes)
        }
        return all
    }()

    /// Returns the number of values that could be decoded.
    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Int {
        let bytes = mutator.perhapsChanged(mutator.pick(valid), with: valid)
        guard var reader = try? CBORSequenceReader(ByteSlice(bytes)) else { return 0 }
        var decoded = 0
        while !reader.isAtEnd {
            let before = decoded
            if try read(Everything.self, &reader) { decoded += 1 }
            if try read([Shape].self, &reader) { decoded += 1 }
            if try read(Shape.self, &reader) { decoded += 1 }
            if try read([String: [Int?]].self, &reader) { decoded += 1 }
            if try read(Double.self, &reader) { decoded += 1 }
            if try read(String.self, &reader) { decoded += 1 }
            // A value that is none of these has all the others behind it.
            guard decoded > before else { break }
        }
        return decoded
    }

    private static func read<Value: Codable>(_ type: Value.Type, _ reader: inout CBORSequenceReader) throws
        -> Bool
    {
        guard !reader.isAtEnd, let value = try? reader.next(type) else { return false }
        let written = CBORSequenceWriter()
        try written.append(value)
        guard written.bytes.count < 1 << 20 else { throw Finding("\(type) became too long") }
        // Dictionaries change their order, so only lengths can be compared.
        var again = try CBORSequenceReader(ByteSlice(written.bytes))
        let rewritten = CBORSequenceWriter()
        try rewritten.append(try again.next(type))
        guard again.isAtEnd, rewritten.bytes.count == written.bytes.count else {
            throw Finding("\(type) is not the same when it is read again")
        }
        return true
    }
}
