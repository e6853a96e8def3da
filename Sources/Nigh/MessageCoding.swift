import FoundationEssentials
import NighCore

/// How values become messages: as JSON, which every language reads.
enum MessageCoding {
    static func encode(_ value: some Encodable, to peer: Peer? = nil) throws(NighError) -> Data {
        do {
            return try JSONEncoder().encode(value)
        } catch {
            throw NighError(
                .sending, .invalid("a value of type \(type(of: value)) cannot be written as JSON: \(error)"),
                peer: peer?.name)
        }
    }

    static func decode<Content: Decodable>(
        _ type: Content.Type, from payload: ByteSlice, sender: Peer
    ) throws(NighError) -> Content {
        do {
            return try JSONDecoder().decode(type, from: payload.withUnsafeBytes { Data($0) })
        } catch {
            throw NighError(
                .receiving,
                .invalid("a message of \(payload.count) bytes cannot be read as \(type) in JSON: \(error)"),
                peer: sender.name, advice: "check that both programs use the same types")
        }
    }
}
