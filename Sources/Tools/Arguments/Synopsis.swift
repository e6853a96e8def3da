/// How a command's options and operands are written where it is told how it is called.
enum Synopsis {
    /// The ways to call a command: itself, and by those below it.
    static func ways(_ command: Outline) -> [[String]] {
        var ways: [[String]] = []
        if command.isComplete {
            let options = command.visibleOptions.filter { !isCommon($0) }
            ways.append(options.map(word) + command.operands.map(word))
        }
        if !command.subcommands.isEmpty { ways.append(["COMMAND", "..."]) }
        return ways
    }

    /// The same, with all options that may be left out as one word.
    static func shortWays(_ command: Outline) -> [[String]] {
        var ways = ways(command)
        if command.isComplete {
            let required = command.visibleOptions.filter(\.isRequired)
            ways[0] = ["[OPTION]..."] + required.map(word) + command.operands.map(word)
        }
        return ways
    }

    /// Whether this is one of those that each command has.
    static func isCommon(_ option: OptionDeclaration) -> Bool { option == .help || option == .version }

    /// `--name NAME`, `--[no-]animation`, `--quiet`.
    static func long(_ option: OptionDeclaration) -> String {
        switch option.form {
        case .flag: "--\(option.name)"
        case .negatable: "--[\(OptionDeclaration.negation(of: ""))]\(option.name)"
        case .value(let placeholder, _): "--\(option.name) \(placeholder)"
        }
    }

    private static func word(_ option: OptionDeclaration) -> String {
        let word = long(option)
        return option.isRequired ? word : "[\(word)]" + (option.isRepeated ? "..." : "")
    }

    private static func word(_ operand: OperandDeclaration) -> String {
        let word = operand.name + (operand.isRepeated ? "..." : "")
        return operand.isRequired ? word : "[\(word)]"
    }
}
