/// Sorts the words after a command's name into options and operands.
struct Scan {
    enum Finding {
        case help
        case version
        case given(Given)
    }

    private let command: Outline
    private let root: Outline
    private var rest: ArraySlice<String>
    private var given = Given()
    private var words: [String] = []
    /// What the user asks for instead of the command: help or the version.
    private var asked: Finding?

    private init(_ arguments: ArraySlice<String>, for command: Outline, in root: Outline) {
        rest = arguments
        self.command = command
        self.root = root
    }

    /// Returns what `arguments` give to `command`, which is `root` or a command below it.
    static func read(_ arguments: ArraySlice<String>, for command: Outline, in root: Outline) throws(Misuse)
        -> Finding
    {
        var scan = Scan(arguments, for: command, in: root)
        do {
            return try scan.run()
        } catch {
            // A request for help is answered, whatever else is wrong.
            if arguments.prefix(while: { $0 != "--" }).contains(where: { $0 == "--help" || $0 == "-h" }) {
                return .help
            }
            throw error
        }
    }

    private mutating func run() throws(Misuse) -> Finding {
        while let word = rest.popFirst() {
            if word == "--" {
                words += rest
                break
            } else if word.hasPrefix("--") {
                try takeLong(word)
            } else if word.hasPrefix("-"), word != "-", !isNumber(word) {
                try takeShort(word)
            } else {
                words.append(word)
            }
            if let asked { return asked }
        }
        try placeOperands()
        return .given(given)
    }

    /// Returns whether this is a negative number, which may be an operand, and not an option.
    private func isNumber(_ word: String) -> Bool {
        guard let digit = word.dropFirst().first, ("0"..."9").contains(digit) else { return false }
        return !command.operands.isEmpty && !command.options.contains { $0.short == digit }
    }

    // MARK: Options

    private mutating func takeLong(_ word: String) throws(Misuse) {
        let halves = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(halves[0])
        guard let option = command.options.first(where: { $0.longNames.contains(name) }) else {
            throw unknown(name, written: "--\(name)")
        }
        try take(option, as: name, written: "--\(name)", attached: halves.count > 1 ? String(halves[1]) : nil)
    }

    /// Takes `-n`, `-nvalue`, or several flags at once.
    private mutating func takeShort(_ word: String) throws(Misuse) {
        var letters = word.dropFirst()
        // Even if the first letter accepts the rest as a value, the long option was meant.
        if letters.count > 1,
            command.visibleOptions.contains(where: { $0.longNames.contains(String(letters)) })
        {
            throw Misuse("there is no option \(word): write -\(word)")
        }
        while let letter = letters.popFirst() {
            guard let option = command.options.first(where: { $0.short == letter }) else {
                throw unknown(letter)
            }
            guard option.candidates != nil else {
                try take(option, as: option.name, written: "-\(letter)", attached: nil)
                continue
            }
            let attached = letters.isEmpty ? nil : String(letters)
            return try take(option, as: option.name, written: "-\(letter)", attached: attached)
        }
    }

    private mutating func take(
        _ option: OptionDeclaration, as name: String, written: String, attached: String?
    ) throws(Misuse) {
        if given.options[option.name] != nil, !option.isRepeated {
            let other = option.form == .negatable ? ", be it as --\(option.longNames[1])" : ""
            throw Misuse("--\(option.name) is given twice\(other): once is enough")
        }
        var text = name
        if case .value(let placeholder, _) = option.form {
            if let attached { text = attached } else { text = try nextValue(written, placeholder) }
        } else if let attached {
            throw Misuse("\(written) takes no value: leave out =\(Wording.quoted(attached))")
        }
        given.options[option.name, default: []].append(text)
        if option == .help { asked = .help }
        if option == .version { asked = .version }
    }

    private mutating func nextValue(_ written: String, _ placeholder: String) throws(Misuse) -> String {
        guard let next = rest.popFirst() else {
            throw Misuse("\(written) needs a value: \(written) \(placeholder)")
        }
        guard isOption(next) else { return next }
        let joined = written.hasPrefix("--") ? "\(written)=\(next)" : "\(written)\(next)"
        throw Misuse("\(written) needs a value before \(next) (if that is the value: \(joined))")
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

    private func unknown(_ name: String, written: String) -> Misuse {
        let owners = root.visible.filter { $0.visibleOptions.contains { $0.longNames.contains(name) } }
        if !owners.isEmpty { return foreign(written, owners) }
        let known = command.visibleOptions.flatMap(\.longNames)
        return none(written, Resemblance.closest(to: name, among: known))
    }

    private func unknown(_ letter: Character) -> Misuse {
        let written = "-\(letter)"
        let owners = root.visible.filter { $0.visibleOptions.contains { $0.short == letter } }
        return owners.isEmpty ? none(written, nil) : foreign(written, owners)
    }

    private func none(_ written: String, _ meant: String?) -> Misuse {
        Misuse("there is no option \(written.prefix(60))" + (meant.map { ": did you mean --\($0)?" } ?? ""))
    }

    /// Returns the error for an option that other commands have, but not this one.
    private func foreign(_ written: String, _ owners: [Outline]) -> Misuse {
        let titles = owners.prefix(3).map(\.title)
        let below = owners.count == 1 && owners[0].path.starts(with: command.path)
        return Misuse(
            "\(written) is an option of \(Wording.list(titles, "and"))"
                + (below ? ": write it behind that" : ", not of \(command.title)"))
    }

    // MARK: Operands

    /// Gives every operand its words: each required one gets a word, and the first ones that may have more get the
    /// rest.
    private mutating func placeOperands() throws(Misuse) {
        var rest = words[...]
        var needed = command.operands.count(where: \.isRequired)
        for operand in command.operands {
            if operand.isRequired { needed -= 1 }
            let free = max(0, rest.count - needed)
            let count = operand.isRepeated ? free : min(1, free)
            given.operands[operand.name] = Array(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
        guard let first = rest.first else { return }
        guard command.subcommands.isEmpty || !command.operands.isEmpty else {
            throw Self.noCommand(first, in: command)
        }
        let names = command.operands.map(\.name)
        let expected = names.isEmpty ? "no operands" : "\(Wording.list(names, "and")) only"
        throw Misuse("\(Wording.quoted(first)) is too much: \(command.title) takes \(expected)")
    }

    /// Returns the error for a word that is no command below `command`, or comes too late to be one.
    static func noCommand(_ word: String, in command: Outline) -> Misuse {
        if command.subcommand(word) != nil {
            return Misuse("\(word) is a command: write it right behind \(command.title), before all options")
        }
        let known = command.visibleSubcommands.map(\.name)
        let meant = Resemblance.closest(to: word, among: known + ["help"])
        let start = "there is no command \(Wording.quoted(word)): "
        return Misuse(start + (meant.map { "did you mean \($0)?" } ?? "it is \(Wording.list(known))"))
    }
}
