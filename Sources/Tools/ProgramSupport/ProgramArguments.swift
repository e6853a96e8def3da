import Glibc

/// The arguments with which this program was started.
public enum ProgramArguments {
    /// Returns the arguments after the program's own name. If they cannot be read, prints why and ends the program.
    public static func readOrExit(for program: String) -> [String] {
        guard let arguments = afterName(in: CommandLine.arguments) else {
            LineOutput.printError(unreadable, by: program)
            exit(SystemRequirements.exitStatus)
        }
        return arguments
    }

    /// Returns the words after the first one, which is the program's own name; nil if not even that is there.
    static func afterName(in words: [String]) -> [String]? { words.isEmpty ? nil : Array(words.dropFirst()) }

    /// The message without /proc, from which Swift reads the arguments.
    static let unreadable =
        "the arguments cannot be read, because nothing is mounted at /proc: mount it with `mount -t proc proc /proc`"
}
