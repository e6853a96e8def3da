import NighCore

/// A visitor's request to join a table, with the abilities of its program: the context of the invitation to the host.
struct JoinRequest: Hashable {
    /// The role that the visitor asks for.
    var role: TableRole
    /// Whether the visitor can stay at the table when the host leaves. Older programs cannot.
    var canStay: Bool
    /// The table that the visitor comes from, if the host has taken that one over.
    var lostTable: LostTable?

    /// The encoded request.
    var bytes: [UInt8] {
        var writer = ByteWriter()
        for byte in role.bytes { writer.byte(byte) }
        guard canStay else { return writer.bytes }
        writer.byte(lostTable == nil ? 1 : 2)
        if let lostTable {
            writer.peer(lostTable.host)
            TableMessage.write(lostTable.game, to: &writer)
        }
        return writer.bytes
    }

    init(_ role: TableRole, canStay: Bool = true, lostTable: LostTable? = nil) {
        self.role = role
        self.canStay = canStay
        self.lostTable = lostTable
    }

    /// Decodes the context of an invitation. Ignores additions of later versions at the end.
    init(_ context: [UInt8]) throws(TableRole.Fault) {
        self.init(try TableRole(context), canStay: context.count > 2 && (1...2).contains(context[2]))
        guard canStay, context[2] == 2 else { return }
        var reader = ByteReader(Array(context[3...]))
        do throws(Breach) {
            lostTable = LostTable(host: try reader.peer(), game: try TableMessage.game(from: &reader))
        } catch {
            throw .garbage
        }
    }
}
