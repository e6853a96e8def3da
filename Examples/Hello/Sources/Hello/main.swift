import Nigh
let words = CommandLine.arguments.dropFirst()  // a name, and what carries it
do {
    try await withSession(
        service: "hello", name: words.first,
        transports: words.dropFirst().first, endsOnInterrupt: true
    ) { settings in
        settings.connectsAutomatically = true
        settings.log = { level, text, _ in if level != .debug { print(text) } }
    } _: { session in
        async let _: Void = {
            for await note in session.messages(of: String.self) {
                print("\(note.sender.name): \(note.content)")
            }
        }()
        for await line in StandardInput.lines {
            try await session.broadcast(line)
        }
    }
} catch { print(error) }
