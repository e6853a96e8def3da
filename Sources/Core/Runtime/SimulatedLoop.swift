/// A loop whose time is not real. Tasks that a session begins for its program run on it, too, so that a run of a whole
/// program can be repeated.
package protocol SimulatedLoop: EventLoop {}

extension EventLoop {
    /// The executor of tasks that a session begins for its program; nil for the one that all tasks have.
    package var programExecutor: (any TaskExecutor)? { self as? any SimulatedLoop }
}
