/// Finds contradictions in the declaration of a command.
enum TableCheck {
    static func problems(of command: Outline) -> [String] {
        var problems = nameProblems(command)
        problems += duplicates(command.options.flatMap { $0.longNames + $0.olderNames }).map {
            "two options are --\($0)"
        }
        problems += duplicates(command.options.compactMap { $0.short.map(String.init) })
            .map { "two options are -\($0)" }
        problems += duplicates(command.operands.map(\.name)).map { "two operands are \($0)" }
        problems += duplicates(command.subcommands.map(\.name)).map { "two commands are \($0)" }
        for case .words(let words) in command.options.compactMap(\.candidates)
            + command.operands.map(\.candidates)
        where words.contains(where: { $0.isEmpty || $0.contains("\n") }) {
            problems.append("\(words) has a choice that cannot be typed")
        }
        if command.operands.count(where: \.isRepeated) > 1 { problems.append("two operands are repeated") }
        if command.subcommand("help") != nil { problems.append("help is a command by itself") }
        if !command.operands.isEmpty, !command.subcommands.isEmpty {
            problems.append("it has both operands and subcommands, which cannot be told apart")
        }
        if !command.isComplete, command.subcommands.isEmpty { problems.append("it does nothing") }
        return problems.map { "\(command.title): \($0)" }
    }

    private static func nameProblems(_ command: Outline) -> [String] {
        var problems: [String] = []
        for name in [command.name] + command.options.map(\.name) where !isName(name) {
            problems.append("\(Wording.quoted(name)) is not a name of lowercase letters, digits and hyphens")
        }
        for short in command.options.compactMap(\.short)
        where !short.isASCII || !(short.isLetter || short.isNumber) {
            problems.append("-\(short) is neither letter nor digit")
        }
        let operands = command.operands.map { ("\($0.name)", $0.summary) }
        for (name, summary) in command.options.map({ ("--\($0.name)", $0.summary) }) + operands
        where summary.isEmpty || summary.contains("\n") {
            problems.append("\(name) has no summary of one line")
        }
        if command.summary.isEmpty || command.summary.contains("\n") || command.summary.hasSuffix(".") {
            problems.append("it has no summary of one line without a full stop")
        }
        return problems
    }

    private static func isName(_ name: String) -> Bool {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        return parts.allSatisfy { part in
            !part.isEmpty && part.allSatisfy { ("a"..."z").contains($0) || ("0"..."9").contains($0) }
        }
    }

    private static func duplicates(_ words: [String]) -> [String] {
        var seen: Set<String> = []
        return words.filter { !seen.insert($0).inserted }
    }
}
