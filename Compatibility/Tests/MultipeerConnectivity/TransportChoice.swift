import MultipeerConnectivity
import Testing

#if os(Linux)
    import Glibc
    import Synchronization

    /// The one file here that knows Nigh. The environment variable `NIGH_TRANSPORTS` chooses the transports of the
    /// sessions of these tests; memory if it is not set. `NIGH_TEST_ADAPTERS=3` has Bluetooth carry them, and gives the
    /// devices one of three adapters in turn. `NIGH_TEST_MEMBERS=2` lets a session have no more than two members.
    let transportsAreChosen: Void = {
        _ = usualSettings
        let environment = ProcessInfo.processInfo.environment
        let keys = FileManager.default.temporaryDirectory.appendingPathComponent("keys-\(UUID().uuidString)")
        NighMultipeer.configure {
            if environment["NIGH_TRANSPORTS"] == nil { $0.transports = "memory" }
            $0.identityFolder = keys.path
            $0.maximumNumberOfPeers = memberLimit
            $0.invitationTime = .seconds(Device.patience)
            $0.connectingTime = .seconds(Device.patience)
            $0.transportsOfPeer = { peer in
                adapters.withLock { $0.ofPeers[peer.hash] }.map { "bluetooth:adapter=hci\($0),interval=1" }
            }
        }
        atexit { try? FileManager.default.removeItem(atPath: NighMultipeer.settings.identityFolder) }
    }()

    /// The settings of a program that changes none.
    private let usualSettings = NighMultipeer.settings

    private func number(in variable: String) -> Int? {
        ProcessInfo.processInfo.environment[variable].flatMap { Int($0) }
    }

    private let adapterCount = number(in: "NIGH_TEST_ADAPTERS") ?? 0
    private let adapters = Mutex<(last: Int, ofPeers: [Int: Int])>((-1, [:]))

    /// How many peers may be in a session, oneself included.
    let memberLimit = number(in: "NIGH_TEST_MEMBERS") ?? kMCSessionMaximumNumberOfPeers

    /// Gives a peer the next adapter.
    func giveAdapter(to peer: MCPeerID) {
        adapters.withLock { adapters in
            guard adapterCount > 0 else { return }
            adapters.last = (adapters.last + 1) % adapterCount
            adapters.ofPeers[peer.hash] = adapters.last
        }
    }

    /// Runs a body whose browsers and advertisers end a conversation as soon as it is not needed.
    func withoutIdleTime(_ start: () -> Void) {
        var settings = NighMultipeer.settings
        settings.idleConversationTime = .zero
        NighMultipeer.$settingsOfTask.withValue(settings, operation: start)
    }

    /// Runs a body whose browsers and advertisers have sessions that reach other processes.
    func overTCP(_ start: () -> Void) {
        var settings = NighMultipeer.settings
        settings.transports = "tcp:interface=lo,mdns=embedded"
        NighMultipeer.$settingsOfTask.withValue(settings, operation: start)
    }

    /// Makes something whose invitations and whose connecting have 1 s instead of 30 s.
    func withShortTimes<Made>(_ make: () -> Made) -> Made {
        _ = transportsAreChosen
        var settings = NighMultipeer.settings
        #expect(
            usualSettings.invitationTime == .seconds(30) && usualSettings.connectingTime == .seconds(30))
        settings.invitationTime = .seconds(1)
        settings.connectingTime = .seconds(1)
        return NighMultipeer.$settingsOfTask.withValue(settings, operation: make)
    }
#else
    let transportsAreChosen: Void = ()
    let memberLimit = kMCSessionMaximumNumberOfPeers

    func giveAdapter(to peer: MCPeerID) {}

    func withShortTimes<Made>(_ make: () -> Made) -> Made { make() }

    func withoutIdleTime(_ start: () -> Void) { start() }
#endif
