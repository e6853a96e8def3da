import Foundation
import Testing

@testable import Nigh
@testable import NighCore

@Suite("Sequences of values as CBOR") struct CBORSequenceTests {
    private struct Point: Codable, Equatable { var x: Int8, y: UInt16 }

    private static let scale = CodingUserInfoKey(rawValue: "scale")!

    /// A number that both sides multiply by what `userInfo` says.
    private struct Scaled: Codable, Equatable {
        var number: Int

        init(_ number: Int) { self.number = number }

        init(from decoder: any Decoder) throws {
            let scale = try #require(decoder.userInfo[scale] as? Int)
            number = try decoder.singleValueContainer().decode(Int.self) * scale
        }

        func encode(to encoder: any Encoder) throws {
            let scale = try #require(encoder.userInfo[scale] as? Int)
            var container = encoder.singleValueContainer()
            try container.encode(number * scale)
        }
    }

    private final class Scale: CBORContext {
        let userInfo: [CodingUserInfoKey: any Sendable]

        init(_ scale: Int) { userInfo = [CBORSequenceTests.scale: scale] }
    }

    /// Writes a part of itself, and fails.
    private struct Failing: Encodable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            try container.encode("some")
            throw CocoaError(.coderInvalidValue)
        }
    }

    @Test
    func `Sequences are read in the order in which they were written, each as its type`() throws {
        let writer = CBORSequenceWriter()
        #expect(writer.bytes == [])
        try writer.append(7)
        try writer.append("seven")
        try writer.append(Point(x: -1, y: 500))
        try writer.append([Point(x: 1, y: 1)])
        try writer.append(Int?.none)
        try writer.append(Data([1, 2]))
        #expect(writer.bytes.starts(with: [0x07, 0x65]) && writer.bytes.suffix(4) == [0xF6, 0x42, 1, 2])

        var reader = try CBORSequenceReader(ByteSlice(writer.bytes))
        #expect(try reader.next(Int.self) == 7)
        // Another type leaves the reader where it is.
        #expect(throws: DecodingError.self) { try reader.next(Int.self) }
        #expect(try reader.next() as String == "seven")
        #expect(try reader.next(Point.self) == Point(x: -1, y: 500))
        #expect(try reader.next([Point].self) == [Point(x: 1, y: 1)])
        #expect(try reader.next(Int?.self) == nil)
        #expect(!reader.isAtEnd)
        #expect(try reader.next(Data.self) == Data([1, 2]))
        #expect(reader.isAtEnd)
        let error = #expect(throws: DecodingError.self) { try reader.next(Int.self) }
        guard case .valueNotFound(let type, _) = error else { throw try #require(error) }
        #expect(type is Int.Type)
        #expect(try CBORSequenceReader(ByteSlice([])).isAtEnd)
    }

    @Test func `Sequences keep nothing of a value that cannot be encoded`() throws {
        let writer = CBORSequenceWriter()
        try writer.append(1)
        #expect(throws: CocoaError.self) { try writer.append(Failing()) }
        #expect(throws: CocoaError.self) { try writer.append([Failing()]) }
        try writer.append(2)
        #expect(writer.bytes == [1, 2])
    }

    @Test func `Sequences tell types what the program has put into userInfo`() throws {
        let writer = CBORSequenceWriter(in: Scale(10))
        try writer.append(Scaled(3))
        try writer.append(["a": [Scaled(4)]])
        #expect(writer.bytes == [0x18, 30, 0xA1, 0x61, 0x61, 0x81, 0x18, 40])
        var reader = try CBORSequenceReader(ByteSlice(writer.bytes), in: Scale(2))
        #expect(try reader.next(Scaled.self) == Scaled(60))
        #expect(try reader.next([String: [Scaled]].self) == ["a": [Scaled(80)]])
    }

    @Test func `Sequences are checked as a whole before the first value is read`() throws {
        for wrong in [[1, 2, 0x61], [1, 0x82, 1], [1, 0xFF], [0x61, 0xFF], [0xA1, 0x80, 1]] as [[UInt8]] {
            #expect(throws: DecodingError.self) { try CBORSequenceReader(ByteSlice(wrong)) }
        }
        // The values of all count together.
        let many = [UInt8](repeating: 0xF6, count: CBORTape.mostItems)
        #expect(throws: Never.self) { try CBORSequenceReader(ByteSlice(many)) }
        #expect(throws: DecodingError.self) { try CBORSequenceReader(ByteSlice(many + [0xF6])) }
        for depth in [CBORTape.deepest, CBORTape.deepest + 1] {
            let deep = ByteSlice([1] + [UInt8](repeating: 0x81, count: depth) + [0])
            #expect(((try? CBORSequenceReader(deep)) != nil) == (depth == CBORTape.deepest))
        }
    }
}
