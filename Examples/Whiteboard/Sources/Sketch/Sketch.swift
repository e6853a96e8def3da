import Nigh
import Whiteboard

/// Chats and draws: a line of numbers is a stroke, any other line is said to all. Passes each line to show to `show`.
func sketch(
    name: String?, transports: String?, lines: some AsyncSequence<String, Never> & Sendable,
    show: @escaping @Sendable (String) -> Void
) async throws {
    try await withSession(
        service: "sketch", name: name, transports: transports, endsOnInterrupt: true
    ) { session in
        session.connectsAutomatically = true
        let board = try Whiteboard(in: session) { show("a line along \($0.points)") }
        async let drawing: Void = board.run()
        async let chat: Void = {
            for await line in session.messages(of: String.self) {
                show("\(line.sender.name): \(line.content)")
            }
        }()
        for await line in lines {
            let numbers = line.split(separator: " ").compactMap { Double($0) }
            if numbers.isEmpty {
                try await session.broadcast(line)
            } else {
                try await board.draw(.init(numbers))
            }
        }
        await session.close()
        _ = await (drawing, chat)
    }
}
