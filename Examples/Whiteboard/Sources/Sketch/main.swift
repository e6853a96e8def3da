import Nigh

// A whiteboard with a chat: `Sketch Puma`. Type "10 10 20 30" to draw a line, or anything else to say it.

do {
    try await sketch(
        name: CommandLine.arguments.dropFirst(1).first, transports: CommandLine.arguments.dropFirst(2).first,
        lines: StandardInput.lines
    ) { print($0) }
} catch { print(error) }
