import Nigh

// Two devices meet. `HostAndJoin host Puma` publishes itself and waits for one guest. `HostAndJoin join Lynx` shows who
// hosts; write the number of one to join it. Then each line that one writes is shown to the other, until one of them
// leaves.

/// Accepts one guest, and declines all others.
func waitForGuest(in session: Session) async throws -> Peer {
    var guest: PeerID?
    for await event in session.events {
        switch event {
        case .invited(let invitation) where guest == nil:
            print("\(invitation.peer.name) comes")
            guest = invitation.peer.id
            session.stopAdvertising()
            invitation.accept()
        case .invited(let invitation): invitation.decline(because: "there is a guest already")
        case .connected(let peer): return peer
        case .invitationEnded(let invitation, _) where invitation.peer.id == guest:
            // It has changed its mind.
            guest = nil
            session.startAdvertising()
        case .transportDown(_, let error), .problem(let error): print(error)
        default: break
        }
    }
    throw CancellationError()
}

/// Shows the hosts, sorted by name, each time that one comes or goes, and joins the one that the person chooses.
func chooseHost(in session: Session) async throws -> Peer {
    let list = Task {
        for await peers in session.peerLists {
            let names = sorted(peers).enumerated().map { "\($0 + 1) \($1.name)" }
            print("hosts: \(names.isEmpty ? "none" : names.joined(separator: ", "))")
        }
    }
    defer { list.cancel() }
    for await line in StandardInput.lines {
        let hosts = sorted(session.peers)
        guard let number = Int(line), hosts.indices ~= number - 1 else { continue }
        let host = hosts[number - 1]
        do {
            // Tries each of its addresses until one answers.
            try await host.invite(timeout: .seconds(10))
            return host
        } catch { print("\(host.name) is not to be joined: \(error)") }
    }
    throw CancellationError()
}

func sorted(_ peers: [Peer]) -> [Peer] { peers.sorted { ($0.name, $0.id) < ($1.name, $1.id) } }

/// Carries lines both ways until one of the two leaves.
func talk(with peer: Peer, in session: Session) async throws {
    print("connected to \(peer.name)")
    try await withThrowingTaskGroup { group in
        group.addTask {
            for await line in StandardInput.lines { try await peer.send(line) }
        }
        group.addTask {
            for await line in session.messages(of: String.self) { print("\(peer.name): \(line.content)") }
        }
        group.addTask {
            for await peers in session.peerLists
            where !peers.contains(where: { $0.id == peer.id && $0.isConnected }) {
                print("\(peer.name) has left")
                return
            }
        }
        try await group.next()
        group.cancelAll()
    }
}

let words = CommandLine.arguments.dropFirst()
let hosts = words.first == "host"

do {
    try await withSession(
        service: "hostandjoin", name: words.dropFirst().first, transports: words.dropFirst(2).first,
        endsOnInterrupt: true
    ) { settings in
        settings.advertises = hosts
        settings.browses = !hosts
    } _: { session in
        let peer = try await hosts ? waitForGuest(in: session) : chooseHost(in: session)
        try await talk(with: peer, in: session)
    }
} catch is CancellationError {
} catch { print(error) }
