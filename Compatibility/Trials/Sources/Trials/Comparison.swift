import MultipeerConnectivity
import Nigh

/// The module against Nigh's own interface: each with a second process, over the same transport.
enum Comparison {
    private static func startEcho(_ role: String, _ service: String) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = [role, service]
        try process.run()
        return process
    }

    private static func service() -> String { "trial-\(Int.random(in: 0...99_999_999))" }

    private static func report(_ what: String, _ times: [Double]) {
        let sorted = times.sorted()
        print(
            "\(what): median \(sorted[sorted.count / 2]) µs, 99 % within \(sorted[sorted.count * 99 / 100]) µs"
        )
    }

    private static func seconds(_ body: () async throws -> Void) async rethrows -> Double {
        let start = ContinuousClock.now
        try await body()
        return start.duration(to: .now) / .seconds(1)
    }

    // MARK: The module

    /// Sends every message back that is short, and one word for each message "end".
    static func echoByModule(_ service: String) {
        let party = Party("Echo", service: service)
        party.onMessage = { [unowned party] data, peer in
            guard data.count < 16 else { return }
            try? party.session.send(data, toPeers: [peer], with: .reliable)
        }
        party.advertiser.startAdvertisingPeer()
        while true { Thread.sleep(forTimeInterval: 60) }
    }

    private static func withModule(_ body: (Party, MCPeerID) async throws -> Void) async {
        let service = service()
        guard let echo = try? startEcho("echo-module", service) else { return print("no second process") }
        // It waits in a way that a gentler signal does not end.
        defer { kill(echo.processIdentifier, SIGKILL) }
        let party = Party("Caller", service: service)
        party.browser.startBrowsingForPeers()
        party.wait { !party.found.isEmpty }
        let peer = party.found[0]
        party.browser.invitePeer(peer, to: party.session, withContext: nil, timeout: 30)
        party.wait { party.connected == 1 }
        try? await body(party, peer)
    }

    // MARK: Nigh

    static func echoByNigh(_ service: String) async throws {
        let session = try session(service)
        for await message in session.messages where message.count < 16 {
            try await session.peer(message.sender).send(bytes: message.bytes)
        }
    }

    private static func session(_ service: String) throws -> Nigh.Session {
        try Nigh.Session(service: service, transports: NighMultipeer.settings.transports) {
            $0.identity = .temporary
            $0.connectsAutomatically = true
        }
    }

    private static func withNigh(_ body: (Nigh.Session, Nigh.Peer) async throws -> Void) async {
        let service = service()
        guard let echo = try? startEcho("echo-nigh", service), let session = try? session(service) else {
            return print("no second process")
        }
        // It waits in a way that a gentler signal does not end.
        defer { kill(echo.processIdentifier, SIGKILL) }
        for await case .connected(let peer) in session.events {
            try? await body(session, peer)
            break
        }
        await session.close()
    }

    // MARK: Trials

    static func latency(_ count: Int) async {
        await withModule { party, peer in
            let answers = DispatchSemaphore(value: 0)
            party.onMessage = { _, _ in answers.signal() }
            var times: [Double] = []
            for _ in 0..<count {
                let start = ContinuousClock.now
                try party.session.send(Data(count: 8), toPeers: [peer], with: .reliable)
                answers.waitInThisThread()
                times.append(start.duration(to: .now) / .microseconds(1))
            }
            report("round trip by the module", times)
        }
        await withNigh { session, peer in
            var messages = session.messages.makeAsyncIterator()
            var times: [Double] = []
            for _ in 0..<count {
                let start = ContinuousClock.now
                try await peer.send(bytes: [UInt8](repeating: 0, count: 8))
                _ = await messages.next()
                times.append(start.duration(to: .now) / .microseconds(1))
            }
            report("round trip by Nigh", times)
        }
    }

    static func throughput(_ count: Int) async {
        for (size, count) in [(100, count), (1_000, count), (100_000, count / 100)] {
            await withModule { party, peer in
                let answers = DispatchSemaphore(value: 0)
                party.onMessage = { _, _ in answers.signal() }
                let message = Data(count: size)
                let time = try await seconds {
                    for _ in 0..<count {
                        while true {
                            do {
                                try party.session.send(message, toPeers: [peer], with: .reliable)
                                break
                            } catch MCError.unavailable {
                                Thread.sleepShortly()
                            }
                        }
                    }
                    while true {
                        do {
                            try party.session.send(Data("end".utf8), toPeers: [peer], with: .reliable)
                            break
                        } catch MCError.unavailable {
                            Thread.sleepShortly()
                        }
                    }
                    answers.waitInThisThread()
                }
                print(
                    "\(size) bytes by the module: \(Int(Double(count) / time)) messages/s, \(Double(count * size) / time / 1e6) MB/s"
                )
            }
            await withNigh { session, peer in
                let message = [UInt8](repeating: 0, count: size)
                var messages = session.messages.makeAsyncIterator()
                let time = try await seconds {
                    for _ in 0..<count { try await peer.send(bytes: message) }
                    try await peer.send(bytes: Array("end".utf8))
                    _ = await messages.next()
                }
                print(
                    "\(size) bytes by Nigh: \(Int(Double(count) / time)) messages/s, \(Double(count * size) / time / 1e6) MB/s"
                )
            }
        }
    }
}

extension DispatchSemaphore {
    /// A trial measures one thing, on a thread that has nothing else to do.
    fileprivate func waitInThisThread() { wait() }
}

extension Thread {
    fileprivate static func sleepShortly() { usleep(200) }
}
