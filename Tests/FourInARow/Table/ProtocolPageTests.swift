import NighCore
import NighTestKit
import Testing

@testable import FourInARow

/// Plays the example of docs/reference/fourinarow-protocol.md byte by byte.
struct ProtocolPageTests {
    /// A line of the example: the words that say who sends, and the bytes.
    private struct Line {
        let sender: Substring
        let words: [Substring]
        let bytes: [UInt8]
    }

    private static func page() -> String {
        RepositoryFile.text(of: "docs/reference/fourinarow-protocol.md")
    }

    private static func example() throws -> [Line] {
        let lines = page().split(separator: "\n", omittingEmptySubsequences: false)
        let heading = try #require(lines.firstIndex { $0.hasPrefix("## ") && $0.hasSuffix("An example") })
        let block = lines[heading...].drop { $0 != "```" }.dropFirst().prefix { $0 != "```" }
        return block.map { line in
            let tokens = line.prefix { $0 != "#" }.split(separator: " ")
            let bytes = tokens.reversed().prefix { $0.count == 2 && UInt8($0, radix: 16) != nil }
            let words = Array(tokens.dropLast(bytes.count))
            return Line(
                sender: words.first ?? "", words: words,
                bytes: bytes.reversed().compactMap { UInt8($0, radix: 16) })
        }
    }

    private static let peers = [
        "Lynx": TableSimulation.lynx, "Owl": TableSimulation.owls[0],
    ]

    /// Makes the host send these bytes to a visitor, and to all others for whom they are, too.
    private static func hostSends(_ bytes: [UInt8], to peer: PeerID, _ table: inout TableSimulation) throws {
        if table.toVisitors[peer]?.isEmpty ?? true {
            guard case .happened(_, let event) = try TableMessage(bytes) else { throw Breach.untimely }
            switch event {
            case .moved(.red, let column, _): try table.act(.move(column), by: .red)
            case .resigned(.red): try table.act(.resign, by: .red)
            default: throw Breach.falseReport
            }
        }
        #expect(table.toVisitors[peer]?.first == bytes)
        for one in table.visitors.keys where table.toVisitors[one]?.first == bytes { table.deliver(to: one) }
    }

    @Test func `The example of the protocol's page is what really happens`() throws {
        var table = TableSimulation()
        for line in try Self.example() {
            let peer = try #require(
                Self.peers[String(line.sender)] ?? Self.peers[String(line.words.last ?? "")])
            switch (line.sender, line.words.last) {
            case (_, "asks"):
                table.visitors[peer] = VisitorTable()
                switch try TableRole(line.bytes) {
                case .seat: table.carryOut(table.host.seat(peer, name: try words(String(line.sender))))
                case .watch:
                    let outputs = table.host.watch(peer)
                    table.carryOut(try #require(outputs))
                }
            case (_, "leaves"):
                table.visitors[peer] = nil
                table.carryOut(table.host.remove(peer))
            case ("Puma", _): try Self.hostSends(line.bytes, to: peer, &table)
            case ("Lynx", "Puma"):
                guard case .request(let request) = try TableMessage(line.bytes) else { throw Breach.untimely }
                try table.act(request.action, by: .yellow)
                #expect(table.toHost.map(\.bytes) == [line.bytes])
                table.deliverToHost()
            default: Issue.record("what is \(line)?")
            }
        }
        #expect(table.toVisitors.values.allSatisfy(\.isEmpty) && table.toHost.isEmpty && table.isOneTable)
        #expect(table.visitors.count == 1)
        let endings = table.hostNews.compactMap { if case .ended(let ending) = $0 { ending } else { nil } }
        #expect(endings == [.line(.red), .resigned(.red)])
        #expect(table.host.table.game?.starter == .yellow)
        #expect(table.host.hasFreeSeat && table.host.table.watcherCount == 1)
    }

    @Test func `The longest message is as long as the page says`() throws {
        var table = Table()
        try table.apply(.sat(words(String(repeating: "x", count: SafeText.byteLimit))))
        for letter in drawnGame.dropLast() {
            let action = Action.move(try column(String(letter)))
            try table.apply(table.event(of: action, by: try #require(table.game?.turn)))
        }
        try table.apply(.brokenOff(.yellow, .garbage))
        let page = Self.page()
        let count = TableMessage.continued(table, seated: false).bytes.count
        #expect(page.contains("| a message but `people` | \(count) bytes"))
        let peer = TableSimulation.peer(1)
        let people = TablePeople(
            guest: peer, watchers: Array(repeating: peer, count: HostTable.watcherLimit))
        #expect(page.contains("| `people` | \(TableMessage.people(people).bytes.count) bytes"))
    }
}
