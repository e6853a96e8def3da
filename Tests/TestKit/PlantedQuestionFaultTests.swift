import NighCalls
import NighCore
import NighTestKit
import NighTestKit
import Testing

@testable import Worlds

/// Damages questions to programs and calls to actors on purpose, and tests that the world reports it.
struct PlantedQuestionFaultTests {
    @Test(arguments: [false, true]) func `A world reports a question on which a program works twice`(
        isOfActors: Bool
    ) { expect([.exactlyOnce], .beginsTwice, isOfActors) }

    @Test(arguments: [false, true]) func `A world reports a question that gets the answer to another`(
        isOfActors: Bool
    ) { expect([.order], .mixesAnswers, isOfActors) }

    @Test(arguments: [false, true])
    func `A world reports work that goes on although nobody waits for the answer`(isOfActors: Bool) {
        expect([.leaks], .ignoresCancellation, isOfActors)
    }

    @Test(arguments: [false, true]) func `A world reports a question whose asker is never told how it ended`(
        isOfActors: Bool
    ) { expect([.calls], .losesOutcomes, isOfActors) }

    @Test func `A world reports calls to an actor that begin in another order than they were made`() {
        expect([.order], .beginsLate, true)
    }

    @Test(arguments: [false, true])
    func `A world reports a question that is sent again, which also ends the stream of the others`(
        isOfActors: Bool
    ) {
        expect([.exactlyOnce, .calls]) { sendAgain(isOfActors: isOfActors, in: $0) }
    }

    private func expect(_ rules: [Violation.Rule], _ kind: QuestionFault.Kind, _ isOfActors: Bool) {
        expect(rules) { $0.questionFault = QuestionFault(kind: kind, isOfActors: isOfActors) }
    }

    /// Runs worlds with a fault, until three have questions that were answered.
    private func expect(_ rules: [Violation.Rule], plant: (World) -> Void) {
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
    private func sendAgain(isOfActors: Bool, in world: World) {
        world.schedule(after: .milliseconds(500)) {
            for run in world.activeRuns {
                guard
                    let question = world.worldQuestions.last(where: { question in
                        question.asker === run && question.begun == 1
                            && (question.actor != nil) == isOfActors
                            && world.lasts(for: run, with: question.other, since: question.conversation)
                    })
                else { continue }
                run.session?.openStream(
                    named: question.actor ?? "", to: world.id(question.other),
                    for: isOfActors ? .actors : .calls
                ) { result in
                    guard let stream = try? result.get() else { return }
                    for record in Self.records(of: question) { _ = try? stream.tryWrite(record.frame) }
                    stream.finish()
                }
            }
            if !world.isQuiet { sendAgain(isOfActors: isOfActors, in: world) }
        }
    }

    private static func records(of question: WorldQuestion) -> [CallRecord] {
        let content = ByteSlice(question.content)
        if question.actor == nil {
            return [.request(number: 1, timeout: 0, name: question.name, content: content)]
        }
        return [.name(question.name), .numbered(number: 1, timeout: 0, name: 0, content: content)]
    }
}
