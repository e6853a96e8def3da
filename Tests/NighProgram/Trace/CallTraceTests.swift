import ChildPrograms
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

    /// Returns the lines of a trace about the streams of a record, one for each frame.
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

    private static let arguments = ByteSlice([1, 2, 3])

    /// A record with a listing, and a stream of calls to the actor that it has.
    private static func actors(_ body: (inout RecordedCalls) -> Void = { _ in }) -> RecordedCalls {
        var record = RecordedCalls()
        record.begin(.invite)
        record.open(2, "", for: .actors, .incoming)
        record.send(
            ListingRecord.published(name: "board", contract: "Board", version: 3).frame.bytes
                + ListingRecord.unpublished(name: "door").frame.bytes, over: 2, .incoming)
        record.open(1, "@board", for: .actors, .outgoing)
        body(&record)
        return record
    }

    private static let play = CallRecord.name("Board.play(column:) 4playSSyYaKFTE")

    private static func call(_ number: UInt64, _ content: Int = 0) -> CallRecord {
        .numbered(
            number: number, timeout: 1, name: 0, content: ByteSlice([UInt8](repeating: 0, count: content)))
    }

    /// Records of conversations, by what is special about them.
    private static var scenarios: [String: RecordedCalls] {
        var questions = RecordedCalls()
        questions.begin(.invite)
        questions.open(1, "", for: .calls, .outgoing)
        questions.send(
            .request(number: 7, timeout: 30_000, name: "square", content: arguments), .cancel(number: 7),
            .request(number: 8, timeout: 0, name: "a\u{1B}b", content: ByteSlice([])), over: 1, .outgoing)
        questions.send(
            .answer(number: 7, .answer(arguments)), .answer(number: 8, .unknownName), .credit(300_000),
            over: 1, .incoming)
        return [
            "questions": questions,
            "actors": actors {
                $0.send(play, call(1), over: 1, .outgoing)
                $0.send(
                    .answer(number: 1, .refused(.noMethod, "Board there has version 2")), .credit(9), over: 1,
                    .incoming)
                $0.open(4, ">5", for: .actors, .incoming)
                $0.send([0, 0, 0, 2, 0, 7, 0, 0, 0, 1, 1], over: 4, .incoming)
            },
            "next-link": actors {
                $0.send(play, call(1), over: 1, .outgoing)
                $0.send(call(2), over: 1, .outgoing)
                // Of the frames that were sent, the last one has not come.
                $0.begin(.resume, hereReceived: 2, thereReceived: 2)
                $0.send(call(2), over: 1, .outgoing)
                $0.send(call(3), over: 1, .outgoing)
                $0.send(.answer(number: 1, .answer(arguments)), over: 1, .incoming)
            },
            "gap": actors {
                $0.add(.gap(entries: 1, bytes: 1))
                $0.send(play, call(1), over: 1, .outgoing)
            },
            "no-beginning": actors {
                $0.begin(.resume, hereReceived: 2, thereReceived: 2)
                $0.send(play, call(1), over: 1, .outgoing)
            },
            "missing-bytes": actors {
                $0.add(.streamData, .outgoing, [0, 0, 0, 1, 0], of: 50)
                $0.send(play, call(1), over: 1, .outgoing)
            },
            "broken": actors {
                $0.send([0, 0, 0, 2, 2, 0] + [0, 0, 0, 1, 99], over: 1, .outgoing)
                $0.send([0, 0, 0, 1, 99], over: 1, .incoming)
                $0.send([255, 255, 255, 255, 8], over: 1, .incoming)
            },
        ]
    }

    @Test func `shows questions and calls of actors as the snapshots have them`() throws {
        let texts = try Self.scenarios.map { name, record in
            ("\(name).txt", try lines(of: record.bytes).map { "\($0)\n" }.joined())
        }
        #expect(
            try Snapshots.differences(
                of: Dictionary(uniqueKeysWithValues: texts), from: "NighProgram/Trace/Snapshots/calls") == [])
    }

    @Test func `shows each record with the frame that ends it, wherever the bytes are cut`() throws {
        let bytes = [Self.play, Self.call(1, 5_000), Self.call(2)].flatMap(\.frame.bytes)
        for size in [1, 2, 3, 100, 2_047, 4_096, bytes.count] {
            var record = Self.actors()
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

    @Test func `matches the schema as JSON`() throws {
        var record = Self.actors()
        record.send(Self.play, Self.call(1, 3), over: 1, .outgoing)
        record.send(.answer(number: 1, .refused(.notAllowed, "")), .credit(9), over: 1, .incoming)
        let path = "\(folder.path)/calls.nigh"
        try Data(record.bytes).write(to: URL(filePath: path))
        let details = try NighUser().run("trace \(path) --json-lines --type stream-data").objects[1][
            "details"]
        let records = details["stream_records"]
        #expect(records.list.map { $0["record"].string } == ["name", "call"])
        #expect(records[1]["method"].string == "Board.play(column:)" && records[1]["bytes"].int == 3)
        #expect(details["stream_name"].string == "@board" && details["stream_purpose"].string == "actors")
    }

    @Test func `has each call of a real conversation once, though its links are cut`() throws {
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

/// A record, made by hand, of a conversation with streams, and what a trace says of it.
struct RecordedCalls {
    private(set) var bytes = RecordFormat.header(time: 0, headLimit: nil)
    private var link: UInt64 = 0

    static let conversation: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 7]

    mutating func add(_ content: RecordEntry.Content) {
        RecordFormat.write(RecordEntry(time: 0, link: link, content), to: &bytes)
    }

    mutating func add(
        _ type: FrameType, _ direction: PacketDirection, _ payload: [UInt8], of length: Int? = nil
    ) {
        add(
            .frame(
                RecordedFrame(
                    direction: direction, type: type.rawValue, length: length ?? payload.count,
                    payload: ByteSlice(payload))))
    }

    /// The conversation gets its next link: both sides say how many frames of streams they have received.
    mutating func begin(_ type: FrameType, hereReceived: UInt8 = 0, thereReceived: UInt8 = 0) {
        func tail(_ count: UInt8) -> [UInt8] { count == 0 ? [] : [0, 0, 0, 0, 0, 0, 0, count] }
        let standing = [UInt8](repeating: 0, count: 32)
        let attempt: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 1]
        link += 1
        add(.opened(LinkOpening(isDialled: true, scheme: "tcp")))
        add(
            type, .outgoing,
            Self.conversation + attempt + standing + [0, 0, 0, 0, 0, 0] + tail(hereReceived))
        add(.accept, .incoming, Self.conversation + attempt + standing + tail(thereReceived))
    }

    mutating func open(
        _ stream: UInt8, _ name: String, for purpose: StreamPurpose, _ direction: PacketDirection
    ) {
        add(
            .streamControl, direction,
            [0, 0, 0, stream, 6, purpose.rawValue, UInt8(name.utf8.count)] + Array(name.utf8))
    }

    mutating func send(_ bytes: [UInt8], over stream: UInt8, _ direction: PacketDirection) {
        add(.streamData, direction, [0, 0, 0, stream] + bytes)
    }

    mutating func send(_ records: CallRecord..., over stream: UInt8, _ direction: PacketDirection) {
        send(records.flatMap(\.frame.bytes), over: stream, direction)
    }
}
