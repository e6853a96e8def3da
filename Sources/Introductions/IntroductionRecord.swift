import NighCore

/// A record about introductions. A message of the kind `kind` has one or more. docs/reference/PROTOCOL.md describes the
/// bytes.
package enum IntroductionRecord: Equatable {
    /// The sender describes itself.
    case here(Presence)
    /// The sender reports a peer that it is connected to.
    case member(MemberReport)
    /// The sender withdraws its report about a peer: they are not connected any more, or the receiver need not know it.
    case gone(PeerID)
    /// The sender asks to be introduced to a peer that the receiver has reported.
    case ask(PeerID)
    /// The addresses of a peer, and the token that proves the introduction to it.
    case introduction(PeerID, addresses: [TransportAddress], token: [UInt8])
    /// The path of the sender's conversation with a reported peer. Sent only to peers that want paths.
    case path(PeerID, ConversationPath)
}

/// A session's description of itself for a peer.
package struct Presence: Equatable, Sendable {
    /// Whether the session is in a mesh, and wants to be connected to all other members.
    package var isMesh: Bool
    /// Whether the receiver may report to others that it carries pipes to the session.
    package var acceptsRelays: Bool
    /// Whether the session asks for the paths of the receiver's conversations.
    package var wantsPaths = false
    /// A random number of the session for this conversation. The receiver's tokens for others are valid with this
    /// number only.
    package var nonce: UInt64
    package var advertisement: Advertisement
    /// Where the session can be reached, the best first.
    package var addresses: [TransportAddress]
}

/// A session's report to a peer about another one that it is connected to.
package struct MemberReport: Equatable, Sendable {
    /// Whether the session and both peers are in the mesh.
    package var isMesh: Bool
    /// Whether the session carries pipes between the two peers.
    package var isCarried: Bool
    package var advertisement: Advertisement
}

extension IntroductionRecord {
    /// The kind of messages that hold these records.
    package static let kind = MessageKind(rawValue: 2).unsafelyUnwrapped
    /// The most addresses in a record.
    package static let mostAddresses = 8
    /// The most bytes of an address.
    package static let longestAddress = 255

    private enum Kind: UInt8 {
        case here = 1
        case member = 2
        case gone = 3
        case ask = 4
        case introduction = 5
        case path = 6
    }

    private static let meshFlag: UInt8 = 1
    private static let relayFlag: UInt8 = 2
    private static let pathsFlag: UInt8 = 4

    /// The record as it is sent: its kind, its length, and its content.
    package var bytes: [UInt8] {
        var fields = FieldWriter()
        let kind: Kind
        switch self {
        case .here(let presence):
            kind = .here
            fields.write(
                Self.flags(presence.isMesh, presence.acceptsRelays)
                    | (presence.wantsPaths ? Self.pathsFlag : 0))
            fields.write(presence.nonce)
            fields.write(block: presence.advertisement.bytes)
            Self.write(presence.addresses, to: &fields)
        case .member(let report):
            kind = .member
            fields.write(Self.flags(report.isMesh, report.isCarried))
            fields.write(block: report.advertisement.bytes)
        case .gone(let peer):
            kind = .gone
            fields.write(raw: peer.bytes)
        case .ask(let peer):
            kind = .ask
            fields.write(raw: peer.bytes)
        case .introduction(let peer, let addresses, let token):
            kind = .introduction
            fields.write(raw: peer.bytes)
            Self.write(addresses, to: &fields)
            fields.write(block: token)
        case .path(let peer, let path):
            kind = .path
            fields.write(raw: peer.bytes)
            path.write(to: &fields)
        }
        var record = FieldWriter()
        record.write(kind.rawValue)
        record.write(block: fields.bytes)
        return record.bytes
    }

    private static func flags(_ isMesh: Bool, _ isRelay: Bool) -> UInt8 {
        (isMesh ? meshFlag : 0) | (isRelay ? relayFlag : 0)
    }

    private static func write(_ addresses: [TransportAddress], to fields: inout FieldWriter) {
        let written = addresses.filter { $0.description.utf8.count <= longestAddress }.prefix(mostAddresses)
        fields.write(UInt8(written.count))
        for address in written { fields.write(short: address.description) }
    }

    /// Reads the records of a message. Ignores kinds of later versions.
    package static func records(
        in bytes: UnsafeRawBufferPointer
    ) throws(WireError) -> [IntroductionRecord] {
        var fields = FieldReader(bytes)
        var records: [IntroductionRecord] = []
        while fields.remaining > 0 {
            let kind = try fields.number(UInt8.self, "the kind of an introduction's record")
            let count = Int(try fields.number(UInt16.self, "the length of an introduction's record"))
            let content = try fields.take(count, "an introduction's record")
            if let kind = Kind(rawValue: kind) { records.append(try record(kind, content)) }
        }
        return records
    }

    private static func record(
        _ kind: Kind, _ bytes: UnsafeRawBufferPointer
    ) throws(WireError) -> IntroductionRecord {
        var fields = FieldReader(bytes)
        let record: IntroductionRecord
        switch kind {
        case .here:
            let flags = try fields.number(UInt8.self, "the flags of a presence")
            let nonce = try fields.number(UInt64.self, "the number of a presence")
            record = .here(
                Presence(
                    isMesh: flags & meshFlag != 0, acceptsRelays: flags & relayFlag != 0,
                    wantsPaths: flags & pathsFlag != 0, nonce: nonce,
                    advertisement: try advertisement(&fields), addresses: try addresses(&fields)))
        case .member:
            let flags = try fields.number(UInt8.self, "the flags of a member")
            record = .member(
                MemberReport(
                    isMesh: flags & meshFlag != 0, isCarried: flags & relayFlag != 0,
                    advertisement: try advertisement(&fields)))
        case .gone: record = .gone(try peer(&fields))
        case .ask: record = .ask(try peer(&fields))
        case .introduction:
            record = .introduction(
                try peer(&fields), addresses: try addresses(&fields),
                token: try fields.bytes(atMost: ConversationRequest.introductionLimit, "a token"))
        case .path: record = .path(try peer(&fields), try ConversationPath(reading: &fields))
        }
        try fields.finish("an introduction's record")
        return record
    }

    private static func peer(_ fields: inout FieldReader) throws(WireError) -> PeerID {
        let bytes = try fields.take(PeerID.byteCount, "an introduced PeerID")
        guard let peer = PeerID(bytes: bytes) else { throw .malformed("an introduced PeerID") }
        return peer
    }

    private static func advertisement(_ fields: inout FieldReader) throws(WireError) -> Advertisement {
        let bytes = try fields.bytes(atMost: Advertisement.maximumByteCount, "a member's advertisement")
        guard let advertisement = Advertisement(bytes: bytes) else {
            throw .malformed("a member without a valid advertisement")
        }
        return advertisement
    }

    private static func addresses(_ fields: inout FieldReader) throws(WireError) -> [TransportAddress] {
        let count = Int(try fields.number(UInt8.self, "the number of addresses"))
        guard count <= mostAddresses else { throw .malformed("\(count) addresses of one peer") }
        var addresses: [TransportAddress] = []
        for _ in 0..<count {
            guard let address = TransportAddress(try fields.shortText("an address")) else {
                throw .malformed("an address without a scheme")
            }
            addresses.append(address)
        }
        return addresses
    }
}
