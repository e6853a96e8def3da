import GameKit
import Testing

/// How sessions find each other, connect and part, through the API alone.
@Suite("A GKSession", .timeLimit(.minutes(15))) @MainActor struct ConnectingTests {
    private let game = Player.newGame()

    @Test(
        "finds servers as a client, with their names, and is not told of other clients",
        arguments: Wire.allCases)
    func discovery(wire: Wire) async {
        let host = Player("Puma", of: game, .server, over: wire)
        let guests = [
            Player("Lynx", of: game, .client, over: wire), Player("Hare", of: game, .client, over: wire),
        ]
        for guest in guests {
            await guest.wait { $0.ids(.stateAvailable) == [host.id] }
            #expect(guest.session.displayName(forPeer: host.id) == "Puma")
            #expect(guest.events == [.state(host.id, .stateAvailable)])
        }
        #expect(host.events == [])
        #expect(host.session.peers(with: .stateAvailable).isEmpty)
    }

    @Test("takes infinite times for very long ones")
    func infinite() async {
        let host = Player("Puma", of: game, .server, over: .memory)
        let guest = Player("Lynx", of: game, .client, over: .memory)
        await guest.wait { $0.ids(.stateAvailable) == [host.id] }
        guest.session.connect(toPeer: host.id, withTimeout: .infinity)
        await guest.wait { $0.isConnected(to: host) }
        NighGameKit.configure { $0.transports = Wire.memory.transports }
        let session = GKSession(sessionID: game, displayName: "Hare", sessionMode: .client)
        session?.disconnectTimeout = .infinity
        session?.isAvailable = true
        #expect(session?.isAvailable == true)
    }

    @Test(
        "connects after the server has accepted, and both go from connecting to connected",
        arguments: Wire.allCases)
    func connect(wire: Wire) async {
        let host = Player("Puma", of: game, .server, over: wire)
        let guest = Player("Lynx", of: game, .client, over: wire)
        var wereListed: [Bool] = []
        for recorder in [host.recorder, guest.recorder] {
            recorder.onEvent = { session, event in
                guard case .state(let id, .stateConnected) = event else { return }
                wereListed.append((session.peers(with: .stateConnected) as? [String] ?? []).contains(id))
            }
        }
        await guest.join(host)
        #expect(guest.states(of: host) == [.stateAvailable, .stateConnecting, .stateConnected])
        #expect(host.events.first == .request(guest.id))
        #expect(host.states(of: guest) == [.stateConnecting, .stateConnected])
        #expect(host.session.displayName(forPeer: guest.id) == "Lynx")
        #expect(wereListed == [true, true])
    }

    @Test("tells a peer that it was denied, which then is available again", arguments: Wire.allCases)
    func deny(wire: Wire) async {
        let host = Player("Puma", of: game, .server, over: wire)
        host.recorder.accepts = false
        let guest = Player("Lynx", of: game, .client, over: wire)
        await guest.wait { $0.ids(.stateAvailable) == [host.id] }
        guest.session.connect(toPeer: host.id, withTimeout: Player.patience)
        await guest.wait { $0.events.contains(.failed(host.id, .declinedError)) }
        #expect(guest.states(of: host) == [.stateAvailable, .stateConnecting, .stateAvailable])
        host.recorder.accepts = true
        await guest.join(host)
    }

    /// A delegate with no methods at all.
    private final class Mute: NSObject, GKSessionDelegate {}

    @Test(
        "denies requests if its delegate says nothing about them, or if it has none",
        arguments: [true, false])
    func denyByDefault(hasDelegate: Bool) async {
        let mute = Mute()
        let host = Player("Puma", of: game, .server, over: .memory) { $0.delegate = hasDelegate ? mute : nil }
        let guest = Player("Lynx", of: game, .client, over: .memory)
        await guest.wait { $0.ids(.stateAvailable) == [host.id] }
        guest.session.connect(toPeer: host.id, withTimeout: Player.patience)
        await guest.wait { $0.events.contains(.failed(host.id, .declinedError)) }
    }

    @Test("reports a request that nobody answers as timed out, and it cannot be accepted any more")
    func timeout() async {
        let host = Player("Puma", of: game, .server, over: .memory)
        host.recorder.accepts = nil
        let guest = Player("Lynx", of: game, .client, over: .memory)
        await guest.wait { $0.ids(.stateAvailable) == [host.id] }
        // The timeout covers the connection too, and the request must reach the host within it.
        guest.session.connect(toPeer: host.id, withTimeout: 20)
        await guest.wait { $0.events.contains(.failed(host.id, .timedOutError)) }
        await host.wait { $0.events.count == 2 }
        #expect(
            host.events.last == .failed(guest.id, .cancelledError)
                || host.events.last == .failed(guest.id, .timedOutError))
        let error = #expect(throws: GKSessionError.self) {
            try host.session.acceptConnection(fromPeer: guest.id)
        }
        #expect(error?.code == .peerNotFoundError)
    }

    @Test("withdraws a request, and both sides are told that it was cancelled", arguments: Wire.allCases)
    func cancel(wire: Wire) async {
        let host = Player("Puma", of: game, .server, over: wire)
        host.recorder.accepts = nil
        let guest = Player("Lynx", of: game, .client, over: wire)
        await guest.wait { $0.ids(.stateAvailable) == [host.id] }
        guest.session.connect(toPeer: host.id, withTimeout: Player.patience)
        await host.wait { $0.events == [.request(guest.id)] }
        guest.session.cancelConnect(toPeer: host.id)
        await guest.wait { $0.events.contains(.failed(host.id, .cancelledError)) }
        await host.wait { $0.events.last == .failed(guest.id, .cancelledError) }
    }

    @Test(
        "tells the one who has accepted a request what became of it, also if it was withdrawn at the same time"
    )
    func acceptingTooLate() async {
        let host = Player("Puma", of: game, .server, over: .memory)
        let guest = Player("Lynx", of: game, .client, over: .memory)
        host.recorder.accepts = nil
        var round: UInt32 = 0
        host.recorder.onEvent = { [guest = guest.session, id = host.id] session, event in
            guard case .request(let peer) = event else { return }
            guest.cancelConnect(toPeer: id)
            // So that now the one and now the other is first. The test passes either way.
            usleep(round % 10 * 200)
            try? session.acceptConnection(fromPeer: peer)
        }
        while round < 50 {
            round += 1
            await guest.wait { $0.ids(.stateAvailable) == [host.id] }
            for player in [host, guest] { player.recorder.events = [] }
            guest.session.connect(toPeer: host.id, withTimeout: Player.patience)
            await guest.wait {
                $0.isConnected(to: host) || $0.events.contains(.failed(host.id, .cancelledError))
            }
            let isConnected = guest.isConnected(to: host)
            await host.wait {
                switch $0.events.last {
                case .state(guest.id, .stateConnected): isConnected
                case .failed(guest.id, .cancelledError), .state(guest.id, .stateDisconnected): !isConnected
                default: false
                }
            }
            guest.session.disconnectFromAllPeers()
            await host.wait { !$0.isConnected(to: guest) }
        }
    }

    @Test("connects two peers that ask each other at once, with one connection")
    func crossing() async {
        let puma = Player("Puma", of: game, .peer, over: .memory)
        let lynx = Player("Lynx", of: game, .peer, over: .memory)
        await puma.wait { $0.ids(.stateAvailable) == [lynx.id] }
        await lynx.wait { $0.ids(.stateAvailable) == [puma.id] }
        puma.session.connect(toPeer: lynx.id, withTimeout: Player.patience)
        lynx.session.connect(toPeer: puma.id, withTimeout: Player.patience)
        await puma.wait { $0.isConnected(to: lynx) }
        await lynx.wait { $0.isConnected(to: puma) }
        for (player, other) in [(puma, lynx), (lynx, puma)] {
            #expect(player.states(of: other).count { $0 == .stateConnected } == 1)
        }
    }

    @Test("is found no more when it ceases to be available, and stays connected", arguments: Wire.allCases)
    func availability(wire: Wire) async throws {
        let host = Player("Puma", of: game, .server, over: wire)
        let guest = Player("Lynx", of: game, .client, over: wire)
        let late = Player("Hare", of: game, .client, over: wire)
        await guest.join(host)
        await late.wait { $0.ids(.stateAvailable) == [host.id] }
        host.session.isAvailable = false
        await late.wait { $0.states(of: host).last == .stateUnavailable }
        #expect(late.session.displayName(forPeer: host.id) == "Puma")
        #expect(!host.session.isAvailable)
        try guest.session.sendData(toAllPeers: Data([1]), with: .reliable)
        await host.wait { $0.data(from: guest) == [Data([1])] }
        host.session.isAvailable = true
        await late.join(host)
    }

    @Test("denies what comes after it has ceased to be available, without asking its delegate")
    func requestTooLate() async {
        let host = Player("Puma", of: game, .server, over: .memory)
        let guest = Player("Lynx", of: game, .client, over: .memory)
        await guest.wait { $0.ids(.stateAvailable) == [host.id] }
        // Nothing of this is reported before this function waits.
        guest.session.connect(toPeer: host.id, withTimeout: Player.patience)
        host.session.isAvailable = false
        await guest.wait { if case .failed(host.id, _)? = $0.events.last { true } else { false } }
        #expect(!host.events.contains(.request(guest.id)))
    }

    @Test("asks its delegate nothing more once that has made it unavailable, and denies what waits")
    func unavailableMeanwhile() async {
        let host = Player("Puma", of: game, .server, over: .memory)
        let guests = (0..<8).map { Player("Guest \($0)", of: game, .client, over: .memory) }
        for guest in guests { await guest.wait { $0.ids(.stateAvailable) == [host.id] } }
        host.recorder.onEvent = { session, _ in session.isAvailable = false }
        for guest in guests { guest.session.connect(toPeer: host.id, withTimeout: Player.patience) }
        for guest in guests {
            await guest.wait {
                $0.isConnected(to: host)
                    || $0.events.contains { if case .failed = $0 { true } else { false } }
            }
        }
        #expect(host.events.count { if case .request = $0 { true } else { false } } == 1)
        #expect(guests.count { $0.isConnected(to: host) } == 1)
    }

    @Test("keeps a peer connected while its link is replaced, and tells nobody")
    func brokenLink() async {
        // In a process of its own, where all connections are the test's.
        await #expect(processExitsWith: .success) { @MainActor in
            let game = Player.newGame()
            let host = Player("Puma", of: game, .server, over: .tcp)
            let guest = Player("Lynx", of: game, .client, over: .tcp)
            for player in [host, guest] { player.session.disconnectTimeout = Player.patience }
            await guest.join(host)
            for number in UInt8(1)...2 {
                for descriptor in Int32(3)..<200 {
                    var address = sockaddr_storage()
                    var length = socklen_t(MemoryLayout.size(ofValue: address))
                    let isConnected = withUnsafeMutablePointer(to: &address) {
                        getpeername(
                            descriptor, UnsafeMutableRawPointer($0).assumingMemoryBound(to: sockaddr.self),
                            &length)
                    }
                    guard isConnected == 0, address.ss_family == sa_family_t(AF_INET) else { continue }
                    shutdown(descriptor, Int32(SHUT_RDWR))
                }
                try? host.session.sendData(toAllPeers: Data([number]), with: .reliable)
                await guest.wait { $0.data(from: host).last == Data([number]) }
            }
            precondition(guest.data(from: host).count == 2)
            precondition(host.states(of: guest) == [.stateConnecting, .stateConnected])
            precondition(guest.states(of: host) == [.stateAvailable, .stateConnecting, .stateConnected])
        }
    }

    @Test("ends connections on both sides, and is found and joined again", arguments: Wire.allCases)
    func disconnect(wire: Wire) async {
        let host = Player("Puma", of: game, .server, over: wire)
        let guest = Player("Lynx", of: game, .client, over: wire)
        let calls: [(GKSession) -> Void] = [
            { $0.disconnectFromAllPeers() }, { $0.disconnectPeer(fromAllPeers: $0.peerID) },
            { $0.disconnectPeer(fromAllPeers: ($0.peers(with: .stateConnected) as? [String])?.first) },
        ]
        for (round, disconnect) in calls.enumerated() {
            await guest.join(host)
            disconnect(round == 0 ? host.session : guest.session)
            for (player, other) in [(host, guest), (guest, host)] {
                await player.wait { $0.states(of: other).count { $0 == .stateDisconnected } == round + 1 }
                #expect(!player.isConnected(to: other))
            }
        }
    }

    @Test("leaves in good order when nobody holds it, also if that happens in a call of its delegate")
    func deallocation() async {
        let host = Player("Puma", of: game, .server, over: .memory)
        var guest: Player? = Player("Lynx", of: game, .client, over: .memory)
        let id = guest?.id ?? ""
        await guest?.join(host)
        weak let session = guest?.session
        var held = guest?.session
        guest?.recorder.onEvent = { _, _ in held = nil }
        let recorder = guest?.recorder
        try? host.session.sendData(toAllPeers: Data([1]), with: .reliable)
        guest = nil
        await recorder?.wait { recorder?.events.last == .data(host.id, Data([1])) }
        await host.wait { $0.events.last == .state(id, .stateDisconnected) }
        #expect(session == nil && held == nil)
    }

    @Test("can be called from any thread, and calls back on the main queue only")
    func threads() async {
        let host = Player("Puma", of: game, .server, over: .memory)
        let guest = Player("Lynx", of: game, .client, over: .memory)
        await guest.wait { $0.ids(.stateAvailable) == [host.id] }
        nonisolated(unsafe) let session = guest.session
        let id = host.id
        DispatchQueue.global().async { session.connect(toPeer: id, withTimeout: Player.patience) }
        await guest.wait { $0.isConnected(to: host) }
        DispatchQueue.global().async { try? session.sendData(toAllPeers: Data([1]), with: .reliable) }
        await host.wait { $0.data(from: guest).count == 1 }
        #expect(host.recorder.wereAllOnMainQueue && guest.recorder.wereAllOnMainQueue)
    }

    @Test("meets the sessions of its own session ID only, whatever characters the ID has")
    func sessionIDs() async {
        let games = ["com.example.Four in a Row/\(game)", "com.example.four in a row/\(game)", game]
        let hosts = games.map { Player($0, of: $0, .server, over: .memory) }
        for (host, game) in zip(hosts, games) {
            let guest = Player("Lynx", of: game, .client, over: .memory)
            await guest.join(host)
            #expect(guest.events.allSatisfy { if case .state(host.id, _) = $0 { true } else { false } })
            #expect(guest.session.sessionID == game)
        }
    }

    @Test("has a name and an ID of its own if it is given none, and another ID each time")
    func defaults() {
        let sessions = (0..<2).map { _ in GKSession(sessionID: nil, displayName: nil, sessionMode: .peer)! }
        #expect(sessions[0].peerID != sessions[1].peerID)
        for session in sessions {
            #expect(!session.sessionID.isEmpty && !session.displayName.isEmpty)
            #expect(session.sessionMode == .peer && !session.isAvailable && session.disconnectTimeout == 20)
            #expect(session.displayName(forPeer: session.peerID) == session.displayName)
            #expect(session.displayName(forPeer: "nobody") == nil && session.displayName(forPeer: nil) == nil)
            #expect(session.peers(with: .stateConnected).isEmpty && session.delegate == nil)
        }
    }

    @Test("reports to its delegate that it cannot become available, and then is not")
    func unavailable() async {
        let session = GKSession(sessionID: game, displayName: "Puma", sessionMode: .peer)!
        let recorder = EventRecorder()
        session.delegate = recorder
        NighGameKit.configure { $0.transports = "pigeon" }
        session.isAvailable = true
        #expect(!session.isAvailable)
        await recorder.wait { recorder.events == [.failed("", .cannotEnableError)] }
        #expect(recorder.failures.first?.localizedDescription.contains("pigeon") == true)
    }

    @Test("reports to its delegate that none of its transports works")
    func failingTransport() async {
        let session = GKSession(sessionID: game, displayName: "Puma", sessionMode: .server)!
        let recorder = EventRecorder()
        session.delegate = recorder
        NighGameKit.configure { $0.transports = "tcp:interface=nowhere" }
        session.isAvailable = true
        await recorder.wait { recorder.events == [.failed("", .transportError)] }
        #expect(recorder.failures.first?.localizedDescription.contains("nowhere") == true)
    }

    @Test("reports that it knows no such peer")
    func unknownPeer() async {
        let guest = Player("Lynx", of: game, .client, over: .memory)
        let stranger = GKSession(sessionID: game, displayName: "Puma", sessionMode: .server)!
        guest.session.connect(toPeer: "nobody", withTimeout: 1)
        await guest.wait { $0.events == [.failed("nobody", .peerNotFoundError)] }
        guest.session.connect(toPeer: stranger.peerID, withTimeout: 1)
        await guest.wait { $0.events.last == .failed(stranger.peerID, .peerNotFoundError) }
    }

    @Test("connects and disconnects 200 times without keeping a descriptor", arguments: Wire.allCases)
    func cycles(wire: Wire) async throws {
        let host = Player("Puma", of: game, .server, over: wire)
        let guest = Player("Lynx", of: game, .client, over: wire)
        func descriptors() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        }
        var counts: [Int] = []
        for round in 1...200 {
            await guest.join(host)
            guest.session.disconnectFromAllPeers()
            await host.wait { $0.states(of: guest).count { $0 == .stateDisconnected } == round }
            await guest.wait { $0.states(of: host).count { $0 == .stateDisconnected } == round }
            counts.append(try descriptors())
        }
        // Tests run side by side, so other sessions have some.
        #expect((counts.last ?? 0) - counts[0] < 100, "\(counts)")
    }
}
