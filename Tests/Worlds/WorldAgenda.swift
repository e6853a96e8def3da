import NighCore
import NighTestKit

/// The actions that a simulated world carries out at certain moments, between the turns of its loop.
final class WorldAgenda {
    private let loop: VirtualEventLoop
    private var planned = TimerQueue<() -> Void>()

    init(of loop: VirtualEventLoop) { self.loop = loop }

    /// Calls `act` after `delay`.
    func schedule(after delay: Duration, _ act: @escaping () -> Void) {
        planned.add(act, at: loop.now + Moment.Span(delay))
    }

    /// Lets time pass, and carries out what is planned for it. Ends early once `isOver` returns true.
    ///
    /// - Parameter run: runs the loop until a moment.
    func advance(
        by duration: Duration, until isOver: () -> Bool, running run: (Moment) throws -> Void
    ) rethrows {
        let end = loop.now + Moment.Span(duration)
        while !isOver() {
            let next = min(planned.earliest ?? end, end)
            try run(next)
            guard !isOver(), let act = planned.takeDue(at: next) else {
                if next == end { return }
                continue
            }
            act()
        }
    }

    /// Forgets everything that is planned.
    func removeAll() { planned.removeAll() }
}
