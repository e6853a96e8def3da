import Foundation
import Testing

@testable import Nigh
@testable import NighCore

@Suite("Containers of CBOR") struct CBORContainerTests {
    private struct Name: CodingKey, ExpressibleByStringLiteral {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringLiteral value: String) { stringValue = value }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// Encodes what a test does with the encoder.
    private struct Encoding: Encodable {
        let body: (any Encoder) throws -> Void
        func encode(to encoder: any Encoder) throws { try body(encoder) }
    }

    private func encode(_ body: @escaping (any Encoder) throws -> Void) throws -> [UInt8] {
        try CBORCoder().encode(Encoding(body: body))
    }

    private func encodeMap(
        _ body: @escaping (inout KeyedEncodingContainer<Name>) throws -> Void
    ) throws -> [UInt8] {
        try encode { encoder in
            var map = encoder.container(keyedBy: Name.self)
            try body(&map)
        }
    }

    // MARK: Encoding

    @Test func `Containers that are written in turns each get their own values`() throws {
        let written = try encodeMap { map in
            var list = map.nestedUnkeyedContainer(forKey: "l")
            var inner = map.nestedContainer(keyedBy: Name.self, forKey: "m")
            try list.encode(1)
            try map.encode(2, forKey: "a")
            try inner.encode(3, forKey: "b")
            var deepest = list.nestedUnkeyedContainer()
            try list.encode([4])
            try map.encode(5, forKey: "c")
            try deepest.encode(6)
            try inner.encodeNil(forKey: "d")
            _ = map.nestedContainer(keyedBy: Name.self, forKey: "e")
            #expect(list.count == 3 && deepest.count == 1)
            #expect(deepest.codingPath.map(\.stringValue) == ["l", "1"])
        }
        // {"l": [1, [6], [4]], "m": {"b": 3, "d": null}, "a": 2, "c": 5, "e": {}}
        let expected: [UInt8] =
            [0xA5, 0x61, 0x6C, 0x83, 1, 0x81, 6, 0x81, 4, 0x61, 0x6D, 0xA2, 0x61, 0x62, 3, 0x61, 0x64, 0xF6]
            + [0x61, 0x61, 2, 0x61, 0x63, 5, 0x61, 0x65, 0xA0]
        #expect(written == expected)
    }

    @Test(arguments: [2, 24, 300])
    func `Containers keep the last value of a key`(count: Int) throws {
        let written = try encodeMap { map in
            for number in 0..<count { try map.encode(number, forKey: Name(stringValue: "key \(number)")) }
            var replaced = map.nestedUnkeyedContainer(forKey: "key 1")
            try replaced.encode("lost")
            var kept = map.nestedUnkeyedContainer(forKey: "list")
            try map.encode(-1, forKey: "key 0")
            try map.encode(-2, forKey: "key 1")
            try kept.encode(7)
        }
        struct Two: Decodable, Equatable {
            var first: Int, second: Int, list: [Int]
            enum CodingKeys: String, CodingKey { case first = "key 0", second = "key 1", list }
        }
        let read = try CBORCoder().decode(Two.self, from: ByteSlice(written))
        #expect(read.first == -1 && read.second == -2 && read.list == [7])
        let parsed = try CBORTape(ByteSlice(written), isSequence: false)
        #expect(parsed.keys(of: 0).count == count + 1)
    }

    @Test
    func `Containers have nothing of a value that failed, or that another one replaced`() throws {
        let failing = Encoding { encoder in
            var list = encoder.unkeyedContainer()
            try list.encode("lost")
            var map = list.nestedContainer(keyedBy: Name.self)
            _ = map.nestedUnkeyedContainer(forKey: "lost")
            throw CocoaError(.coderInvalidValue)
        }
        let written = try encodeMap { map in
            try map.encode(1, forKey: "a")
            try? map.encode(failing, forKey: "b")
            var list = map.nestedUnkeyedContainer(forKey: "c")
            try? list.encode(failing)
            try list.encode(2)
            try map.encode(["x": [failing]].count, forKey: "b")
        }
        #expect(written == [0xA3, 0x61, 0x61, 1, 0x61, 0x63, 0x81, 2, 0x61, 0x62, 1])
        #expect(throws: CocoaError.self) { try CBORCoder().encode([[failing]]) }
        let replaced = try encode { encoder in
            var single = encoder.singleValueContainer()
            try? single.encode(failing)
            try single.encode(["lost"])
            try single.encode(1)
        }
        #expect(replaced == [1])
        #expect(try encode { _ in } == [0xA0])
        #expect(try CBORCoder().encode([Encoding { _ in }]) == [0x81, 0xA0])
    }

    @Test(arguments: [0, 23, 24, 255, 256, 65_535, 65_536])
    func `Containers have a length of the right size at all depths`(count: Int) throws {
        let values = [[Int](repeating: 3, count: count), [], [Int](repeating: 1_000, count: count)]
        let written = try CBORCoder().encode(["key": values])
        #expect(try CBORCoder().decode([String: [[Int]]].self, from: ByteSlice(written)) == ["key": values])
        let pairs = Dictionary(uniqueKeysWithValues: (0..<count).map { ("\($0)", $0) })
        #expect(
            try CBORCoder().decode([String: Int].self, from: ByteSlice(try CBORCoder().encode(pairs)))
                == pairs)
    }

    /// A value that is encoded in ways that `choose` picks.
    private indirect enum Tree: Sendable {
        case number(Int)
        case text(String)
        case list([Tree])
        case map([(String, Tree)])

        static func random(depth: Int, _ random: inout SeededGenerator) -> Tree {
            switch Int.random(in: depth > 3 ? 0...1 : 0...3, using: &random) {
            case 0: .number(.random(in: -70_000...70_000, using: &random))
            case 1: .text(String(repeating: "é", count: .random(in: 0...40, using: &random)))
            case 2:
                .list(
                    (0..<Int.random(in: 0...30, using: &random)).map { _ in
                        Self.random(depth: depth + 1, &random)
                    })
            default:
                .map(
                    (0..<Int.random(in: 0...30, using: &random)).map {
                        ("\($0)", Self.random(depth: depth + 1, &random))
                    })
            }
        }
    }

    /// Encodes a tree. Whether values in it are encoded at once or in containers of their own is up to chance, as is
    /// whether these are filled at once.
    private final class TreeEncoding {
        var random: SeededGenerator
        private let isPlain: Bool
        init(_ seed: UInt64, isPlain: Bool) {
            random = SeededGenerator(seed: seed)
            self.isPlain = isPlain
        }

        struct Value: Encodable {
            let tree: Tree
            let encoding: TreeEncoding
            func encode(to encoder: any Encoder) throws { try encoding.encode(tree, to: encoder) }
        }

        func encode(_ tree: Tree, to encoder: any Encoder) throws {
            var later: [(Tree, any Encoder)] = []
            switch tree {
            case .number(let number): try number.encode(to: encoder)
            case .text(let text):
                var single = encoder.singleValueContainer()
                try single.encode(text)
            case .list(let trees):
                var list = encoder.unkeyedContainer()
                for tree in trees {
                    if isPlain || Bool.random(using: &random) {
                        try list.encode(Value(tree: tree, encoding: self))
                    } else {
                        later.append((tree, list.superEncoder()))
                    }
                }
            case .map(let pairs):
                var map = encoder.container(keyedBy: Name.self)
                for (name, tree) in pairs {
                    if isPlain || Bool.random(using: &random) {
                        try map.encode(Value(tree: tree, encoding: self), forKey: Name(stringValue: name))
                    } else {
                        later.append((tree, map.superEncoder(forKey: Name(stringValue: name))))
                    }
                }
            }
            for (tree, encoder) in later.shuffled(using: &random) { try encode(tree, to: encoder) }
        }
    }

    @Test func `Containers have the same bytes however they were written`() throws {
        var random = SeededGenerator(seed: 7)
        for seed in 0..<50 as Range<UInt64> {
            let tree = Tree.random(depth: 0, &random)
            let plain = try encode { try TreeEncoding(seed, isPlain: true).encode(tree, to: $0) }
            let mixed = try encode { try TreeEncoding(seed, isPlain: false).encode(tree, to: $0) }
            #expect(plain == mixed)
            #expect(throws: Never.self) { try CBORTape(ByteSlice(plain), isSequence: false) }
        }
    }

    @Test func `Containers are freed, also after an error`() throws {
        final class Marker: CBORContext {
            let userInfo: [CodingUserInfoKey: any Sendable] = [:]
        }
        for fails in [false, true] {
            weak var marker: Marker?
            do {
                let strong = Marker()
                marker = strong
                let output = CBOROutput(strong)
                let value = Encoding { encoder in
                    var map = encoder.container(keyedBy: Name.self)
                    var list = map.nestedUnkeyedContainer(forKey: "a")
                    let last = list.superEncoder()
                    try 1.encode(to: last)
                    if fails { throw CocoaError(.coderInvalidValue) }
                }
                try? CBOREncoder.encode([value], to: output)
                #expect(output.bytes.isEmpty == fails)
            }
            #expect(marker == nil)
        }
    }

    // MARK: Decoding

    @Test
    func `Large maps find a key with few comparisons, whatever their number`() throws {
        let keys = (0..<5_000).map { Array("key \($0)".utf8) }
        var comparisons = 0
        func isEqual(_ index: Int, _ key: UnsafeRawBufferPointer) -> Bool {
            comparisons += 1
            return keys[index].elementsEqual(key)
        }
        var table = CBORKeyTable(for: keys.count)
        for (index, key) in keys.enumerated() {
            key.withUnsafeBytes { key in #expect(table.insert(index, key) { isEqual($0, key) }) }
        }
        for (index, key) in keys.enumerated() {
            key.withUnsafeBytes { key in #expect(table.find(key) { isEqual($0, key) } == index) }
        }
        [UInt8]("none".utf8).withUnsafeBytes { key in #expect(table.find(key) { isEqual($0, key) } == nil) }
        [UInt8]("key 7".utf8).withUnsafeBytes { key in #expect(!table.insert(0, key) { isEqual($0, key) }) }
        #expect(comparisons < 4 * keys.count)
    }

    @Test
    func `Large maps are read with all keys, and the first of equal ones`() throws {
        let pairs = Dictionary(uniqueKeysWithValues: (0..<30_000).map { ("key \($0)", $0) })
        let written = try CBORCoder().encode(pairs)
        #expect(try CBORCoder().decode([String: Int].self, from: ByteSlice(written)) == pairs)
        for count in [2, 20] {
            var bytes: [UInt8] = [0xB8, UInt8(2 * count)]
            for value in [1, 2] as [UInt8] {
                for key in 0..<count { bytes += [0x18, UInt8(key + 30), value] }
            }
            let read = try CBORCoder().decode([Int: Int].self, from: ByteSlice(bytes))
            #expect(read == Dictionary(uniqueKeysWithValues: (0..<count).map { ($0 + 30, 1) }))
        }
    }

    /// Keeps its decoder for later.
    private struct Kept: Decodable {
        let decoder: any Decoder
        init(from decoder: any Decoder) throws { self.decoder = decoder }
    }

    @Test func `Containers can be read in any order, and later`() throws {
        // {"l": [1, {"a": 2}, 3], "m": {"b": "x"}, "super": 7}
        let bytes: [UInt8] =
            [0xA3, 0x61, 0x6C, 0x83, 1, 0xA1, 0x61, 0x61, 2, 3, 0x61, 0x6D, 0xA1, 0x61, 0x62, 0x61, 0x78]
            + [0x65] + Array("super".utf8) + [7]
        let kept = try CBORCoder().decode(Kept.self, from: ByteSlice(bytes))
        let map = try kept.decoder.container(keyedBy: Name.self)
        #expect(map.allKeys.map(\.stringValue) == ["l", "m", "super"])
        var list = try map.nestedUnkeyedContainer(forKey: "l")
        let inner = try map.nestedContainer(keyedBy: Name.self, forKey: "m")
        #expect(try Int(from: map.superDecoder()) == 7)
        #expect(try list.decode(Int.self) == 1)
        let later = try map.decode([Kept].self, forKey: "l")
        #expect(try inner.decode(String.self, forKey: "b") == "x")
        #expect(try inner.decodeIfPresent(Int.self, forKey: "c") == nil)
        // An error leaves the container where it is.
        #expect(throws: DecodingError.self) { try list.decode(String.self) }
        #expect(try list.nestedContainer(keyedBy: Name.self).decode(Int.self, forKey: "a") == 2)
        #expect(list.currentIndex == 2 && list.count == 3 && !list.isAtEnd)
        #expect(try list.decode(Int.self) == 3 && list.isAtEnd)
        #expect(throws: DecodingError.self) { try list.decodeNil() }
        let last = try later[1].decoder.container(keyedBy: Name.self)
        let error = #expect(throws: DecodingError.self) { try last.decode(String.self, forKey: "a") }
        guard case .typeMismatch(_, let context) = error else { throw try #require(error) }
        #expect(context.codingPath.map(\.stringValue) == ["l", "1", "a"])
    }

    @Test func `Containers with a wrong length take no memory for it`() {
        for head in [
            [0x9A, 0, 0x10, 0, 0], [0xBB, 0, 0, 0, 0, 0, 0, 1, 0], [0x5B, 0, 0, 1, 0, 0, 0, 0, 0],
        ] as [[UInt8]] {
            var bytes = head + [UInt8](repeating: 0xF6, count: 20)
            bytes.withUnsafeMutableBytes { bytes in
                var parser = CBORParser(UnsafeRawBufferPointer(bytes))
                #expect(throws: DecodingError.self) { try parser.parse(isSequence: false) }
                #expect(parser.entries.capacity < 64)
            }
        }
    }
}
