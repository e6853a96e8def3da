/// What somebody who comes to a table wants there: the context of the invitation to its host.
public enum TableWish: UInt8, Hashable, Sendable, CaseIterable {
    /// To play.
    case seat = 1
    /// To watch.
    case watch = 2

    /// As it travels, behind the protocol's version.
    var bytes: [UInt8] { [TableMessage.version, rawValue] }

    /// Why an invitation is not understood.
    enum Fault: Error, Hashable {
        /// Another version of the protocol.
        case version(UInt8)
        /// Nothing of this game's.
        case garbage
    }

    /// What the context of an invitation says. A later version may say more behind it.
    init(_ context: [UInt8]) throws(Fault) {
        guard context.count >= 2 else { throw .garbage }
        guard context[0] == TableMessage.version else { throw .version(context[0]) }
        guard let wish = TableWish(rawValue: context[1]) else { throw .garbage }
        self = wish
    }
}
