import Distributed
import Foundation
import Nigh
import NighActors
import NighCalls
import NighCore
import NighRecord
import NighTestKit
import Testing

@testable import nigh

@Resolvable protocol TracedBoard: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func play(column: Int) -> Int
}

distributed actor TracedTable: TracedBoard {
    typealias ActorSystem = NighActors.ActorSystem
    distributed func play(column: Int) -> Int { column }
}

@Suite("A trace of calls") struct CallTraceTests {
    private let folder = TemporaryFolder()

    /// What a trace says of the streams of a record, a line for each frame.
    private func lines(of record: [UInt8]) throws -> [String] {
        let path = "\(folder.path)/calls.nigh"
        try Data(record).write(to: URL(filePath: path))
        let source = try RecordSource(path: path, follows: false, isRequestedToEnd: { false })
        var trace = Trace(TraceFilter(), dumpsPayloads: false)
        var lines: [String] = []
        while let entry = try source.next() {
            lines += trace.add(entry).flatMap(\.lines).map { $0.text(colours: false) }
        }
        return lines.compactMap { line in
            line.range(of: "  stream ").map { String(line[line.index($0.lowerBound, offsetBy: 2)...]) }
        }
    }

    private let arguments = ByteSlice([1, 2, 3])

    @Test("names the calls of questions, and shows nothing of their content but its size")
    func questions() throws {
        var record = RecordedCalls()
        record.begin(.invite)
        record.open(1, "", for: .calls, .outgoing)
        record.send(
            .request(number: 7, timeout: 30_000, name: "square", content: arguments), .cancel(number: 7),
            .request(number: 8, timeout: 0, name: "a\u{1B}b", content: ByteSlice([])), over: 1, .outgoing)
        record.send(
            .answer(number: 7, .answer(arguments)), .answer(number: 8, .unknownName), .credit(300_000),
            over: 1,
            .incoming)
        let shown = try lines(of: record.bytes)
        #expect(
            shown == [
                "stream 1, open-for: calls",
                "stream 1 (calls), 61 bytes: call 7: \"square\", 3 bytes; cancel call 7 (\"square\"); call 8: \"a b\"",
                "stream 1 (calls), 42 bytes: answer to call 7, 3 bytes; refused call 8 (\"a b\"): no such name; "
                    + "credit, 300000 bytes in all",
            ])
    }

    /// A listing, and calls to the actor that it has.
    private static func actors(_ record: inout RecordedCalls) {
        record.begin(.invite)
        record.open(2, "", for: .actors, .incoming)
        record.send(
            ListingRecord.published(name: "board", contract: "Board", version: 3).frame.bytes
                + ListingRecord.unpublished(name: "door").frame.bytes, over: 2, .incoming)
        record.open(1, "@board", for: .actors, .outgoing)
    }

    private static let play = CallRecord.name("Board.play(column:) 4playSSyYaKFTE")

    private func call(_ number: UInt64, _ content: Int = 0) -> CallRecord {
        .numbered(
            number: number, timeout: 1, name: 0, content: ByteSlice([UInt8](repeating: 0, count: content)))
    }

    @Test("names the methods of actors, and the actors that a side has published")
    func actors() throws {
        var record = RecordedCalls()
        Self.actors(&record)
        record.send(Self.play, call(1), over: 1, .outgoing)
        record.send(
            .answer(number: 1, .refused(.noMethod, "Board there has version 2")), .credit(9), over: 1,
            .incoming)
        record.open(4, ">5", for: .actors, .incoming)
        record.send([0, 0, 0, 2, 0, 7, 0, 0, 0, 1, 1], over: 4, .incoming)
        let shown = try lines(of: record.bytes)
        #expect(
            shown == [
                "stream 2, open-for: actors",
                "stream 2 (actors), 31 bytes: publishes \"board\": Board, version 3; unpublishes \"door\"",
                "stream 1, open-for: actors, @board",
                "stream 1 (actors, @board), 60 bytes: names Board.play(column:); call 1: Board.play(column:)",
                "stream 1 (actors, @board), 53 bytes: refused call 1 (Board.play(column:)): no such method "
                    + "(Board there has version 2); credit, 9 bytes in all",
                "stream 4, open-for: actors, >5",
                "stream 4 (actors, >5), 11 bytes: value, 1 bytes; failure, 0 bytes",
            ])
    }

    @Test("shows each record with the frame that ends it, wherever the bytes are cut")
    func cut() throws {
        let bytes = [Self.play, call(1, 5_000), call(2)].flatMap(\.frame.bytes)
        for size in [1, 2, 3, 100, 2_047, 4_096, bytes.count] {
            var record = RecordedCalls()
            Self.actors(&record)
            for start in stride(from: 0, to: bytes.count, by: size) {
                record.send(Array(bytes[start..<min(start + size, bytes.count)]), over: 1, .outgoing)
            }
            let records = try lines(of: record.bytes).dropFirst(3).compactMap {
                $0.split(separator: ": ", maxSplits: 1).dropFirst().first
            }
            #expect(
                records.joined(separator: "; ")
                    == "names Board.play(column:); call 1: Board.play(column:), 5000 bytes; call 2: Board.play(column:)"
            )
        }
    }

    @Test("goes on when the conversation changes its link, and shows no call twice")
    func nextLink() throws {
        var record = RecordedCalls()
        Self.actors(&record)
        record.send(Self.play, call(1), over: 1, .outgoing)
        record.send(call(2), over: 1, .outgoing)
        // Of the frames that were sent, the last one has not come.
        record.begin(.resume, hereReceived: 2, thereReceived: 2)
        record.send(call(2), over: 1, .outgoing)
        record.send(call(3), over: 1, .outgoing)
        record.send(.answer(number: 1, .answer(arguments)), over: 1, .incoming)
        let shown = try lines(of: record.bytes).suffix(3)
        #expect(
            shown == [
                "stream 1, 19 bytes, sent again",
                "stream 1 (actors, @board), 19 bytes: call 3: Board.play(column:)",
                "stream 1 (actors, @board), 16 bytes: answer to call 1 (Board.play(column:)), 3 bytes",
            ])
    }

    @Test("says nothing of streams whose beginning is missing, or of which bytes are")
    func missing() throws {
        var gap = RecordedCalls()
        Self.actors(&gap)
        gap.add(.gap(entries: 1, bytes: 1))
        gap.send(Self.play, call(1), over: 1, .outgoing)
        #expect(try lines(of: gap.bytes).last == "stream 1, 60 bytes")
        var lost = RecordedCalls()
        Self.actors(&lost)
        lost.begin(.resume, hereReceived: 2, thereReceived: 2)
        lost.send(Self.play, call(1), over: 1, .outgoing)
        #expect(try lines(of: lost.bytes).last == "stream 1, 60 bytes")
        var short = RecordedCalls()
        Self.actors(&short)
        short.add(.streamData, .outgoing, [0, 0, 0, 1, 0], of: 50)
        short.send(Self.play, call(1), over: 1, .outgoing)
        #expect(
            try lines(of: short.bytes).suffix(2) == [
                "stream 1 (actors, @board), 46 bytes", "stream 1 (actors, @board), 60 bytes",
            ])
    }

    @Test("says how a record breaks the protocol, and nothing of what follows it")
    func broken() throws {
        var record = RecordedCalls()
        Self.actors(&record)
        record.send([0, 0, 0, 2, 2, 0] + [0, 0, 0, 1, 99], over: 1, .outgoing)
        record.send([0, 0, 0, 1, 99], over: 1, .incoming)
        record.send([255, 255, 255, 255, 8], over: 1, .incoming)
        let shown = try lines(of: record.bytes).suffix(3)
        #expect(
            shown == [
                "stream 1 (actors, @board), 11 bytes: breaks the rules of the stream: the number of a call is cut short",
                "stream 1 (actors, @board), 5 bytes: a record of a later version",
                "stream 1 (actors, @board), 5 bytes",
            ])
    }

    @Test("matches the schema as JSON")
    func json() throws {
        var record = RecordedCalls()
        Self.actors(&record)
        record.send(Self.play, call(1, 3), over: 1, .outgoing)
        record.send(.answer(number: 1, .refused(.notAllowed, "")), .credit(9), over: 1, .incoming)
        let path = "\(folder.path)/calls.nigh"
        try Data(record.bytes).write(to: URL(filePath: path))
        let call = try NighUser().run("trace", path, "--json-lines", "--type", "stream-data")
        try call.expectSchema("trace", lines: true)
        let details = try #require(try call.objects().dropFirst().first?["details"] as? [String: Any])
        let records = try #require(details["stream_records"] as? [[String: Any]])
        #expect(records.map { $0["record"] as? String } == ["name", "call"])
        #expect(records[1]["method"] as? String == "Board.play(column:)" && records[1]["bytes"] as? Int == 3)
        #expect(
            details["stream_name"] as? String == "@board" && details["stream_purpose"] as? String == "actors")
    }

    @Test("has each call of a real conversation once, though its links are cut")
    func real() throws {
        let (simulation, path) = (Simulation(), "\(folder.path)/real.nigh")
        let recorder = try LinkRecorder(path: path)
        simulation.start(on: "Puma") {
            try await withSession(service: "board") { session in
                session.connectsAutomatically = true
                let actors = try ActorSystem(session)
                try actors.publish(TracedTable(actorSystem: actors), as: "board", through: $TracedBoard.self)
                for await case .disconnected in session.events { return }
            }
        }
        let calling = simulation.start(on: "Lynx") {
            try await withSession(service: "board") {
                $0.layers.append(recorder)
            } _: { session in
                session.connectsAutomatically = true
                let actors = try ActorSystem(session)
                for await boards in actors.listing(of: $TracedBoard.self) {
                    guard let board = boards.first?.actor else { continue }
                    for column in 1...50 {
                        #expect(try await board.play(column: column) == column)
                        try await session.clock.sleep(for: .milliseconds(90))
                    }
                    return
                }
            }
        }
        for _ in 0..<20 {
            try simulation.run(for: .milliseconds(500))
            simulation.cutLinks(of: "Lynx")
        }
        try simulation.result(of: calling)
        #expect(recorder.finish() == nil)
        let text = try lines(of: [UInt8](Data(contentsOf: URL(filePath: path)))).joined(separator: "\n")
        for number in 1...50 {
            #expect(
                text.components(separatedBy: "call \(number): TracedBoard.play(column:)").count == 2,
                "\(text)")
            #expect(
                text.components(separatedBy: "answer to call \(number) (TracedBoard.play(column:))").count
                    == 2)
        }
        #expect(text.contains("publishes \"board\": TracedBoard, version 0"))
    }
}
