import Nigh
import NighCore

/// An error that the actor of a peer has thrown, of a type that does not travel.
///
/// To have errors of a type thrown to callers as they are, name the type when you make the ``ActorSystem``, in both
/// programs.
public struct RemoteError: Error, Hashable, Sendable {
    /// The method that threw: "Board.play(column:)".
    public let method: String
    /// The peer, as a person knows it.
    public let peer: String
    /// The name of the error's type.
    public let type: String
    /// The error in words. Only paired peers get them.
    public let text: String?
}

extension RemoteError: CustomStringConvertible {
    /// The whole error as one sentence.
    public var description: String {
        "calling an actor of \(peer): \(method) failed there with \(type)" + (text.map { ": \($0)" } ?? "")
    }
}

/// The types of errors that travel as they are.
struct ErrorAllowance: Sendable {
    private let names: [ObjectIdentifier: String]
    private let types: [String: any (Error & Codable).Type]

    init(_ types: [any (Error & Codable).Type]) {
        let named = types.map { (name: "\($0)", type: $0) }
        names = Dictionary(named.map { (ObjectIdentifier($0.type), $0.name) }, uniquingKeysWith: { $1 })
        self.types = Dictionary(named.map { ($0.name, $0.type) }, uniquingKeysWith: { $1 })
    }

    /// The name of the error's type, its text, and its value if its type is allowed.
    func encode(_ error: any Error, showsText: Bool) -> ByteSlice {
        let writer = CBORSequenceWriter()
        do {
            try writer.append("\(type(of: error))")
            try writer.append(showsText ? "\(error)" : nil)
            if names[ObjectIdentifier(type(of: error))] != nil, let error = error as? any Codable {
                try? writer.append(error)
            }
            return ByteSlice(writer.bytes)
        } catch {
            return ByteSlice([])
        }
    }

    /// Reads an error that an actor of a peer has thrown.
    func decode(_ content: ByteSlice, from peer: Peer, of method: String) -> any Error {
        guard let error = try? read(content, from: peer, of: method) else {
            return NighError(.calling, .answeredWithError(content.bytes), peer: peer.label)
        }
        return error
    }

    private func read(_ content: ByteSlice, from peer: Peer, of method: String) throws -> any Error {
        var reader = try CBORSequenceReader(content)
        let name = try reader.next(String.self)
        let text = try reader.next(String?.self)
        if !reader.isAtEnd, let type = types[name] { return try reader.next(type) }
        return RemoteError(method: method, peer: peer.label, type: name, text: text)
    }
}
