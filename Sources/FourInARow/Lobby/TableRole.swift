/// A visitor's role at a table. The context of its invitation names the role that it asks for.
public enum TableRole: UInt8, Hashable, Sendable, CaseIterable {
    /// The visitor plays.
    case seat = 1
    /// The visitor watches.
    case watch = 2

    /// The encoded role, after the protocol's version.
    var bytes: [UInt8] { [TableMessage.version, rawValue] }

    /// The reason why the context of an invitation is not understood.
    enum Fault: Error, Hashable {
        /// It has another version of the protocol.
        case version(UInt8)
        /// It does not belong to this game.
        case garbage
    }

    /// Decodes the context of an invitation. Ignores additions of later versions at the end.
    init(_ context: [UInt8]) throws(Fault) {
        guard context.count >= 2 else { throw .garbage }
        guard context[0] == TableMessage.version else { throw .version(context[0]) }
        guard let role = TableRole(rawValue: context[1]) else { throw .garbage }
        self = role
    }
}
