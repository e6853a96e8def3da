import NighCore

/// Values as CBOR (RFC 8949): shorter than JSON, and faster to write and to read. Many languages have a library for it.
///
///     settings.coder = CBORCoder()
///
/// A structure is a map with texts as keys, as in JSON; `Data` and `[UInt8]` are byte strings.
public struct CBORCoder: MessageCoder {
    /// Creates a coder.
    public init() {}

    /// Writes a value.
    public func encode(_ value: some Encodable) throws -> [UInt8] {
        let output = CBOROutput()
        try CBOREncoder.encode(value, to: output)
        return output.bytes
    }

    /// Reads a value. Fails if the bytes are no such value, if values lie more than 64 deep in each other, or if there
    /// are more than 1,048,576 of them.
    public func decode<Value: Decodable>(_ type: Value.Type, from bytes: ByteSlice) throws -> Value {
        try CBORDecoder.decode(type, from: CBORTape(bytes, isSequence: false), at: 0)
    }
}
