import FoundationEssentials
import NighCore

/// How values become messages: as JSON, which every language reads.
enum MessageCoding {
    static func encode(_ value: some Encodable, to peer: Peer? = nil) throws(NighError) -> Data {
        do {
            return try JSONEncoder().encode(value)
        } catch {
            throw NighError(
                .sending, .invalid("\(type(of: value)): it cannot be written as JSON: \(reason(error))"),
                peer: peer?.label)
        }
    }

    static func decode<Content: Decodable>(
        _ type: Content.Type, from payload: ByteSlice, sender: Peer
    ) throws(NighError) -> Content {
        do {
            return try decode(type, from: payload.withUnsafeBytes { Data($0) })
        } catch {
            throw NighError(
                .receiving,
                .invalid("message: its \(payload.count) bytes are no \(type) in JSON: \(reason(error))"),
                peer: sender.label, advice: "check that both programs use the same types")
        }
    }

    static func decode<Content: Decodable>(_ type: Content.Type, from data: Data) throws -> Content {
        try JSONDecoder().decode(type, from: data)
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
        case DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty: "it is no JSON"
        case DecodingError.dataCorrupted(let context):
            "\(path(context.codingPath)) has a value that is not possible there"
        case EncodingError.invalidValue(_, let context):
            "\(path(context.codingPath)) has a value that JSON does not know"
        default: "\(error)"
        }
    }
}
