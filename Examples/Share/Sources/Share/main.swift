import Nigh

// Passes on the lines that are typed, and the files that a line `/send FILE` names.
struct Note: Codable { var text: String }
let (name, transports) = (CommandLine.arguments.dropFirst(1).first, CommandLine.arguments.dropFirst(2).first)

func report(_ session: Session) async {
    for await event in session.events {
        switch event {
        case .connected(let peer): print("\(peer.name) is here")
        case .reconnecting(let peer, _): print("\(peer.name) is out of reach")
        case .reconnected(let peer): print("\(peer.name) is back, over \(peer.transport ?? "?")")
        case .disconnected(let peer, let error): print("\(peer.name) is gone: \(error.cause)")
        case .transportDown: print(event)
        default: break
        }
    }
}

func receiveFiles(_ session: Session) async {
    for await offer in session.fileOffers {
        do {
            for result in try await offer.accept(into: ".").finish() { print(result.path ?? "", "is here") }
        } catch {
            offer.decline(because: "\(error)")
            print(error)
        }
    }
}

func send(_ path: String, in session: Session) async {
    for peer in session.connectedPeers {
        do {
            try await peer.send(file: path).finish()
            print("\(peer.name) has \(path)")
        } catch { print(error) }
    }
}

do {
    try await withSession(
        service: "share", name: name, transports: transports, endsOnInterrupt: true
    ) { settings in
        settings.files = .ask
        settings.connectsAutomatically = true
    } _: { session in
        async let _: Void = report(session)
        async let _: Void = receiveFiles(session)
        async let _: Void = {
            for await note in session.messages(of: Note.self) {
                print("\(note.sender.name): \(note.content.text)")
            }
        }()
        for await line in StandardInput.lines {
            if line.hasPrefix("/send ") {
                await send(String(line.dropFirst("/send ".count)), in: session)
            } else {
                try await session.broadcast(Note(text: line))
            }
        }
    }
} catch { print(error) }
