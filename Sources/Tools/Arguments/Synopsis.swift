/// Formats a command's options and operands for the usage line.
enum Synopsis {
    /// Returns the ways to call a command: by itself, and with one of its subcommands.
    static func ways(_ command: Outline) -> [[String]] {
        var ways: [[String]] = []
        if command.isComplete {
            let options = command.visibleOptions.filter { !isCommon($0) }
            ways.append(options.map(word) + command.operands.map(word))
        }
        if !command.subcommands.isEmpty { ways.append(["COMMAND", "..."]) }
        return ways
    }

    /// Returns the same ways, with all optional options as one word.
    static func shortWays(_ command: Outline) -> [[String]] {
        var ways = ways(command)
        if command.isComplete {
            let required = command.visibleOptions.filter(\.isRequired)
            ways[0] = ["[OPTION]..."] + required.map(word) + command.operands.map(word)
        }
        return ways
    }

    /// Returns whether this is a common option, `--help` or `--version`.
    static func isCommon(_ option: OptionDeclaration) -> Bool { option == .help || option == .version }

    /// Returns the long form of an option: `--name NAME`, `--[no-]animation`, `--quiet`.
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
