import NighCalls
import NighCore
import Testing

@testable import NighTestKit

/// Damages questions on purpose, and tests that the world reports it.
struct PlantedQuestionFaultTests {
    @Test("A world reports a question on which a program works twice")
    func twice() { expect([.exactlyOnce]) { $0.beginsTwice = true } }

    @Test("A world reports a question that gets the answer to another")
    func mixed() { expect([.order]) { $0.mixesAnswers = true } }

    @Test("A world reports work that goes on although nobody waits for the answer")
    func endless() { expect([.leaks]) { $0.ignoresCancellation = true } }

    @Test("A world reports a question that is sent again, which also ends the stream of the others")
    func sentAgain() { expect([.exactlyOnce, .calls]) { sendAgain(in: $0) } }

    /// Runs worlds with a fault, until three have questions that were answered.
    private func expect(_ rules: [Finding.Rule], plant: (World) -> Void) {
        var caught = 0
        for seed in 1...60 as ClosedRange<UInt64> where caught < 3 {
            // A world that keeps no log runs again if something is found.
            let report = World.run(seed: seed, keepingLog: true, prepare: plant)
            guard let finding = report.finding else { continue }
            #expect(rules.contains(finding.rule), "seed \(seed): \(finding.message)")
            caught += 1
        }
        #expect(caught == 3)
    }

    /// Sends questions on which somebody has worked again, as the first ones of another stream.
    private func sendAgain(in world: World) {
        world.schedule(after: .milliseconds(500)) {
            for run in world.activeRuns {
                guard
                    let question = world.worldQuestions.last(where: { question in
                        question.asker === run && question.begun == 1
                            && world.lasts(for: run, with: question.other, since: question.conversation)
                    })
                else { continue }
                run.session?.openStream(named: "", to: world.id(question.other), for: .calls) { result in
                    let record = CallRecord.request(
                        number: 1, timeout: 0, name: question.name, content: ByteSlice(question.content))
                    guard let stream = try? result.get() else { return }
                    _ = try? stream.tryWrite(record.frame)
                    stream.finish()
                }
            }
            if !world.isQuiet { sendAgain(in: world) }
        }
    }
}
