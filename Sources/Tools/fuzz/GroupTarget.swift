import NighCore
import NighGroups

/// The groups of a session whose peers say about groups whatever they like.
enum GroupTarget {
    private static let names = ["red", "blue", "Küche"].map { GroupName($0).unsafelyUnwrapped }
    private static let records: [[UInt8]] = [
        GroupRecord.join(number: 1, name: names[0], context: []).bytes,
        GroupRecord.join(number: 2, name: names[1], context: [1, 2, 3]).bytes,
        GroupRecord.join(number: 3, name: names[2], context: []).bytes, GroupRecord.leave(number: 1).bytes,
        GroupRecord.refuse(number: 1, reason: "full").bytes, GroupRecord.message(number: 1).bytes + [7],
    ]
    private static let peers = [1, 2, 3].map { Identity.ephemeral(seed: $0).peerID }

    /// Returns how often a peer became a member.
    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Int {
        var table = GroupTable()
        for peer in peers { table.connected(peer) }
        var joined = 0
        for _ in 0...mutator.number(below: 40) {
            let (name, peer) = (mutator.pick(names), mutator.pick(peers))
            switch mutator.number(below: 8) {
            case 0:
                let isRefused = mutator.oneIn(3)
                // It may have joined already.
                try? table.join(name, context: []) { _, _ in isRefused ? "no" : nil }
            case 1: if mutator.oneIn(4) { table.leave(name) }
            case 2: if mutator.oneIn(4) { table.disconnected(peer) } else { table.connected(peer) }
            case 3, 4: tell(peer, &table, hasRoom: !mutator.oneIn(4))
            default: try receive(mutator.perhapsChanged(mutator.pick(records), with: records), peer, &table)
            }
            joined += try check(&table)
        }
        return joined
    }

    private static func tell(_ peer: PeerID, _ table: inout GroupTable, hasRoom: Bool) {
        _ = table.flush(peer) { _ in hasRoom ? .sent : .full }
    }

    private static func receive(_ bytes: [UInt8], _ peer: PeerID, _ table: inout GroupTable) throws {
        do throws(WireError) {
            try ByteSlice(bytes).withUnsafeBytes { bytes throws(WireError) in
                let record = try GroupRecord(reading: bytes)
                guard let record else { return }
                _ = try table.receive(record, from: peer)
            }
        } catch {
            if error.message.isEmpty { throw Finding("a record is refused without a reason") }
            // It comes back, and begins anew.
            table.connected(peer)
        }
    }

    /// Checks that all members are connected, and that the last event agrees with the table.
    private static func check(_ table: inout GroupTable) throws -> Int {
        let events = table.takeEvents()
        let connected = Set(table.connectedPeers)
        for name in table.groups where !connected.isSuperset(of: table.members(of: name)) {
            throw Finding("a member of \(name) is not connected")
        }
        for case .memberLeft(let peer, let name) in events.suffix(1)
        where table.members(of: name).contains(peer) {
            throw Finding("a member that has left is there")
        }
        return events.count { if case .memberJoined = $0 { true } else { false } }
    }
}
