import Glibc
import NighCore
import Testing

@testable import FourInARow

/// Plays the example of docs/reference/fourinarow-protocol.md byte by byte.
struct ProtocolPageTests {
    /// A line of the example: who sends, and the bytes.
    private struct Line {
        let who: String
        let bytes: [UInt8]
    }

    private static func page() throws -> String {
        let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let file = try #require(fopen("/\(root)/docs/reference/fourinarow-protocol.md", "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func example() throws -> [Line] {
        let lines = try page().split(separator: "\n", omittingEmptySubsequences: false)
        let heading = try #require(lines.firstIndex { $0.hasPrefix("## ") && $0.hasSuffix("An example") })
        let block = lines[heading...].drop { $0 != "```" }.dropFirst().prefix { $0 != "```" }
        return block.map { line in
            let tokens = line.prefix { $0 != "#" }.split(separator: " ")
            let bytes = tokens.reversed().prefix { $0.count == 2 && UInt8($0, radix: 16) != nil }
            return Line(
                who: tokens.dropLast(bytes.count).joined(separator: " "),
                bytes: bytes.reversed().compactMap { UInt8($0, radix: 16) })
        }
    }

    /// The table of the example.
    private struct Stage {
        let names = ["Lynx": TableSimulation.peer(1), "Owl": TableSimulation.peer(2)]
        var host = HostTable()
        var visitors: [PeerID: VisitorTable] = [:]
        var onTheWay: [PeerID: [[UInt8]]] = [:]
        var news: [TableNews] = []

        mutating func carryOut(_ outputs: [HostTable.Output]) {
            for output in outputs {
                switch output {
                case .show(let one): news.append(one)
                case .send(let bytes, let peers):
                    for peer in peers { onTheWay[peer, default: []].append(bytes) }
                }
            }
        }

        mutating func asks(_ name: String, _ bytes: [UInt8]) throws {
            let peer = try #require(names[name])
            visitors[peer] = VisitorTable()
            switch try TableWish(bytes) {
            case .seat: carryOut(host.seat(peer, name: try #require(Words(name))))
            case .watch:
                let outputs = host.watch(peer)
                carryOut(try #require(outputs))
            }
        }

        mutating func hostSends(_ bytes: [UInt8], to name: String) throws {
            let peer = try #require(names[name])
            if onTheWay[peer]?.isEmpty ?? true {
                guard case .happened(_, let happening) = try TableMessage(bytes) else {
                    throw Breach.untimely
                }
                switch happening {
                case .moved(.red, let column, _): carryOut(try host.act(.move(column)))
                case .resigned(.red): carryOut(try host.act(.resign))
                default: throw Breach.falseReport
                }
            }
            #expect(onTheWay[peer]?.first == bytes)
            // The page names only one of the recipients.
            for one in visitors.keys where onTheWay[one]?.first == bytes {
                onTheWay[one]?.removeFirst()
                for output in visitors[one]?.received(bytes) ?? [] {
                    guard case .show = output else { throw Breach.garbage }
                }
            }
        }

        mutating func guestSends(_ bytes: [UInt8]) throws {
            let peer = try #require(host.guest)
            guard case .request(let request) = try TableMessage(bytes) else { throw Breach.untimely }
            let outputs = try visitors[peer]?.act(request.action)
            #expect(outputs == [.send(bytes)])
            carryOut(host.received(bytes, from: peer))
        }
    }

    @Test("The example of the protocol's page is what really happens")
    func example() throws {
        var stage = Stage()
        for line in try Self.example() {
            let words = line.who.split(separator: " ").map(String.init)
            switch (words.first, words.last) {
            case (let name?, "asks"): try stage.asks(name, line.bytes)
            case (let name?, "leaves"):
                let peer = try #require(stage.names[name])
                stage.visitors[peer] = nil
                stage.carryOut(stage.host.remove(peer))
            case ("Puma", let name?): try stage.hostSends(line.bytes, to: name)
            case ("Lynx", "Puma"): try stage.guestSends(line.bytes)
            default: Issue.record("what is \(line)?")
            }
        }
        #expect(stage.onTheWay.values.allSatisfy { $0.isEmpty })
        #expect(stage.visitors.values.map(\.table) == [stage.host.table])
        let endings = stage.news.compactMap { if case .ended(let ending) = $0 { ending } else { nil } }
        #expect(endings == [.line(.red), .resigned(.red)])
        #expect(stage.host.table.game?.starter == .yellow)
        #expect(stage.host.hasFreeSeat && stage.host.table.watcherCount == 1)
    }

    @Test("The longest message is as long as the page says")
    func longest() throws {
        var table = Table()
        try table.apply(.sat(try #require(Words(String(repeating: "x", count: Words.byteLimit)))))
        for letter in drawnGame.dropLast() {
            let action = Action.move(try column(String(letter)))
            try table.apply(table.happening(of: action, by: try #require(table.game?.turn)))
        }
        try table.apply(.brokenOff(.yellow, .garbage))
        let page = try Self.page()
        let count = TableMessage.continued(table, seated: false).bytes.count
        #expect(page.contains("| a message but `people` | \(count) bytes"))
        let peer = TableSimulation.peer(1)
        let people = TablePeople(
            guest: peer, watchers: Array(repeating: peer, count: HostTable.watcherLimit))
        #expect(page.contains("| `people` | \(TableMessage.people(people).bytes.count) bytes"))
    }
}
