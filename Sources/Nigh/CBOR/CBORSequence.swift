import NighCore

/// The surroundings of values, which their types find in the encoder or decoder. Asked only if a type asks for them.
package protocol CBORContext: AnyObject, Sendable {
    var userInfo: [CodingUserInfoKey: any Sendable] { get }
}

/// Writes values of any types one after the other: a sequence of CBOR (RFC 8742).
package final class CBORSequenceWriter {
    private let output: CBOROutput

    /// Creates a writer without values.
    package init(in context: (any CBORContext)? = nil) { output = CBOROutput(context) }

    /// The values so far.
    package var bytes: [UInt8] { output.bytes }

    /// Appends a value. Appends nothing if it cannot be encoded.
    package func append<Value: Encodable>(_ value: Value) throws {
        try CBOREncoder.encode(value, to: output)
    }
}

/// Reads the values of a sequence, each as a type that the caller knows.
package struct CBORSequenceReader {
    private let tape: CBORTape
    private var index = 0

    /// Creates a reader. Fails if the bytes are no sequence of values, if values lie more than 64 deep in each other,
    /// or if there are more than 1,048,576 of them altogether.
    package init(_ bytes: ByteSlice, in context: (any CBORContext)? = nil) throws {
        tape = try CBORTape(bytes, isSequence: true, context)
    }

    /// Whether all values have been read.
    package var isAtEnd: Bool { index == tape.entries.count }

    /// Reads the next value. If it is of another type, the reader stays in front of it.
    package mutating func next<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        guard !isAtEnd else {
            throw DecodingError.valueNotFound(
                type, .init(codingPath: [], debugDescription: "there are no more values"))
        }
        let value = try CBORDecoder.decode(type, from: tape, at: index)
        index = tape.next(after: index)
        return value
    }
}
