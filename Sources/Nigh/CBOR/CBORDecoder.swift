import FoundationEssentials

/// Decodes one value of a tape.
final class CBORDecoder: CBORPathNode, Decoder, SingleValueDecodingContainer {
    fileprivate let tape: CBORTape
    fileprivate let index: Int

    private init(_ tape: CBORTape, _ index: Int, _ key: (any CodingKey)?, in parent: CBORDecoder?) {
        self.tape = tape
        self.index = index
        super.init(key, in: parent)
    }

    /// Decodes the value at an index of a tape, which has no other value around it.
    static func decode<Value: Decodable>(_ type: Value.Type, from tape: CBORTape, at index: Int) throws
        -> Value
    {
        try CBORDecoder(tape, index, nil, in: nil).decode(type)
    }

    var userInfo: [CodingUserInfoKey: Any] {
        if let context = tape.context { context.userInfo } else { [:] }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard tape.entries[index].kind == .map else { throw mismatch([String: Any].self) }
        return KeyedDecodingContainer(CBORKeyedReader(decoder: self, table: tape.keyTable(of: index)))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard tape.entries[index].kind == .array else { throw mismatch([Any].self) }
        return CBORUnkeyedReader(of: self)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { tape.isNull(at: index) }

    @inline(__always)
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try decode(type, at: index, self) }

    // MARK: For the containers

    fileprivate func child(_ index: Int, _ key: any CodingKey) -> CBORDecoder {
        CBORDecoder(tape, index, key, in: self)
    }

    /// Decodes the value at an index. Only types that are not one value of CBOR need its decoder, and errors.
    ///
    /// A cast to a protocol searches its conformances. Comparing types costs nothing where the type is known at compile
    /// time. `unsafeBitCast` is safe because both types are the same.
    @inline(__always)
    fileprivate func decode<Value: Decodable>(
        _ type: Value.Type, at index: Int, _ decoder: @autoclosure () -> CBORDecoder
    ) throws -> Value {
        @inline(__always) func result<Primitive>(_ value: Primitive?) throws -> Value {
            guard let value else { throw decoder().mismatch(type) }
            return unsafeBitCast(value, to: Value.self)
        }
        if type == String.self { return try result(tape.text(at: index)) }
        if type == Int.self { return try result(tape.integer(Int.self, at: index)) }
        if type == Double.self { return try result(tape.double(at: index)) }
        if type == Bool.self { return try result(tape.bool(at: index)) }
        if type == Float.self { return try result(tape.float(at: index)) }
        if type == UInt8.self { return try result(tape.integer(UInt8.self, at: index)) }
        if type == UInt16.self { return try result(tape.integer(UInt16.self, at: index)) }
        if type == UInt32.self { return try result(tape.integer(UInt32.self, at: index)) }
        if type == UInt64.self { return try result(tape.integer(UInt64.self, at: index)) }
        if type == UInt.self { return try result(tape.integer(UInt.self, at: index)) }
        if type == Int8.self { return try result(tape.integer(Int8.self, at: index)) }
        if type == Int16.self { return try result(tape.integer(Int16.self, at: index)) }
        if type == Int32.self { return try result(tape.integer(Int32.self, at: index)) }
        if type == Int64.self { return try result(tape.integer(Int64.self, at: index)) }
        if type == Data.self { return try result(tape.data(at: index)) }
        if type == [UInt8].self, tape.entries[index].kind == .bytes {
            return try result(tape.bytes(at: index))
        }
        return try Value(from: decoder())
    }

    private func mismatch(_ type: Any.Type) -> DecodingError {
        let context = DecodingError.Context(
            codingPath: codingPath, debugDescription: "a value of another kind")
        return decodeNil() ? .valueNotFound(type, context) : .typeMismatch(type, context)
    }
}

private struct CBORKeyedReader<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: CBORDecoder
    let table: CBORKeyTable?

    var codingPath: [any CodingKey] { decoder.codingPath }
    var allKeys: [Key] {
        // `compactMap` is not specialized for keys that only the program knows, and is slow then.
        var keys: [Key] = []
        for index in decoder.tape.keys(of: decoder.index) {
            if let key = Key(stringValue: decoder.tape.name(ofKey: index)) { keys.append(key) }
        }
        return keys
    }

    private func find(_ name: String) -> Int? { decoder.tape.value(of: name, in: decoder.index, table) }

    private func index(of key: any CodingKey) throws -> Int {
        if let index = find(key.stringValue) { return index }
        throw DecodingError.keyNotFound(
            key, .init(codingPath: codingPath, debugDescription: "there is no such key"))
    }

    private func child(_ key: any CodingKey) throws -> CBORDecoder { decoder.child(try index(of: key), key) }

    func contains(_ key: Key) -> Bool { find(key.stringValue) != nil }

    func decodeNil(forKey key: Key) throws -> Bool { decoder.tape.isNull(at: try index(of: key)) }

    @inline(__always)
    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        let index = try index(of: key)
        return try decoder.decode(type, at: index, decoder.child(index, key))
    }

    @inline(__always)
    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        guard let index = find(key.stringValue), !decoder.tape.isNull(at: index) else { return nil }
        return try decoder.decode(type, at: index, decoder.child(index, key))
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

/// Three words, so that an existential holds it in place.
private struct CBORUnkeyedReader: UnkeyedDecodingContainer {
    let decoder: CBORDecoder
    private(set) var currentIndex = 0
    /// The index of the next value on the tape.
    private var position: Int

    init(of decoder: CBORDecoder) {
        self.decoder = decoder
        position = decoder.index + 1
    }

    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { Int(decoder.tape.entries[decoder.index].value) }
    var isAtEnd: Bool { position == decoder.tape.entries[decoder.index].extent }

    private var key: CBORKey { .index(currentIndex) }

    private func checkNext() throws {
        guard isAtEnd else { return }
        throw DecodingError.valueNotFound(
            Any.self, .init(codingPath: codingPath + [key], debugDescription: "there are no more values"))
    }

    /// Goes on to the next value, once this one could be read.
    private mutating func advance() {
        position = decoder.tape.next(after: position)
        currentIndex += 1
    }

    private mutating func take<Value>(_ read: (CBORDecoder) throws -> Value) throws -> Value {
        try checkNext()
        let value = try read(decoder.child(position, key))
        advance()
        return value
    }

    mutating func decodeNil() throws -> Bool {
        try checkNext()
        guard decoder.tape.isNull(at: position) else { return false }
        advance()
        return true
    }

    @inline(__always)
    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try checkNext()
        let value = try decoder.decode(type, at: position, decoder.child(position, key))
        advance()
        return value
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> { try take { try $0.container(keyedBy: type) } }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try take { try $0.unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder { try take { $0 } }
}
