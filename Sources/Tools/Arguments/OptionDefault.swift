/// A value that an option has if the command line does not give one, such as from a settings file.
public struct OptionDefault: Hashable, Sendable {
    /// The command that it is for; nil for all that have the option.
    public let command: String?
    /// The long name of the option.
    public let option: String
    /// The value as it would be written on the command line.
    public let value: String
    /// The place of the value, for errors, such as `settings, line 3`.
    public let place: String

    /// Creates a default.
    public init(command: String?, option: String, value: String, place: String) {
        self.command = command
        self.option = option
        self.value = value
        self.place = place
    }
}

extension OptionDefault {
    /// Returns the problem with the default in a program; nil if it fits at least one command.
    func problem(in root: Outline) -> UsageError? {
        if let command {
            guard let outline = root.subcommand(command) else {
                return UsageError("\(place): there is no command \(Wording.quoted(command))")
            }
            guard outline.option(option) == nil else { return nil }
            let meant = SpellingSuggestion.closest(
                to: option, among: outline.visibleOptions.flatMap(\.longNames))
            return UsageError(
                "\(place): \(outline.title) has no option \(Wording.quoted(option))"
                    + (meant.map { ": did you mean \($0)?" } ?? ""))
        }
        guard !root.all.contains(where: { $0.option(option) != nil }) else { return nil }
        return UsageError("\(place): no command has an option \(Wording.quoted(option))")
    }

    /// Adds the default to the arguments, if the command has the option and they do not give it.
    func add(to arguments: inout RawArguments, of outline: Outline) throws(UsageError) {
        guard command == nil || outline.path.dropFirst().first == command,
            let declaration = outline.option(option),
            arguments.options[declaration.name] == nil
        else { return }
        switch declaration.form {
        case .value: arguments.options[declaration.name] = [value]
        case .flag, .negatable:
            guard let isOn = ["yes": true, "no": false][value] else {
                throw UsageError("\(place): \(option) is yes or no")
            }
            if declaration.form == .negatable {
                arguments.options[declaration.name] = [
                    isOn ? declaration.name : OptionDeclaration.negation(of: declaration.name)
                ]
            } else if isOn {
                arguments.options[declaration.name] = [declaration.name]
            }
        }
    }
}

extension Outline {
    /// The option with a long name, of this version or an earlier one. Help and the version are none.
    fileprivate func option(_ name: String) -> OptionDeclaration? {
        options.first { ($0.name == name || $0.olderNames.contains(name)) && !Synopsis.isCommon($0) }
    }
}
