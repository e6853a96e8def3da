import FoundationEssentials
import NighCore

/// Writes values as bytes, and reads them: those of messages, of questions and their answers. Both programs need the
/// same one. By default it is JSON, which every language reads.
public protocol MessageCoder: Sendable {
    /// Writes a value.
    func encode(_ value: some Encodable) throws -> [UInt8]

    /// Reads a value of this type. Fails if the bytes are not such a value: any peer may have sent them.
    func decode<Value: Decodable>(_ type: Value.Type, from bytes: ByteSlice) throws -> Value
}

/// Values as JSON.
struct JSONCoder: MessageCoder {
    func encode(_ value: some Encodable) throws -> [UInt8] { Array(try JSONEncoder().encode(value)) }

    func decode<Value: Decodable>(_ type: Value.Type, from bytes: ByteSlice) throws -> Value {
        try JSONDecoder().decode(type, from: bytes.withUnsafeBytes { Data($0) })
    }
}

/// Keeps the coder of a session for code that has only a reference to the session.
final class MessageCoding: SessionLayer {
    let coder: any MessageCoder

    init(_ coder: any MessageCoder) { self.coder = coder }
}

extension SessionReference {
    private var coder: any MessageCoder { layer(MessageCoding.self)?.coder ?? JSONCoder() }

    func encode(_ value: some Encodable, to peer: Peer? = nil) throws(NighError) -> [UInt8] {
        do {
            return try coder.encode(value)
        } catch {
            throw NighError(
                .sending, .invalid("\(type(of: value)): it cannot be encoded: \(Self.reason(error))"),
                peer: peer?.label)
        }
    }

    /// Encodes a value for several peers.
    func encode(_ value: some Encodable, to peers: [Peer]) throws(PartialSendError) -> [UInt8] {
        do throws(NighError) {
            return try encode(value)
        } catch {
            throw PartialSendError(error, peers: peers.map(\.id))
        }
    }

    func decode<Content: Decodable>(
        _ type: Content.Type, from payload: ByteSlice, sender: Peer
    ) throws(NighError) -> Content {
        do {
            return try coder.decode(type, from: payload)
        } catch {
            throw NighError(
                .receiving,
                .invalid("message: its \(payload.count) bytes are no \(type): \(Self.reason(error))"),
                peer: sender.label, advice: "check that both programs use the same types")
        }
    }

    /// Why a value could not be written or read, in a few words.
    private static func reason(_ error: any Error) -> String {
        func path(_ context: [any CodingKey]) -> String {
            context.isEmpty ? "the value" : "\"" + context.map(\.stringValue).joined(separator: ".") + "\""
        }
        return switch error {
        case DecodingError.typeMismatch(let type, let context):
            "\(path(context.codingPath)) is no \(type)"
        case DecodingError.valueNotFound(_, let context): "\(path(context.codingPath)) is missing"
        case DecodingError.keyNotFound(let key, let context):
            "\(path(context.codingPath + [key])) is missing"
        case DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty:
            "they are not encoded so"
        case DecodingError.dataCorrupted(let context):
            "\(path(context.codingPath)) has a value that is not possible there"
        case EncodingError.invalidValue(_, let context):
            "\(path(context.codingPath)) has a value that cannot be written"
        default: "\(error)"
        }
    }
}
