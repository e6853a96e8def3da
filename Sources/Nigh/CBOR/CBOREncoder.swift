/// A value that is being encoded. Containers of Codable are written in any order, so they are kept as a tree.
final class CBORNode {
    fileprivate enum Content {
        case item(CBORItem)
        case array([CBORNode])
        case map([(key: String, node: CBORNode)])
    }

    fileprivate var content: Content?

    fileprivate init() {}

    init(_ value: some Encodable, at path: [any CodingKey]) throws { try encode(value, at: path) }

    /// The value. One that has encoded nothing is an empty map.
    var item: CBORItem {
        switch content {
        case .item(let item): item
        case .array(let nodes): .array(nodes.map(\.item))
        case .map(let pairs): .map(pairs.map { ($0.key, $0.node.item) })
        case nil: .map([])
        }
    }

    fileprivate func encode<Value: Encodable>(_ value: Value, at path: [any CodingKey]) throws {
        if let primitive = value as? any CBORPrimitive {
            content = .item(primitive.cborItem)
        } else if Value.self == [UInt8].self, let bytes = value as? [UInt8] {
            content = .item(.bytes(bytes))
        } else {
            try value.encode(to: CBOREncoder(node: self, codingPath: path))
        }
    }

    fileprivate func append(_ node: CBORNode) {
        guard case .array(var nodes) = content else { return content = .array([node]) }
        content = nil
        nodes.append(node)
        content = .array(nodes)
    }

    /// Sets the value of a key, which a later one replaces.
    fileprivate func set(_ key: String, _ node: CBORNode) {
        guard case .map(var pairs) = content else { return content = .map([(key, node)]) }
        content = nil
        if let index = pairs.firstIndex(where: { $0.key == key }) {
            pairs[index].node = node
        } else {
            pairs.append((key, node))
        }
        content = .map(pairs)
    }

    fileprivate var count: Int { if case .array(let nodes) = content { nodes.count } else { 0 } }
}

private struct CBOREncoder: Encoder, SingleValueEncodingContainer {
    let node: CBORNode
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if node.content == nil { node.content = .map([]) }
        return KeyedEncodingContainer(CBORKeyedWriter(node: node, codingPath: codingPath))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        if node.content == nil { node.content = .array([]) }
        return CBORUnkeyedWriter(node: node, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() { node.content = .item(.null) }

    func encode<Value: Encodable>(_ value: Value) throws { try node.encode(value, at: codingPath) }
}

private struct CBORKeyedWriter<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let node: CBORNode
    let codingPath: [any CodingKey]

    private func child(_ key: any CodingKey) -> CBOREncoder {
        let child = CBORNode()
        node.set(key.stringValue, child)
        return CBOREncoder(node: child, codingPath: codingPath + [key])
    }

    func encodeNil(forKey key: Key) { child(key).encodeNil() }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try child(key).encode(value) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> { child(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        child(key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { child(CBORKey.super) }

    func superEncoder(forKey key: Key) -> any Encoder { child(key) }
}

private struct CBORUnkeyedWriter: UnkeyedEncodingContainer {
    let node: CBORNode
    let codingPath: [any CodingKey]

    var count: Int { node.count }

    private func child() -> CBOREncoder {
        let child = CBORNode()
        let key = CBORKey(intValue: count)
        node.append(child)
        return CBOREncoder(node: child, codingPath: codingPath + [key])
    }

    func encodeNil() { child().encodeNil() }

    func encode<Value: Encodable>(_ value: Value) throws { try child().encode(value) }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        child().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { child().unkeyedContainer() }

    func superEncoder() -> any Encoder { child() }
}

/// A key that no type of the program has: a place in an array, or that of a superclass.
struct CBORKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = "\(intValue)"
        self.intValue = intValue
    }

    static let `super` = CBORKey(stringValue: "super")
}
