import GameKit

// A lobby for a game. `Lobby host Puma 2` opens a table for two players: write "start" to begin and "end" to end the
// game. `Lobby join Lynx` lists the hosts: write the number of one to join it, then anything to say it at its table,
// "end" to leave. LOBBY=club in the environment makes a lobby of its own.

/// Both kinds of players: a session, its delegate, and the handler of its data.
@MainActor class Player: NSObject, @MainActor GKSessionDelegate, @MainActor GKSessionDataReceiver {
    let session: GKSession
    /// Runs once all connections have ended.
    private var leaving: (() -> Void)?

    init(_ name: String, _ mode: GKSessionMode) {
        let lobby = ProcessInfo.processInfo.environment["LOBBY"] ?? "lobby"
        session = GKSession(sessionID: lobby, displayName: name, sessionMode: mode)
        super.init()
        session.delegate = self
        session.setDataReceiveHandler(self, withContext: nil)
        session.disconnectTimeout = 3
        session.isAvailable = true
    }

    func name(_ peer: String) -> String { session.displayName(forPeer: peer) ?? peer }

    func say(_ text: String) { try? session.sendData(toAllPeers: Data(text.utf8), with: .reliable) }

    /// Ends the program after all texts have arrived.
    func end() {
        leaving = { exit(0) }
        session.isAvailable = false
        session.disconnectFromAllPeers()
        endIfAlone()
    }

    private func endIfAlone() { if session.peers(with: .stateConnected).isEmpty { leaving?() } }

    func session(_ session: GKSession, peer: String, didChange state: GKPeerConnectionState) {
        changed(peer, state)
        endIfAlone()
    }

    func receiveData(
        _ data: Data, fromPeer peer: String, inSession session: GKSession, context: UnsafeMutableRawPointer?
    ) {
        received(String(decoding: data, as: UTF8.self), from: peer)
    }

    func session(_ session: GKSession, didReceiveConnectionRequestFromPeer peer: String) {
        session.denyConnection(fromPeer: peer)
    }

    func session(_ session: GKSession, connectionWithPeerFailed peer: String, withError error: any Error) {}

    func session(_ session: GKSession, didFailWithError error: any Error) {
        print(error.localizedDescription)
    }

    // The differences between the two kinds.
    func changed(_ peer: String, _ state: GKPeerConnectionState) {}
    func received(_ text: String, from peer: String) {}
    func typed(_ line: String) {}
}

final class Host: Player {
    private let seats: Int
    /// The players who sit at the table, or who were accepted and are about to come.
    private var players: Set<String> = []

    init(_ name: String, seats: Int) {
        self.seats = seats
        super.init(name, .server)
    }

    override func session(_ session: GKSession, didReceiveConnectionRequestFromPeer peer: String) {
        guard players.count < seats else { return session.denyConnection(fromPeer: peer) }
        players.insert(peer)
        try? session.acceptConnection(fromPeer: peer)
    }

    override func session(
        _ session: GKSession, connectionWithPeerFailed peer: String, withError error: any Error
    ) {
        players.remove(peer)
    }

    override func changed(_ peer: String, _ state: GKPeerConnectionState) {
        guard state == .stateConnected || state == .stateDisconnected else { return }
        if state == .stateDisconnected { players.remove(peer) }
        let seating = "at the table: \(players.map(name).sorted().joined(separator: ", "))"
        print(seating)
        say(seating)
    }

    override func received(_ text: String, from peer: String) {
        print("\(name(peer)): \(text)")
        say("\(name(peer)): \(text)")
    }

    override func typed(_ line: String) {
        if line == "start" {
            // From here on nobody finds the table.
            session.isAvailable = false
            print("the game begins")
            say("the game begins")
        } else {
            say("\(session.displayName ?? ""): \(line)")
        }
    }
}

final class Guest: Player {
    private var hosts: [String] = []
    private var table: String?

    override func changed(_ peer: String, _ state: GKPeerConnectionState) {
        switch state {
        case .stateConnected: table = peer
        case .stateDisconnected:
            table = nil
            print("\(name(peer)) has gone")
        case .stateAvailable, .stateUnavailable: if table == nil { list() }
        case .stateConnecting, .stateConnectedRelay: break
        @unknown default: break
        }
    }

    private func list() {
        hosts = (session.peers(with: .stateAvailable) as? [String] ?? []).sorted { name($0) < name($1) }
        let lines = hosts.enumerated().map { "\($0 + 1) \(name($1))" }
        print("hosts: \(lines.isEmpty ? "none" : lines.joined(separator: ", "))")
    }

    override func session(
        _ session: GKSession, connectionWithPeerFailed peer: String, withError error: any Error
    ) {
        print("\(name(peer)) is not to be joined: \(error.localizedDescription)")
        list()
    }

    override func received(_ text: String, from peer: String) { print(text) }

    override func typed(_ line: String) {
        if table != nil { return say(line) }
        guard let number = Int(line), hosts.indices ~= number - 1 else { return list() }
        session.connect(toPeer: hosts[number - 1], withTimeout: 10)
    }
}

let words = CommandLine.arguments.dropFirst()
let name = words.dropFirst().first ?? "somebody"
let player: Player =
    words.first == "host"
    ? Host(name, seats: words.dropFirst(2).first.flatMap { Int($0) } ?? 3) : Guest(name, .client)
Thread.detachNewThread {
    while let line = readLine(), line != "end" { DispatchQueue.main.async { player.typed(line) } }
    DispatchQueue.main.async { player.end() }
}
RunLoop.main.run()
