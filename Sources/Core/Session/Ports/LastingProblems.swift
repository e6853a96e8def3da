/// The lasting problems of a session, collected from its events: transports that are down, and advertising or browsing
/// that fails.
package struct LastingProblems {
    /// The part of a session that has a problem.
    package struct Subject: Hashable {
        package let stage: NighError.Stage
        package let transport: String?
    }

    private var events: [Subject: SessionEvent] = [:]

    package init() {}

    /// The parts that have a problem.
    package var subjects: Set<Subject> { Set(events.keys) }

    /// Returns the event that reported the problem of a part.
    package func event(of subject: Subject) -> SessionEvent? { events[subject] }

    /// The events that reported the problems, in a fixed order.
    package var all: [SessionEvent] {
        events.map { ("\($0.value)", $0.value) }.sorted { $0.0 < $1.0 }.map(\.1)
    }

    /// Notes an event. Returns whether a problem may have begun or ended with it.
    @discardableResult
    package mutating func note(_ event: SessionEvent) -> Bool {
        switch event {
        case .transportDown(let scheme, _):
            // Whatever else does not work there follows from this.
            end { $0.transport == scheme }
            events[Subject(stage: .starting, transport: scheme)] = event
        case .transportUp(let scheme): end { $0.transport == scheme }
        case .problem(let error) where error.stage == .advertising || error.stage == .browsing:
            guard events[Subject(stage: .starting, transport: error.transport)] == nil else { return false }
            events[Subject(stage: error.stage, transport: error.transport)] = event
        case .listening(let scheme, let addresses) where !addresses.isEmpty:
            end { $0.transport == scheme && $0.stage == .advertising }
        case .advertised(let scheme, _): end { $0.transport == scheme && $0.stage == .advertising }
        default: return false
        }
        return true
    }

    private mutating func end(where isOver: (Subject) -> Bool) {
        if !events.isEmpty { events = events.filter { !isOver($0.key) } }
    }
}
