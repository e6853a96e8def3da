import Foundation
import Nigh

/// What they say to each other: any `Codable` type, as JSON on its way.
struct Note: Codable {
    let text: String
    let writtenAt: Date
}

/// Passes lines on between all that run it: `PipeChat Puma tcp`.
@main struct PipeChat {
    static func main() async {
        let words = CommandLine.arguments
        guard words.count == 3 else { return say("call it as in: PipeChat Puma tcp") }
        do {
            try await chat(as: DisplayName(fitting: words[1]), over: words[2])
        } catch {
            say("\(error)")
            exit(1)
        }
    }

    static func chat(as name: DisplayName, over transports: String) async throws {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let session = Session(
            SessionConfiguration(service: "pipechat", name: name), identity: .ephemeral(),
            // Those of Nigh, and those of plugins.
            transports: try PluginShelf().makeAll(transports, extending: .standard), loop: loop)
        session.start()
        let hearing = Task {
            for await message in session.messages {
                let note = try? JSONDecoder().decode(Note.self, from: Data(message.bytes))
                if let note { say(note.text) }
            }
        }
        var typing: Task<Void, any Error>?
        for await event in session.events {
            if case .invited(let invitation) = event { session.accept(invitation) }
            guard case .stateChanged(let peer, let former, _) = event else { continue }
            say("\(peer.name) is \(peer.state)")
            if former == .unavailable { session.invite(peer.id) { _ in } }
            if peer.state == .connected { typing = typing ?? Task { try await type(to: session) } }
        }
        try await typing?.value
        await hearing.value
    }

    /// Sends what is typed, line by line, and leaves at the end of it.
    static func type(to session: Session) async throws {
        for await line in AsyncStream(unfolding: { readLine() }) {
            let note = try JSONEncoder().encode(Note(text: line, writtenAt: Date()))
            try? await session.sendToAll(ByteSlice(note))
        }
        await session.close()
    }

    static func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }
}
