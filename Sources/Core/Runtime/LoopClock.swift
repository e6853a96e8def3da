import Synchronization

/// The clock of an event loop, for tasks that wait.
package struct LoopClock: Clock {
    /// A moment of the loop, in the form that the standard library's clocks use.
    package struct Instant: InstantProtocol {
        package let moment: Moment

        package func advanced(by duration: Duration) -> Instant {
            Instant(moment: moment + Moment.Span(duration))
        }

        package func duration(to other: Instant) -> Duration { (other.moment - moment).duration }

        package static func < (left: Instant, right: Instant) -> Bool { left.moment < right.moment }
    }

    private let loop: any EventLoop

    package init(_ loop: any EventLoop) { self.loop = loop }

    package var now: Instant { Instant(moment: loop.now) }

    package var minimumResolution: Duration { .milliseconds(1) }

    /// Waits until the deadline. Fails if the task is cancelled, or if the loop ends before.
    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let sleeper = LoopBound(Sleeper(), on: loop)
        let hasPassed = await withTaskCancellationHandler {
            await PendingAnswer.wait(otherwise: false) { answer in
                sleeper.execute { [loop] in $0.begin(answer, until: deadline.moment, on: loop) }
                if Task.isCancelled { sleeper.execute { [loop] in $0.end(on: loop) } }
            }
        } onCancel: {
            sleeper.execute { [loop] in $0.end(on: loop) }
        }
        if !hasPassed { throw CancellationError() }
    }
}

/// A task that waits for a moment.
///
/// Loop only. The loop's timer keeps the answer, so a task does not wait for a loop that has ended.
private final class Sleeper {
    private weak var answer: PendingAnswer<Bool>?
    private var timer: LoopTimer?

    func begin(_ answer: PendingAnswer<Bool>, until deadline: Moment, on loop: any EventLoop) {
        self.answer = answer
        timer = loop.schedule(at: deadline) { answer.give(true) }
    }

    func end(on loop: any EventLoop) {
        answer?.give(false)
        if let timer { loop.cancel(timer) }
    }
}
