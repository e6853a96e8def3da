import NighCore

/// What a visitor wants at a table, and what its program can do: the context of the invitation to the host.
struct JoinRequest: Hashable {
    /// The place that the visitor wants.
    var wish: TableWish
    /// Whether the visitor can stay at the table when the host leaves. Older programs cannot.
    var canStay: Bool
    /// The table that the visitor comes from, if the host has taken that one over.
    var lostTable: LostTable?

    /// The encoded request.
    var bytes: [UInt8] {
        var writer = ByteWriter()
        for byte in wish.bytes { writer.byte(byte) }
        guard canStay else { return writer.bytes }
        writer.byte(lostTable == nil ? 1 : 2)
        if let lostTable {
            writer.peer(lostTable.host)
            TableMessage.write(lostTable.game, to: &writer)
        }
        return writer.bytes
    }

    init(_ wish: TableWish, canStay: Bool = true, lostTable: LostTable? = nil) {
        self.wish = wish
        self.canStay = canStay
        self.lostTable = lostTable
    }

    /// Decodes the context of an invitation. Ignores what a later version may add at the end.
    init(_ context: [UInt8]) throws(TableWish.Fault) {
        self.init(try TableWish(context), canStay: context.count > 2 && (1...2).contains(context[2]))
        guard canStay, context[2] == 2 else { return }
        var reader = ByteReader(Array(context[3...]))
        do throws(Breach) {
            lostTable = LostTable(host: try reader.peer(), game: try TableMessage.game(from: &reader))
        } catch {
            throw .garbage
        }
    }
}
