import Nigh

struct Note: Codable { var text: String }
let (name, transports) = (CommandLine.arguments.dropFirst(1).first, CommandLine.arguments.dropFirst(2).first)

do {
    try await withSession(
        service: "hello", name: name, transports: transports, endsOnInterrupt: true
    ) { session in
        session.connectsAutomatically = true
        async let _: Void = { for await event in session.events { print(event) } }()
        async let _: Void = {
            for await note in session.messages(of: Note.self) {
                print("\(note.sender.name): \(note.content.text)")
            }
        }()
        for await line in StandardInput.lines { try await session.broadcast(Note(text: line)) }
    }
} catch { print(error) }
