import Nigh

// Four in a Row: `FourActors host` has a table, `FourActors join` plays at it, and `FourActors watch` shows the game.

var words = Array(CommandLine.arguments.dropFirst())

/// Takes an option and its value out of the words.
func takeValue(of option: String, from words: inout [String]) -> String? {
    guard let index = words.firstIndex(of: option), index + 1 < words.count else { return nil }
    defer { words.removeSubrange(index...index + 1) }
    return words[index + 1]
}

let name = takeValue(of: "--name", from: &words)
let transports = takeValue(of: "--transport", from: &words)
let isBot = words.firstIndex(of: "--bot").map { words.remove(at: $0) } != nil
let program = Program(
    name: name, transports: transports, isBot: isBot, lines: StandardInput.lines, show: { print($0) })

do {
    switch words {
    case ["host"]: try await program.host()
    case ["join"]: try await program.join()
    case ["watch"]: try await program.watch()
    default: print("usage: FourActors host|join|watch [--name NAME] [--transport SPEC] [--bot]")
    }
} catch is CancellationError {
} catch { print(error) }
