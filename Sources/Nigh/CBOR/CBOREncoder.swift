import Glibc

/// Encodes one value behind the values that its output has already.
///
/// A value in a container is complete when the call that encodes it returns, so it is written to the same output. The
/// program may fill a container from `nestedContainer` or `superEncoder` at any time until the value around it ends. So
/// such a container has an output of its own, which is inserted at the end.
final class CBOREncoder: CBORPathNode, Encoder, SingleValueEncodingContainer {
    private enum Content { case nothing, single, array, map }

    fileprivate let output: CBOROutput
    /// The offset of the value in the output, and the index of its first key there.
    private let start: Int
    private let firstKey: Int
    private var content = Content.nothing
    /// The number of values in an array.
    private(set) fileprivate var count = 0
    /// Has a bit for each key, which other keys may share.
    private var keyMask: UInt64 = 0
    private var mayRepeatKeys = false
    // As in `CBOROutput`, there is no run-time check for exclusive access.
    @exclusivity(unchecked) private var children: [(offset: Int, encoder: CBOREncoder)] = []

    private static let mostCompared = 16

    fileprivate init(_ output: CBOROutput, _ key: (any CodingKey)?, in parent: CBOREncoder?) {
        self.output = output
        start = output.bytes.count
        firstKey = output.keys.count
        super.init(key, in: parent)
        output.writer = ObjectIdentifier(self)
    }

    /// Appends `value` to `output`, or nothing if that fails.
    static func encode<Value: Encodable>(_ value: Value, to output: CBOROutput) throws {
        try output.append(value) {
            let encoder = CBOREncoder(output, nil, in: nil)
            do {
                try value.encode(to: encoder)
            } catch {
                encoder.restart()
                throw error
            }
            encoder.finish()
        }
    }

    var userInfo: [CodingUserInfoKey: Any] {
        if let context = output.context { context.userInfo } else { [:] }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        begin(.map)
        return KeyedEncodingContainer(CBORKeyedWriter(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        begin(.array)
        return CBORUnkeyedWriter(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() {
        restart()
        begin(.single)
        output.appendNull()
    }

    @inline(__always)
    func encode<Value: Encodable>(_ value: Value) throws {
        restart()
        content = .single
        try output.append(value) {
            content = .nothing
            try value.encode(to: self)
        }
    }

    // MARK: For the containers

    /// Begins a value of this kind, if that has not happened. Another kind replaces the value that was encoded before.
    private func begin(_ kind: Content) {
        checkTurn()
        guard content != kind else { return }
        restart()
        content = kind
        if kind != .single { output.bytes.append(0) }
    }

    private func checkTurn() {
        precondition(
            output.writer == ObjectIdentifier(self),
            "a container is written after its value, or while a value in it is being encoded")
    }

    private func restart() {
        checkTurn()
        guard content != .nothing else { return }
        output.truncate(to: start)
        output.keys.removeLast(output.keys.count - firstKey)
        (content, count, keyMask, mayRepeatKeys) = (.nothing, 0, 0, false)
        releaseChildren()
    }

    /// Writes the key of a pair.
    fileprivate func beginPair(_ name: String) {
        begin(.map)
        let start = output.bytes.count
        var name = name
        let mark = name.withUTF8 { name -> UInt64 in
            output.append(.text, UnsafeRawBufferPointer(name))
            guard let first = name.first, let last = name.last else { return 1 }
            let traits = UInt64(name.count) << 16 | UInt64(first) << 8 | UInt64(last)
            return 1 &<< ((traits &* 0x9E37_79B9_7F4A_7C15) &>> 58)
        }
        let key = start..<output.bytes.count
        if keyMask & mark != 0 {
            let others = output.keys[firstKey...]
            if others.count > Self.mostCompared || others.contains(where: { isEqual($0, key) }) {
                mayRepeatKeys = true
            }
        }
        keyMask |= mark
        output.keys.append(key)
    }

    /// Begins a value of an array. Returns its key.
    fileprivate func beginElement() -> CBORKey {
        begin(.array)
        defer { count += 1 }
        return .index(count)
    }

    /// Encodes a value behind its key, or in an array. If that fails, nothing of it remains.
    fileprivate func encodeNested<Value: Encodable>(_ value: Value, _ key: any CodingKey) throws {
        let child = CBOREncoder(output, key, in: self)
        defer { output.writer = ObjectIdentifier(self) }
        do {
            try value.encode(to: child)
        } catch {
            child.restart()
            if content == .array {
                count -= 1
            } else {
                output.truncate(to: output.keys.removeLast().lowerBound)
            }
            throw error
        }
        child.finish()
    }

    /// Returns an encoder of a value behind its key, or in an array, which may be written later.
    fileprivate func child(_ key: any CodingKey) -> CBOREncoder {
        let child = CBOREncoder(CBOROutput(output.context), key, in: self)
        children.append((output.bytes.count, child))
        return child
    }

    // MARK: The end

    /// Completes the value. One that has encoded nothing is an empty map.
    private func finish() {
        switch content {
        case .single: break
        case .nothing: output.appendHead(.map, 0)
        case .array:
            if !children.isEmpty { join([start + 1], without: []) }
            output.setHead(at: start, .array, count)
        case .map:
            let replaced = mayRepeatKeys ? replacedPairs() : []
            count = output.keys.count - firstKey - replaced.count
            if !children.isEmpty || !replaced.isEmpty {
                join(output.keys[firstKey...].map(\.lowerBound), without: replaced)
            }
            output.keys.removeLast(output.keys.count - firstKey)
            output.setHead(at: start, .map, count)
        }
    }

    /// Writes the content again, from the first change on: parts that begin at these offsets, and the children in them.
    private func join(_ parts: [Int], without dropped: Set<Int>) {
        let base = dropped.isEmpty ? children[0].offset : start + 1
        let old = Array(output.bytes[base...])
        var rest = children[...]
        output.truncate(to: base)
        for (index, start) in parts.enumerated() {
            let end = index + 1 < parts.count ? parts[index + 1] : base + old.count
            guard end >= base else { continue }
            var copied = max(start, base)
            while let child = rest.first, child.offset <= end {
                rest.removeFirst()
                guard !dropped.contains(index) else { continue }
                child.encoder.finish()
                output.bytes += old[copied - base..<child.offset - base]
                output.bytes += child.encoder.output.bytes
                copied = child.offset
            }
            if !dropped.contains(index) { output.bytes += old[copied - base..<end - base] }
        }
        releaseChildren()
    }

    /// Lets go of the children, which hold their parent.
    private func releaseChildren() {
        for child in children { child.encoder.releaseChildren() }
        children = []
    }

    /// The pairs of the map whose keys are encoded again later.
    private func replacedPairs() -> Set<Int> {
        let keys = Array(output.keys[firstKey...])
        var table = CBORKeyTable(for: keys.count)
        return output.bytes.withUnsafeBytes { bytes in
            Set(
                keys.indices.reversed().filter { index in
                    let key = UnsafeRawBufferPointer(rebasing: bytes[keys[index]])
                    return !table.insert(index, key) { isEqual(keys[$0], keys[index]) }
                })
        }
    }

    private func isEqual(_ key: Range<Int>, _ other: Range<Int>) -> Bool {
        guard key.count == other.count else { return false }
        return output.bytes.withUnsafeBytes { bytes in
            let start = bytes.baseAddress!
            return memcmp(start + key.lowerBound, start + other.lowerBound, key.count) == 0
        }
    }
}

private struct CBORKeyedWriter<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: CBOREncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil(forKey key: Key) {
        encoder.beginPair(key.stringValue)
        encoder.output.appendNull()
    }

    @inline(__always)
    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        encoder.beginPair(key.stringValue)
        try encoder.output.append(value) { try encoder.encodeNested(value, key) }
    }

    private func child(_ key: any CodingKey) -> CBOREncoder {
        encoder.beginPair(key.stringValue)
        return encoder.child(key)
    }

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
    let encoder: CBOREncoder
    var codingPath: [any CodingKey] { encoder.codingPath }
    var count: Int { encoder.count }

    func encodeNil() {
        _ = encoder.beginElement()
        encoder.output.appendNull()
    }

    @inline(__always)
    func encode<Value: Encodable>(_ value: Value) throws {
        let key = encoder.beginElement()
        try encoder.output.append(value) { try encoder.encodeNested(value, key) }
    }

    private func child() -> CBOREncoder { encoder.child(encoder.beginElement()) }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        child().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { child().unkeyedContainer() }

    func superEncoder() -> any Encoder { child() }
}
