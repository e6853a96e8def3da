import Nigh

/// Two sessions in one process find each other over memory, greet, and say goodbye; each line printed is something
/// that really happened.
enum Greeting {
    static func run() async {
        let puma = session("Puma", role: .server)
        let lynx = session("Lynx", role: .client)
        puma.start()
        lynx.start()
        async let host: Void = beHost(puma)
        await beGuest(lynx)
        await host
        await report(lynx, "Lynx")
        await lynx.close()
        await puma.close()
        print("Both sessions are closed.")
    }

    private static func session(_ name: String, role: SessionRole) -> Session {
        let configuration = SessionConfiguration(
            service: "greet", name: DisplayName(fitting: name), role: role)
        return Session(
            configuration, identity: .ephemeral(), transports: [MemoryTransport()], loop: ThreadEventLoop())
    }

    /// Accepts the first invitation and answers what is said.
    private static func beHost(_ session: Session) async {
        print("Puma  advertises \(session.configuration.service) as \(session.id.short).")
        for await event in session.events {
            guard case .invited(let invitation) = event else { continue }
            let words = String(decoding: invitation.context, as: UTF8.self)
            print("Puma  is invited by \(invitation.peer.name) over \(invitation.transport): \"\(words)\"")
            session.accept(invitation)
            break
        }
        guard let greeting = await session.messages.next() else { return }
        print("Puma  received: \"\(String(decoding: greeting.bytes, as: UTF8.self))\"")
        try? await session.send(Array("Hello Lynx, well met!".utf8), to: greeting.peer)
    }

    /// Looks for a host, invites it and greets.
    private static func beGuest(_ session: Session) async {
        for await event in session.events {
            guard case .stateChanged(let peer, _, _) = event, peer.state == .available else { continue }
            print("Lynx  found \(peer.name) (\(peer.id.short)) at \(peer.routes.map(\.address.description))")
            do {
                try await session.invite(peer.id, context: Array("Shall we talk?".utf8))
                try await session.send(Array("Hello Puma!".utf8), to: peer.id)
                guard let answer = await session.messages.next() else { return }
                print("Lynx  received: \"\(String(decoding: answer.bytes, as: UTF8.self))\"")
                print("Lynx  measured a round trip of \(Moment.Span(try await session.ping(peer.id))).")
            } catch {
                print("Lynx  failed: \(error)")
            }
            return
        }
    }

    private static func report(_ session: Session, _ name: String) async {
        for (peer, counts) in await session.statistics().peers {
            print(
                "\(name)  exchanged with \(peer.short): \(counts.messagesSent) sent, "
                    + "\(counts.messagesReceived) received.")
        }
    }
}
