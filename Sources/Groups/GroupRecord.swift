import NighCore

/// A record about groups, as sent in a message of the kind `kind`. docs/reference/PROTOCOL.md describes the bytes.
///
/// Each side numbers its own memberships. A session uses a number once, so a late record cannot be mistaken for a newer
/// one.
package enum GroupRecord: Equatable {
    /// The sender has joined a group.
    case join(number: UInt32, name: GroupName, context: [UInt8])
    /// The sender has left the group that it joined under this number.
    case leave(number: UInt32)
    /// The sender does not want the receiver in the group that the receiver joined under this number.
    case refuse(number: UInt32, reason: String)
    /// The rest is a message to the group that the sender joined under this number.
    case message(number: UInt32)
}

extension GroupRecord {
    /// The kind of messages that are records of groups.
    package static let kind = MessageKind(rawValue: 1).unsafelyUnwrapped
    /// The most bytes that a program can add when it joins.
    package static let longestContext = 1_024
    /// The most bytes of a reason for refusing.
    package static let longestReason = 255
    /// The bytes in front of a message to a group.
    package static let messageHeaderCount = 5

    private enum Kind: UInt8 {
        case join = 1
        case leave = 2
        case refuse = 3
        case message = 4
    }

    /// The record as it is sent. A message follows behind it.
    package var bytes: [UInt8] {
        var fields = FieldWriter()
        switch self {
        case .join(let number, let name, let context):
            fields.write(Kind.join.rawValue)
            fields.write(number)
            fields.write(short: name.description)
            fields.write(block: context)
        case .leave(let number):
            fields.write(Kind.leave.rawValue)
            fields.write(number)
        case .refuse(let number, let reason):
            fields.write(Kind.refuse.rawValue)
            fields.write(number)
            fields.write(short: reason)
        case .message(let number):
            fields.write(Kind.message.rawValue)
            fields.write(number)
        }
        return fields.bytes
    }

    /// Reads a record. Returns nil if it is of a kind that a later version has.
    package init?(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var fields = FieldReader(bytes)
        let kind = Kind(rawValue: try fields.number(UInt8.self, "a group record's kind"))
        guard let kind else { return nil }
        let number = try fields.number(UInt32.self, "the number of a membership")
        switch kind {
        case .join:
            guard let name = GroupName(try fields.shortText("a group's name")) else {
                throw .malformed("a group without a valid name")
            }
            self = .join(
                number: number, name: name,
                context: try fields.bytes(atMost: Self.longestContext, "the context of a membership"))
        case .leave: self = .leave(number: number)
        case .refuse: self = .refuse(number: number, reason: try fields.shortText("a reason"))
        case .message:
            self = .message(number: number)
            return
        }
        try fields.finish("a record of groups")
    }
}
