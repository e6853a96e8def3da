import Glibc

/// A host that is broken on purpose, and the cause and advice that `nigh doctor` must give.
struct BrokenSetUp: Sendable {
    /// One line of its output: the ID at its beginning, words of the finding, words of the advice.
    struct Line: Sendable {
        var verdict: String
        var id: String
        var cause: String
        var cure: String
    }

    let name: String
    let arguments: [String]
    let says: [Line]
    let status: Int
    let make: @Sendable (Lab) throws(Failure) -> Host

    init(
        _ name: String, _ arguments: [String], says: [Line], status: Int,
        _ make: @escaping @Sendable (Lab) throws(Failure) -> Host
    ) {
        self.name = name
        self.arguments = arguments
        self.says = says
        self.status = status
        self.make = make
    }

    /// Breaks the host, and checks the doctor's output. Nothing else may be reported as a failure.
    func check(in lab: Lab) throws(Failure) {
        lab.step(name)
        let said = try make(lab).doctor(arguments)
        for line in says {
            try lab.check(
                "it says \(line.verdict) of \(line.id): \(line.cause)",
                said.finding(line.id, line.verdict)?.contains(line.cause) == true)
            try lab.check("the cure is: \(line.cure)", said.advice(line.id).contains(line.cure))
        }
        let others = said.failed.filter { id in !says.contains { $0.id == id } }
        try lab.check("nothing else has failed: \(others)", others.isEmpty)
        try lab.check("the status is \(status), was \(said.status)", said.status == status)
    }
}

/// The output of a `nigh doctor`.
struct Diagnosed {
    private let lines: [[Substring]]
    private let advices: [String: String]
    let status: Int

    init(_ printed: [String]) {
        var lines: [[Substring]] = []
        var advices: [String: String] = [:]
        for line in printed {
            if line.hasPrefix("      → "), let last = lines.last {
                advices[String(last[1]), default: ""] += line
            } else {
                let words = line.split(separator: " ", maxSplits: 2)
                if words.count == 3, ["pass", "warn", "fail"].contains(words[0]) { lines.append(words) }
            }
        }
        self.lines = lines
        self.advices = advices
        status = printed.last.flatMap { Int($0.split(separator: " ").last ?? "") } ?? -1
    }

    /// The finding with that ID, if it has that verdict.
    func finding(_ id: String, _ verdict: String) -> String? {
        lines.first { $0[1] == id && $0[0] == verdict }.map { String($0[2]) }
    }

    /// The advice for that ID.
    func advice(_ id: String) -> String { advices[id] ?? "" }

    /// The IDs of everything that failed.
    var failed: [String] { lines.filter { $0[0] == "fail" }.map { String($0[1]) } }
}

extension Host {
    /// Runs `nigh doctor` on the host, for a user whose files are in /run/data.
    func doctor(_ arguments: [String]) throws(Failure) -> Diagnosed {
        let call =
            ["env", "XDG_DATA_HOME=\(Host.dataFolder)", try Spawning.path(of: "nigh"), "doctor"] + arguments
        let printed = try run(
            ["sh", "-c", #""$@"; echo "status $?""#, "sh"] + call, within: .seconds(40))
        for line in printed { lab.journal.note("\(name)/doctor", line) }
        return Diagnosed(printed)
    }
}
