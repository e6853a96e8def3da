import NighCore

/// A message from one engine to another, in their conversation. All but data is handled on the control queue.
///
/// A message is a byte for its kind, and its fields, numbers with the highest byte first. A session is named by a
/// number that it draws, and draws anew after each `disconnect`, so that nothing old reaches it.
enum WireMessage {
    /// The two sessions that a message is for: the receiver's and the sender's.
    struct Sessions: Hashable, Sendable {
        var to: UInt64
        var from: UInt64
    }

    /// A member of a session, as another member knows it.
    struct Member: Sendable {
        var peer: PeerID
        var session: UInt64
        var name: String
        var addresses: [String]
    }

    /// Asks a program into the session `from`. The same number is used when the question is repeated.
    case invite(number: UInt64, from: UInt64, seconds: UInt32, context: [UInt8]?)
    /// Answers an invitation.
    case decline(number: UInt64)
    /// Answers an invitation; the inviter's session is `to`.
    case accept(number: UInt64, Sessions)
    /// Answers an acceptance that came too late. It ends the connection that the acceptance has begun, and no newer
    /// one.
    case withdraw(number: UInt64, Sessions)
    /// Asks a session in which somebody else is already a member, or which the program wants connected.
    case join(Sessions)
    /// Says that the sender counts the two sessions as being connected, and shows certificates.
    case hello(Sessions, certificates: [[UInt8]]?)
    /// Says that the receiver's certificates are accepted.
    case ready(Sessions)
    /// Ends the connection between the two sessions.
    case leave(Sessions)
    /// Names other members of the session `to`.
    case members(Sessions, [Member])
    /// Says where the sender listens.
    case addresses([String])
    /// Says that the sender does not need the conversation.
    case idle

    fileprivate enum Kind: UInt8 {
        case data = 1
        case invite, decline, accept, withdraw, join, hello, ready, leave, members, addresses, idle
    }

    /// The bytes in front of the program's own in a message of data.
    static let dataHeaderCount = 17

    /// Writes the bytes in front of the program's own.
    static func writeDataHeader(_ sessions: Sessions, to bytes: UnsafeMutableRawBufferPointer) {
        bytes[0] = Kind.data.rawValue
        bytes.storeBytes(of: sessions.to.bigEndian, toByteOffset: 1, as: UInt64.self)
        bytes.storeBytes(of: sessions.from.bigEndian, toByteOffset: 9, as: UInt64.self)
    }

    /// The sessions of a message of data; nil for any other message.
    static func dataSessions(in bytes: UnsafeRawBufferPointer) -> Sessions? {
        guard bytes.count >= dataHeaderCount, bytes[0] == Kind.data.rawValue else { return nil }
        return Sessions(
            to: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 1, as: UInt64.self)),
            from: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 9, as: UInt64.self)))
    }

    // MARK: Bytes

    var bytes: [UInt8] {
        var writer = ByteWriter()
        switch self {
        case .invite(let number, let from, let seconds, let context):
            writer.put(Kind.invite.rawValue)
            writer.put(number)
            writer.put(from)
            writer.put(seconds)
            writer.put(UInt8(context == nil ? 0 : 1))
            writer.put(rest: context ?? [])
        case .decline(let number):
            writer.put(Kind.decline.rawValue)
            writer.put(number)
        case .accept(let number, let sessions):
            writer.put(Kind.accept.rawValue)
            writer.put(number)
            writer.put(sessions)
        case .withdraw(let number, let sessions):
            writer.put(Kind.withdraw.rawValue)
            writer.put(number)
            writer.put(sessions)
        case .join(let sessions): writer.put(.join, sessions)
        case .hello(let sessions, let certificates):
            writer.put(.hello, sessions)
            writer.put(UInt8(certificates == nil ? 0 : 1))
            for certificate in certificates ?? [] { writer.put(field: certificate) }
        case .ready(let sessions): writer.put(.ready, sessions)
        case .leave(let sessions): writer.put(.leave, sessions)
        case .members(let sessions, let members):
            writer.put(.members, sessions)
            for member in members {
                writer.put(rest: member.peer.bytes)
                writer.put(member.session)
                writer.put(field: Array(member.name.utf8))
                writer.put(UInt8(clamping: member.addresses.count))
                for address in member.addresses.prefix(255) { writer.put(field: Array(address.utf8)) }
            }
        case .addresses(let addresses):
            writer.put(Kind.addresses.rawValue)
            for address in addresses { writer.put(field: Array(address.utf8)) }
        case .idle: writer.put(Kind.idle.rawValue)
        }
        return writer.bytes
    }

    /// Reads a message; nil if it is not one.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard let kind = reader.number(UInt8.self).flatMap(Kind.init) else { return nil }
        switch kind {
        case .data: return nil
        case .invite:
            guard let number = reader.number(UInt64.self), let from = reader.number(UInt64.self),
                let seconds = reader.number(UInt32.self), let hasContext = reader.number(UInt8.self)
            else { return nil }
            let context = hasContext == 0 ? nil : reader.rest()
            self = .invite(number: number, from: from, seconds: seconds, context: context)
        case .decline:
            guard let number = reader.number(UInt64.self) else { return nil }
            self = .decline(number: number)
        case .accept:
            guard let number = reader.number(UInt64.self), let sessions = reader.sessions() else {
                return nil
            }
            self = .accept(number: number, sessions)
        case .withdraw:
            guard let number = reader.number(UInt64.self), let sessions = reader.sessions() else {
                return nil
            }
            self = .withdraw(number: number, sessions)
        case .join:
            guard let sessions = reader.sessions() else { return nil }
            self = .join(sessions)
        case .hello:
            guard let sessions = reader.sessions(), let hasAny = reader.number(UInt8.self),
                let certificates = reader.fields()
            else { return nil }
            self = .hello(sessions, certificates: hasAny == 0 ? nil : certificates)
        case .ready:
            guard let sessions = reader.sessions() else { return nil }
            self = .ready(sessions)
        case .leave:
            guard let sessions = reader.sessions() else { return nil }
            self = .leave(sessions)
        case .members:
            guard let sessions = reader.sessions(), let members = reader.members() else { return nil }
            self = .members(sessions, members)
        case .addresses:
            guard let fields = reader.fields() else { return nil }
            self = .addresses(fields.map { String(decoding: $0, as: UTF8.self) })
        case .idle: self = .idle
        }
    }
}

extension ByteWriter {
    fileprivate mutating func put(_ sessions: WireMessage.Sessions) {
        put(sessions.to)
        put(sessions.from)
    }

    fileprivate mutating func put(_ kind: WireMessage.Kind, _ sessions: WireMessage.Sessions) {
        put(kind.rawValue)
        put(sessions)
    }
}

extension ByteReader {
    fileprivate mutating func sessions() -> WireMessage.Sessions? {
        guard let to = number(UInt64.self), let from = number(UInt64.self) else { return nil }
        return WireMessage.Sessions(to: to, from: from)
    }

    fileprivate mutating func members() -> [WireMessage.Member]? {
        var members: [WireMessage.Member] = []
        while !isAtEnd {
            guard let id = bytes(PeerID.byteCount).flatMap({ PeerID(bytes: $0) }),
                let session = number(UInt64.self), let name = field(), let count = number(UInt8.self)
            else { return nil }
            var addresses: [String] = []
            for _ in 0..<count {
                guard let address = field() else { return nil }
                addresses.append(String(decoding: address, as: UTF8.self))
            }
            members.append(
                WireMessage.Member(
                    peer: id, session: session, name: String(decoding: name, as: UTF8.self),
                    addresses: addresses))
        }
        return members
    }
}
