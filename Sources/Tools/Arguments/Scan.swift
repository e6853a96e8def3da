/// Sorts the words after a command's name into options and operands.
struct Scan {
    enum ParseResult {
        case help
        case version
        case arguments(RawArguments)
    }

    private let command: Outline
    private let root: Outline
    private var rest: ArraySlice<String>
    private var parsed = RawArguments()
    private var words: [String] = []
    /// The user's request for help or the version instead of the command.
    private var request: ParseResult?

    private init(_ arguments: ArraySlice<String>, for command: Outline, in root: Outline) {
        rest = arguments
        self.command = command
        self.root = root
    }

    /// Parses `arguments` for `command`, which is `root` or a command below it.
    static func read(_ arguments: ArraySlice<String>, for command: Outline, in root: Outline)
        throws(UsageError)
        -> ParseResult
    {
        var scan = Scan(arguments, for: command, in: root)
        do {
            return try scan.run()
        } catch {
            // A request for help is answered, whatever else is wrong, unless the command is unknown.
            if arguments.prefix(while: { $0 != "--" }).contains(where: { $0 == "--help" || $0 == "-h" }) {
                try scan.checkCommand()
                return .help
            }
            throw error
        }
    }

    /// Fails if the first word should have been a command. Nobody who mistypes one wants the help of another.
    private func checkCommand() throws(UsageError) {
        guard let first = words.first, !command.subcommands.isEmpty, command.operands.isEmpty else { return }
        throw Self.noCommand(first, in: command)
    }

    private mutating func run() throws(UsageError) -> ParseResult {
        while let word = rest.popFirst() {
            if word == "--" {
                words += rest
                break
            } else if word.hasPrefix("--") {
                try parseLongOption(word)
            } else if word.hasPrefix("-"), word != "-", !isNumber(word) {
                try parseShortOptions(word)
            } else {
                words.append(word)
            }
            if let request {
                try checkCommand()
                return request
            }
        }
        try checkCommand()
        try placeOperands()
        return .arguments(parsed)
    }

    /// Returns whether this is a negative number, which may be an operand, and not an option.
    private func isNumber(_ word: String) -> Bool {
        guard let digit = word.dropFirst().first, ("0"..."9").contains(digit) else { return false }
        return !command.operands.isEmpty && !command.options.contains { $0.short == digit }
    }

    // MARK: Options

    private mutating func parseLongOption(_ word: String) throws(UsageError) {
        let halves = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(halves[0])
        guard
            let option = command.options.first(where: { $0.longNames.contains(name) })
                ?? command.options.first(where: { $0.olderNames.contains(name) })
        else { throw unknown(name, written: "--\(name)") }
        try add(option, as: name, written: "--\(name)", attached: halves.count > 1 ? String(halves[1]) : nil)
    }

    /// Takes `-n`, `-nvalue`, or several flags at once.
    private mutating func parseShortOptions(_ word: String) throws(UsageError) {
        var letters = word.dropFirst()
        // Even if the first letter accepts the rest as a value, the long option was meant.
        if letters.count > 1,
            command.visibleOptions.contains(where: { $0.longNames.contains(String(letters)) })
        {
            throw UsageError("there is no option \(word): write -\(word)")
        }
        while let letter = letters.popFirst() {
            guard
                let option = command.options.first(where: { $0.short == letter })
                    ?? command.options.first(where: { $0.olderNames.contains(String(letter)) })
            else { throw unknown(letter) }
            guard option.candidates != nil else {
                try add(option, as: option.name, written: "-\(letter)", attached: nil)
                continue
            }
            let attached = letters.isEmpty ? nil : String(letters)
            return try add(option, as: option.name, written: "-\(letter)", attached: attached)
        }
    }

    private mutating func add(
        _ option: OptionDeclaration, as name: String, written: String, attached: String?
    ) throws(UsageError) {
        if parsed.options[option.name] != nil, !option.isRepeated {
            let other = option.form == .negatable ? ", also as --\(option.longNames[1])" : ""
            throw UsageError("--\(option.name) is given twice\(other): once is enough")
        }
        var text = name
        if case .value(let placeholder, _) = option.form {
            if let attached { text = attached } else { text = try nextValue(written, placeholder) }
        } else if let attached {
            throw UsageError("\(written) takes no value: leave out =\(Wording.quoted(attached))")
        }
        parsed.options[option.name, default: []].append(text)
        if option == .help { request = .help }
        if option == .version { request = .version }
    }

    private mutating func nextValue(_ written: String, _ placeholder: String) throws(UsageError) -> String {
        guard let next = rest.popFirst() else {
            throw UsageError("\(written) needs a value: \(written) \(placeholder)")
        }
        guard isOption(next) else { return next }
        let joined = written.hasPrefix("--") ? "\(written)=\(next)" : "\(written)\(next)"
        throw UsageError("\(written) needs a value before \(next) (if that is the value: \(joined))")
    }

    /// Returns whether `word` is certainly not meant as a value.
    private func isOption(_ word: String) -> Bool {
        if word == "--" { return true }
        let name = word.drop { $0 == "-" }.prefix { $0 != "=" }
        return command.options.contains { option in
            (word.hasPrefix("--") && option.longNames.contains(String(name)))
                || (word.count == 2 && word.first == "-" && option.short == word.last)
        }
    }

    // MARK: Unknown options

    private func unknown(_ name: String, written: String) -> UsageError {
        let owners = root.visible.filter { $0.visibleOptions.contains { $0.longNames.contains(name) } }
        if !owners.isEmpty { return optionOfOtherCommands(written, owners) }
        let known = command.visibleOptions.flatMap(\.longNames)
        return noSuchOption(written, SpellingSuggestion.closest(to: name, among: known))
    }

    private func unknown(_ letter: Character) -> UsageError {
        let written = "-\(letter)"
        let owners = root.visible.filter { $0.visibleOptions.contains { $0.short == letter } }
        return owners.isEmpty ? noSuchOption(written, nil) : optionOfOtherCommands(written, owners)
    }

    private func noSuchOption(_ written: String, _ meant: String?) -> UsageError {
        UsageError(
            "there is no option \(written.prefix(60))" + (meant.map { ": did you mean --\($0)?" } ?? ""))
    }

    /// Returns the error for an option that other commands have, but not this one.
    private func optionOfOtherCommands(_ written: String, _ owners: [Outline]) -> UsageError {
        let titles = owners.prefix(3).map(\.title)
        let below = owners.count == 1 && owners[0].path.starts(with: command.path)
        return UsageError(
            "\(written) is an option of \(Wording.list(titles, "and"))"
                + (below ? ": write it after that command" : ", not of \(command.title)"))
    }

    // MARK: Operands

    /// Gives every operand its words: each required one gets a word, and the first ones that may have more get the
    /// rest.
    private mutating func placeOperands() throws(UsageError) {
        var rest = words[...]
        var needed = command.operands.count(where: \.isRequired)
        for operand in command.operands {
            if operand.isRequired { needed -= 1 }
            let free = max(0, rest.count - needed)
            let count = operand.isRepeated ? free : min(1, free)
            parsed.operands[operand.name] = Array(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
        guard let first = rest.first else { return }
        let names = command.operands.map(\.name)
        let expected = names.isEmpty ? "no operands" : "\(Wording.list(names, "and")) only"
        throw UsageError("unexpected \(Wording.quoted(first)): \(command.title) takes \(expected)")
    }

    /// Returns the error for a word that is no command below `command`, or comes too late to be one.
    static func noCommand(_ word: String, in command: Outline) -> UsageError {
        if command.subcommand(word) != nil {
            return UsageError(
                "\(word) is a command: write it directly after \(command.title), before all options")
        }
        let known = command.visibleSubcommands.map(\.name)
        let meant = SpellingSuggestion.closest(to: word, among: known + ["help"])
        let start = "there is no command \(Wording.quoted(word)): "
        return UsageError(start + (meant.map { "did you mean \($0)?" } ?? "use \(Wording.list(known))"))
    }
}
