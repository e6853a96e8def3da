import NighCore

/// The path of a conversation: a transport, and the carrier if there is one.
package enum ConversationPath: Hashable, Sendable {
    /// Over a transport. `carrier` is the peer that relays the link; nil if the link is direct.
    case over(scheme: String, carrier: PeerID?)
    /// There is no link now.
    case interrupted

    /// Writes the path, after the caller has written the peer at its other end.
    func write(to fields: inout FieldWriter) {
        switch self {
        case .over(let scheme, let carrier):
            fields.write(short: scheme)
            fields.write(carrier == nil ? 0 as UInt8 : 1)
            if let carrier { fields.write(raw: carrier.bytes) }
        case .interrupted:
            fields.write(short: "")
            fields.write(0 as UInt8)
        }
    }

    /// Reads a path.
    init(reading fields: inout FieldReader) throws(WireError) {
        let scheme = try fields.shortText("the transport of a path")
        guard scheme.isEmpty || TransportSpec.isScheme(scheme) else {
            throw .malformed("a path over no transport")
        }
        let hasCarrier = try fields.number(UInt8.self, "whether a path has a carrier")
        switch hasCarrier {
        case 0: self = scheme.isEmpty ? .interrupted : .over(scheme: scheme, carrier: nil)
        case 1 where !scheme.isEmpty:
            let bytes = try fields.take(PeerID.byteCount, "the carrier of a path")
            guard let carrier = PeerID(bytes: bytes) else { throw .malformed("the carrier of a path") }
            self = .over(scheme: scheme, carrier: carrier)
        default: throw .malformed("whether a path has a carrier")
        }
    }
}
