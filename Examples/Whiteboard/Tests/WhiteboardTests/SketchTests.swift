import Nigh
import NighTestKit
import Synchronization
import Testing

@testable import Sketch

/// The program itself, on simulated devices, in virtual time.
@Suite("Two people at a whiteboard") struct SketchTests {
    @Test("see what both draw and say, also who comes later or was away for a while")
    func together() throws {
        let simulation = Simulation()
        let shown = Mutex<[String: [String]]>([:])
        var pens: [String: AsyncStream<String>.Continuation] = [:]
        func begin(_ name: String) {
            let (lines, pen) = AsyncStream.makeStream(of: String.self)
            pens[name] = pen
            simulation.start(on: name) {
                try await sketch(name: name, transports: nil, lines: lines) { line in
                    shown.withLock { $0[name, default: []].append(line) }
                }
            }
        }
        begin("Puma")
        pens["Puma"]?.yield("1 2 3 4")
        try simulation.run(for: .seconds(5))
        begin("Lynx")
        try simulation.run(for: .seconds(5))
        simulation.takeOffline("Lynx")
        for line in ["hello", "5 6 7 8"] { pens["Puma"]?.yield(line) }
        try simulation.run(for: .seconds(4))
        simulation.bringOnline("Lynx")
        pens["Lynx"]?.yield("good morning")
        try simulation.run(for: .seconds(30))
        shown.withLock { shown in
            #expect(shown["Puma"] == ["Lynx: good morning"])
            #expect(
                shown["Lynx"]?.sorted() == [
                    "Puma: hello", "a line along [1.0, 2.0, 3.0, 4.0]", "a line along [5.0, 6.0, 7.0, 8.0]",
                ])
        }
    }
}
