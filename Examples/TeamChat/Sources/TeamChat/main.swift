import Nigh

// A chat of teams: `TeamChat Puma red`. All are connected in a mesh, also those who do not see each other, and those of
// one team read each other's lines. Write "/join blue" to change to another team.

let (name, team) = (
    CommandLine.arguments.dropFirst(1).first, CommandLine.arguments.dropFirst(2).first ?? "red"
)

/// Joins a team, and shows the messages of its members.
func join(_ team: String, in session: Session) async throws -> Group {
    let group = try await session.join(team)
    Task {
        for await message in group.messages(of: String.self) {
            print("\(team) | \(message.sender.name): \(message.content)")
        }
    }
    Task {
        for await members in group.memberLists {
            print("\(team) | \(["you"] + members.map(\.name))")
        }
    }
    return group
}

do {
    try await withSession(
        service: "teamchat", name: name, transports: CommandLine.arguments.dropFirst(3).first,
        endsOnInterrupt: true,
        configure: {
            $0.topology = .mesh; $0.connectsAutomatically = true
        }
    ) { session in
        var group = try await join(team, in: session)
        for await line in StandardInput.lines {
            if line.hasPrefix("/join ") {
                await group.leave()
                group = try await join(String(line.dropFirst(6)), in: session)
            } else {
                try await group.send(line)
            }
        }
    }
} catch { print(error) }
