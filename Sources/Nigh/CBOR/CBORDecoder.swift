/// Reads values from what was received.
struct CBORDecoder: Decoder, SingleValueDecodingContainer {
    let item: CBORItem
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .map(let pairs) = item else { throw mismatch([String: Any].self) }
        return KeyedDecodingContainer(CBORKeyedReader(pairs, codingPath))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let items) = item else { throw mismatch([Any].self) }
        return CBORUnkeyedReader(items: items, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { if case .null = item { true } else { false } }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if let primitive = type as? any CBORPrimitive.Type {
            guard let value = primitive.init(item) as? Value else { throw mismatch(type) }
            return value
        }
        if type == [UInt8].self, case .bytes(let bytes) = item, let value = bytes as? Value { return value }
        return try type.init(from: self)
    }

    private func mismatch(_ type: Any.Type) -> DecodingError {
        let context = DecodingError.Context(
            codingPath: codingPath, debugDescription: "a value of another kind")
        return decodeNil() ? .valueNotFound(type, context) : .typeMismatch(type, context)
    }
}

private struct CBORKeyedReader<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let codingPath: [any CodingKey]
    private let pairs: [(key: String, value: CBORItem)]
    /// Finds a value, in a map so large that searching takes longer.
    private let places: [String: Int]?

    private static var mostSearched: Int { 16 }

    init(_ pairs: [(key: String, value: CBORItem)], _ codingPath: [any CodingKey]) {
        self.pairs = pairs
        self.codingPath = codingPath
        places =
            pairs.count <= Self.mostSearched
            ? nil
            : Dictionary(
                pairs.enumerated().map { ($0.element.key, $0.offset) },
                uniquingKeysWith: { first, _ in first })
    }

    var allKeys: [Key] { pairs.compactMap { Key(stringValue: $0.key) } }

    private func find(_ key: String) -> CBORItem? {
        if let places { return places[key].map { pairs[$0].value } }
        return pairs.first { $0.key == key }?.value
    }

    private func child(_ key: any CodingKey) throws -> CBORDecoder {
        guard let item = find(key.stringValue) else {
            throw DecodingError.keyNotFound(
                key, .init(codingPath: codingPath, debugDescription: "there is no such key"))
        }
        return CBORDecoder(item: item, codingPath: codingPath + [key])
    }

    func contains(_ key: Key) -> Bool { find(key.stringValue) != nil }

    func decodeNil(forKey key: Key) throws -> Bool { try child(key).decodeNil() }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try child(key).decode(type)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { try child(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try child(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { try child(CBORKey.super) }

    func superDecoder(forKey key: Key) throws -> any Decoder { try child(key) }
}

private struct CBORUnkeyedReader: UnkeyedDecodingContainer {
    let items: [CBORItem]
    let codingPath: [any CodingKey]
    private(set) var currentIndex = 0

    init(items: [CBORItem], codingPath: [any CodingKey]) {
        self.items = items
        self.codingPath = codingPath
    }

    var count: Int? { items.count }
    var isAtEnd: Bool { currentIndex == items.count }

    /// The next value, which is passed once it could be read.
    private var next: CBORDecoder {
        get throws {
            let path = codingPath + [CBORKey(intValue: currentIndex)]
            guard !isAtEnd else {
                throw DecodingError.valueNotFound(
                    Any.self, .init(codingPath: path, debugDescription: "there are no more values"))
            }
            return CBORDecoder(item: items[currentIndex], codingPath: path)
        }
    }

    private mutating func take<Value>(_ read: (CBORDecoder) throws -> Value) throws -> Value {
        let value = try read(try next)
        currentIndex += 1
        return value
    }

    mutating func decodeNil() throws -> Bool {
        guard try next.decodeNil() else { return false }
        currentIndex += 1
        return true
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try take { try $0.decode(type) }
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> { try take { try $0.container(keyedBy: type) } }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try take { try $0.unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder { try take { $0 } }
}
