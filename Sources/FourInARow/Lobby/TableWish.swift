/// What a visitor wants at a table: the context of the invitation to its host.
public enum TableWish: UInt8, Hashable, Sendable, CaseIterable {
    /// To play.
    case seat = 1
    /// To watch.
    case watch = 2

    /// The encoded wish, after the protocol's version.
    var bytes: [UInt8] { [TableMessage.version, rawValue] }

    /// Why the context of an invitation is not understood.
    enum Fault: Error, Hashable {
        /// It has another version of the protocol.
        case version(UInt8)
        /// It does not belong to this game.
        case garbage
    }

    /// Decodes the context of an invitation. Ignores what a later version may add at the end.
    init(_ context: [UInt8]) throws(Fault) {
        guard context.count >= 2 else { throw .garbage }
        guard context[0] == TableMessage.version else { throw .version(context[0]) }
        guard let wish = TableWish(rawValue: context[1]) else { throw .garbage }
        self = wish
    }
}
