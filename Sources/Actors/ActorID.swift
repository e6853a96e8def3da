import NighCalls
import NighCore

extension ActorSystem {
    /// Names an actor of a peer. A program that has an ID may call its actor, as far as the actor's program allows it.
    ///
    /// The ID of an actor that is not published cannot be guessed. An ID that a peer passed on stays valid as long as
    /// the actor lives.
    public struct ActorID: Hashable, Sendable {
        /// The peer whose program has the actor.
        public let peer: PeerID
        let localID: LocalID

        /// Tells an actor from the others of its program.
        enum LocalID: Hashable {
            /// The actor that is published under this name when it is called.
            case name(String)
            /// The actor that was given this random number.
            case number(UInt64)
        }

        /// The name under which the actor is published, if it was resolved by its name.
        public var name: String? { if case .name(let name) = localID { name } else { nil } }
    }
}

extension ActorSystem.ActorID: Codable {
    /// Writes the ID as an array: the bytes of the PeerID, and the name or the number.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        try container.encode(peer.bytes)
        switch localID {
        case .name(let name): try container.encode(name)
        case .number(let number): try container.encode(number)
        }
    }

    /// Reads an ID.
    public init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        guard let peer = PeerID(bytes: try container.decode([UInt8].self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no PeerID")
        }
        self.peer = peer
        if let number = try? container.decode(UInt64.self) {
            localID = .number(number)
        } else {
            let name = try container.decode(String.self)
            guard ActorStream.isName(name) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "no name of an actor")
            }
            localID = .name(name)
        }
    }
}

extension ActorSystem.ActorID: CustomStringConvertible {
    /// The name or number, and the short PeerID.
    public var description: String {
        switch localID {
        case .name(let name): "\"\(name)\" of \(peer.short)"
        case .number(let number): "#\(String(number, radix: 16)) of \(peer.short)"
        }
    }
}
