import NighCore

/// The problems by which a session finds no peers or is not found, for a program that does not read events. A value
/// without I/O: its owner passes it the events, and prints the lines that it returns.
struct UnreadProblems {
    /// How long a problem must last before it is printed: many a transport works a moment later, and a program may
    /// begin to read events in the meantime.
    static let patience = Moment.Span.seconds(1)

    private let transports: Set<String>
    /// Whether the program has named the transports, and so wants to know of each that does not work.
    private let areNamed: Bool
    /// Prints a line; nil if the program wants none.
    let print: (@Sendable (String) -> Void)?
    private var hasWorked: Set<String> = []
    private var lasting = LastingProblems()
    private var printed: Set<LastingProblems.Subject> = []

    init(transports: [String], areNamed: Bool, print: (@Sendable (String) -> Void)?) {
        self.transports = Set(transports)
        self.areNamed = areNamed
        self.print = print
    }

    /// Takes an event of the session. Returns whether there may be something to print, after `patience`.
    mutating func handle(_ event: SessionEvent) -> Bool {
        guard lasting.note(event) else { return false }
        switch event {
        case .transportUp(let scheme), .listening(let scheme, _): hasWorked.insert(scheme)
        default: break
        }
        printed.formIntersection(lasting.subjects)
        return !unprinted.isEmpty
    }

    /// The problems that leave the program deaf: no transport works, or one that was named or has worked does not.
    private var unprinted: [LastingProblems.Subject] {
        let isDown = Set(lasting.subjects.compactMap { $0.stage == .starting ? $0.transport : nil })
        let worksNowhere = transports.isSubset(of: isDown)
        return lasting.subjects.filter { problem in
            if printed.contains(problem) { return false }
            guard problem.stage == .starting, let transport = problem.transport else { return true }
            return areNamed || worksNowhere || hasWorked.contains(transport)
        }
    }

    /// The lines to print now, in a fixed order. Each problem is returned once for as long as it lasts.
    mutating func takeLines() -> [String] {
        let problems = unprinted
        printed.formUnion(problems)
        return problems.compactMap { lasting.event(of: $0).map { "Nigh: \($0)" } }.sorted()
    }
}
