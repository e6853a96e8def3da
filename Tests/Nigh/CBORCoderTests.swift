import Foundation
import Testing

@testable import Nigh
@testable import NighCore

@Suite("Values as CBOR") struct CBORCoderTests {
    private let coder = CBORCoder()

    private func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    private func bytes(_ hexadecimal: String) -> ByteSlice {
        let digits = Array(hexadecimal)
        return ByteSlice(
            stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0..<$0 + 2]), radix: 16)! })
    }

    private func check<Value: Codable & Equatable>(_ value: Value, _ expected: String) throws {
        #expect(hexadecimal(try coder.encode(value)) == expected)
        #expect(try coder.decode(Value.self, from: bytes(expected)) == value)
    }

    @Test func `Values have the bytes of the examples in RFC 8949`() throws {
        try check(0, "00")
        try check(23, "17")
        try check(24, "1818")
        try check(1_000, "1903e8")
        try check(1_000_000, "1a000f4240")
        try check(UInt64.max, "1bffffffffffffffff")
        try check(-1, "20")
        try check(-1_000, "3903e7")
        try check(Int64.min, "3b7fffffffffffffff")
        try check(1.1, "fb3ff199999999999a")
        try check(-4.1, "fbc010666666666666")
        try check(100_000.0, "fa47c35000")
        try check(Float.infinity, "fa7f800000")
        try check(true, "f5")
        try check([Bool?.none, false], "82f6f4")
        try check("IETF", "6449455446")
        try check("水", "63e6b0b4")
        try check(Data([1, 2, 3, 4]), "4401020304")
        try check([UInt8]([1, 2, 3, 4]), "4401020304")
        try check([[1], [2, 3]], "828101820203")
        try check(["a": 1], "a1616101")
        // Forms that others may write.
        #expect(try coder.decode(Double.self, from: bytes("f93e00")) == 1.5)
        #expect(try coder.decode(Double.self, from: bytes("f90001")) == 5.960464477539063e-8)
        #expect(try coder.decode(Float.self, from: bytes("f9fc00")) == -.infinity)
        #expect(try coder.decode(Double.self, from: bytes("1864")) == 100)
        #expect(try coder.decode(Int.self, from: bytes("c11a514b67b0")) == 1_363_896_240)
        #expect(try coder.decode([Int: String].self, from: bytes("a2016161206162")) == [1: "a", -1: "b"])
        #expect(try coder.decode([UInt8].self, from: bytes("83010203")) == [1, 2, 3])
    }

    private enum Shape: Codable, Equatable {
        case none
        case circle(radius: Double)
        case polygon([Point], name: String?)
    }

    private struct Point: Codable, Equatable { var x: Int8, y: UInt16 }

    private struct Everything: Codable, Equatable {
        var shapes: [Shape]
        var points: [String: Point]
        var numbers: [Int: [Float]]
        var date: Date
        var picture: Data
        var missing: Int?
        var nested: [[String?]]
    }

    private class Animal: Codable {
        var legs = 4
        init() {}
    }

    private final class Cat: Animal {
        var lives = 9
        override init() { super.init() }
        private enum Keys: String, CodingKey { case lives }
        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            lives = try container.decode(Int.self, forKey: .lives)
            try super.init(from: container.superDecoder())
        }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(lives, forKey: .lives)
            try super.encode(to: container.superEncoder())
        }
    }

    private let everything = Everything(
        shapes: [.none, .circle(radius: 1.5), .polygon([Point(x: -1, y: 7)], name: nil)],
        points: Dictionary(
            uniqueKeysWithValues: (0..<40).map { ("point \($0)", Point(x: Int8($0), y: 1_000)) }),
        numbers: [-5: [1, .pi], 7: []], date: Date(timeIntervalSinceReferenceDate: 12_345.678),
        picture: Data((0..<200).map { UInt8($0) }), missing: nil, nested: [["a", nil], []])

    @Test func `Values are read as they were written, whatever Codable makes of them`() throws {
        let written = try coder.encode(everything)
        #expect(try coder.decode(Everything.self, from: ByteSlice(written)) == everything)
        #expect(written.count < (try JSONEncoder().encode(everything)).count)
        let cat = Cat()
        (cat.legs, cat.lives) = (3, 7)
        let read = try coder.decode(Cat.self, from: ByteSlice(try coder.encode(cat)))
        #expect(read.legs == 3 && read.lives == 7)
    }

    @Test func `Values of another type fail with the place and the reason`() throws {
        func reason<Value: Decodable>(_ type: Value.Type, _ hexadecimal: String) -> String? {
            do {
                _ = try coder.decode(type, from: bytes(hexadecimal))
                return nil
            } catch DecodingError.typeMismatch(_, let context) {
                return "type at \(context.codingPath.map(\.stringValue))"
            } catch DecodingError.valueNotFound(_, let context) {
                return "nothing at \(context.codingPath.map(\.stringValue))"
            } catch DecodingError.keyNotFound(let key, _) {
                return "no \(key.stringValue)"
            } catch DecodingError.dataCorrupted(let context) {
                return context.debugDescription
            } catch {
                return "\(error)"
            }
        }
        #expect(reason(Point.self, "a261780161796161") == "type at [\"y\"]")
        #expect(reason(Point.self, "a16178f6") == "nothing at [\"x\"]")
        #expect(reason(Point.self, "a1617801") == "no y")
        for wrong in [
            reason(Point.self, "01"), reason(UInt8.self, "190100"), reason(UInt8.self, "20"),
            reason(Int64.self, "3bffffffffffffffff"),
        ] { #expect(wrong == "type at []") }
        #expect(reason([Int].self, "8201") == "it is cut short" && reason(Int.self, "") == "it is cut short")
        #expect(reason(Int.self, "0101") == "something follows the value")
        #expect(reason(Int.self, "1f") == "a length that is not known beforehand")
        #expect(reason(String.self, "61ff") == "a text that is not UTF-8")
    }

    @Test func `Hostile values end with an error, soon and without much memory`() throws {
        for hexadecimal in [
            "9bffffffffffffffff", "bb7fffffffffffffff00", "5bffffffffffffffff", "9a7fffffff00",
        ] {
            #expect(throws: DecodingError.self) { try coder.decode([Int].self, from: bytes(hexadecimal)) }
        }
        let deep = ByteSlice([UInt8](repeating: 0x81, count: 100_000) + [0])
        #expect(throws: DecodingError.self) { try coder.decode([Int].self, from: deep) }
        let tags = ByteSlice([UInt8](repeating: 0xC1, count: 100_000) + [0])
        #expect(throws: DecodingError.self) { try coder.decode(Int.self, from: tags) }
        let many = ByteSlice([0x9A, 0x00, 0x20, 0x00, 0x00] + [UInt8](repeating: 0xF6, count: 1 << 21))
        #expect(throws: DecodingError.self) { try coder.decode([Int?].self, from: many) }

        let written = try coder.encode(everything)
        for count in 0..<written.count {
            #expect(throws: DecodingError.self) {
                try coder.decode(Everything.self, from: ByteSlice(written.prefix(count)))
            }
        }
        var random = SeededGenerator(seed: 53)
        for _ in 0..<5_000 {
            var changed = written
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                changed[Int.random(in: changed.indices, using: &random)] = .random(
                    in: 0 ... .max, using: &random)
            }
            // Most are errors, some other values. None may stop the program.
            _ = try? coder.decode(Everything.self, from: ByteSlice(changed))
        }
    }
}
