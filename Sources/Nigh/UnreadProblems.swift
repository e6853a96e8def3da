import NighCore

/// The problems for which a session finds nobody or is not found: for a program that begins to read of them after they
/// began, and for one that does not read of them. A value without I/O: its owner passes it what happens, and prints
/// what it returns.
struct UnreadProblems {
    /// How long a problem must last before it is printed: many a transport works a moment later, and a program may
    /// begin to read events in the meantime.
    static let patience = Moment.Span.seconds(1)

    private struct Problem: Hashable {
        var stage: NighError.Stage
        var transport: String?
    }

    private let transports: Set<String>
    /// Whether the program has named the transports, and so wants to know of each that does not work.
    private let areNamed: Bool
    /// Prints a line; nil if the program wants none.
    let print: (@Sendable (String) -> Void)?
    private var hasWorked: Set<String> = []
    private var lasting: [Problem: SessionEvent] = [:]
    private var printed: Set<Problem> = []

    init(transports: [String], areNamed: Bool, print: (@Sendable (String) -> Void)?) {
        self.transports = Set(transports)
        self.areNamed = areNamed
        self.print = print
    }

    /// Takes an event of the low-level session. Returns whether there may be something to print, after `patience`.
    mutating func handle(_ event: NighCore.SessionEvent) -> Bool {
        switch event {
        case .transportChanged(let scheme, .down(let error)):
            // Whatever else does not work there follows from this.
            lasting = lasting.filter { $0.key.transport != scheme }
            lasting[.init(stage: .starting, transport: scheme)] = .transportDown(scheme, error)
        case .transportChanged(let scheme, .up):
            hasWorked.insert(scheme)
            end { $0.transport == scheme }
        case .transportFailed(let error) where error.stage == .advertising || error.stage == .browsing:
            guard lasting[.init(stage: .starting, transport: error.transport)] == nil else { break }
            lasting[.init(stage: error.stage, transport: error.transport)] = .problem(error)
        case .advertised(let scheme, _): end { $0.transport == scheme && $0.stage == .advertising }
        case .listening(let scheme, let addresses):
            guard !addresses.isEmpty else { return false }
            hasWorked.insert(scheme)
            end { $0.transport == scheme && $0.stage == .advertising }
        default: return false
        }
        return !unprinted.isEmpty
    }

    /// The events that say what does not work now, in a fixed order.
    var events: [SessionEvent] {
        lasting.map { ("\($0.value)", $0.value) }.sorted { $0.0 < $1.0 }.map(\.1)
    }

    private mutating func end(where isOver: (Problem) -> Bool) {
        lasting = lasting.filter { !isOver($0.key) }
        printed = printed.filter { !isOver($0) }
    }

    /// The problems that leave the program deaf: no transport works, or one that was named or has worked does not.
    private var unprinted: [Problem] {
        let isDown = Set(lasting.keys.compactMap { $0.stage == .starting ? $0.transport : nil })
        let worksNowhere = transports.isSubset(of: isDown)
        return lasting.keys.filter { problem in
            if printed.contains(problem) { return false }
            guard problem.stage == .starting, let transport = problem.transport else { return true }
            return areNamed || worksNowhere || hasWorked.contains(transport)
        }
    }

    /// The lines to print now, in a fixed order. Each problem is returned once for as long as it lasts.
    mutating func takeLines() -> [String] {
        let problems = unprinted
        printed.formUnion(problems)
        return problems.compactMap { lasting[$0].map { "Nigh: \($0)" } }.sorted()
    }
}
