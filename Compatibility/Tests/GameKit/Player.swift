import GameKit
import Testing

/// The network of a test's sessions.
enum Wire: CaseIterable {
    case memory
    case tcp

    /// The transports as `NighGameKit` takes them.
    var transports: String {
        switch self {
        case .memory: "memory:hub=gamekit"
        case .tcp: "tcp:interface=lo,mdns=embedded"
        }
    }
}

/// A session with its delegate and data handler, which record their calls.
@MainActor final class Player {
    /// A call of the delegate or of the data handler.
    enum Event: Equatable {
        case state(String, GKPeerConnectionState)
        case request(String)
        case failed(String, GKSessionError.Code)
        case data(String, Data)
    }

    /// The timeout of requests that no test wants to end by it, however busy the machine is.
    nonisolated static let patience: TimeInterval = 600

    let session: GKSession
    let recorder: EventRecorder

    var id: String { session.peerID }
    var events: [Event] { recorder.events }

    /// Makes a session that is available at once.
    init(
        _ name: String, of game: String, _ mode: GKSessionMode, over wire: Wire, handlesData: Bool = true,
        adjust: (GKSession) -> Void = { _ in }
    ) {
        session = GKSession(sessionID: game, displayName: name, sessionMode: mode)
        recorder = EventRecorder()
        session.delegate = recorder
        if handlesData { session.setDataReceiveHandler(recorder, withContext: nil) }
        adjust(session)
        NighGameKit.configure { $0.transports = wire.transports }
        session.isAvailable = true
    }

    /// The states of a peer that the session has reported, in order.
    func states(of peer: Player) -> [GKPeerConnectionState] {
        let id = peer.id
        return events.compactMap { if case .state(id, let state) = $0 { state } else { nil } }
    }

    /// The data that came from a peer.
    func data(from peer: Player) -> [Data] {
        let id = peer.id
        return events.compactMap { if case .data(id, let data) = $0 { data } else { nil } }
    }

    func isConnected(to peer: Player) -> Bool { ids(.stateConnected).contains(peer.id) }

    /// The peers in a state.
    func ids(_ state: GKPeerConnectionState) -> [String] { session.peers(with: state) as? [String] ?? [] }

    /// Waits until the calls so far fulfil the condition; the suite's time limit ends longer waits.
    func wait(until condition: @escaping @MainActor (Player) -> Bool) async {
        await recorder.wait { [unowned self] in condition(self) }
    }

    /// Finds a host, connects to it, and waits until both know that.
    func join(_ host: Player) async {
        await wait { $0.ids(.stateAvailable).contains(host.id) }
        session.connect(toPeer: host.id, withTimeout: Self.patience)
        await wait { $0.isConnected(to: host) }
        await host.wait { $0.isConnected(to: self) }
    }

    /// A game that no other test plays.
    static func newGame() -> String { "g\(UInt32.random(in: 0 ... .max))" }
}

/// Records the calls of a session, and wakes up the tasks that wait for them.
///
/// `@unchecked Sendable`: touched on the main queue only, as the session promises.
final class EventRecorder: NSObject, GKSessionDelegate, GKSessionDataReceiver, @unchecked Sendable {
    /// Marks the main queue.
    private static let mark = {
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        return key
    }()

    var events: [Player.Event] = []
    var wereAllOnMainQueue = true
    var failures: [any Error] = []
    /// Whether requests are accepted; nil leaves them open.
    var accepts: Bool? = true
    /// Called with each event.
    var onEvent: (GKSession, Player.Event) -> Void = { _, _ in }
    var contexts: [UnsafeMutableRawPointer?] = []
    private let waits = MainWaits()

    @MainActor func wait(until condition: @escaping @MainActor () -> Bool) async {
        await waits.wait(until: condition)
    }

    private func record(_ event: Player.Event, _ session: GKSession) {
        wereAllOnMainQueue = wereAllOnMainQueue && DispatchQueue.getSpecific(key: Self.mark) == true
        events.append(event)
        onEvent(session, event)
        MainActor.assumeIsolated { waits.check() }
    }

    func session(_ session: GKSession, peer peerID: String, didChange state: GKPeerConnectionState) {
        record(.state(peerID, state), session)
    }

    func session(_ session: GKSession, didReceiveConnectionRequestFromPeer peerID: String) {
        switch accepts {
        case true?: try? session.acceptConnection(fromPeer: peerID)
        case false?: session.denyConnection(fromPeer: peerID)
        case nil: break
        }
        record(.request(peerID), session)
    }

    func session(_ session: GKSession, connectionWithPeerFailed peerID: String, withError error: any Error) {
        record(.failed(peerID, (error as? GKSessionError)?.code ?? .unknownError), session)
    }

    func session(_ session: GKSession, didFailWithError error: any Error) {
        failures.append(error)
        record(.failed("", (error as? GKSessionError)?.code ?? .unknownError), session)
    }

    func receiveData(
        _ data: Data, fromPeer peer: String, inSession session: GKSession, context: UnsafeMutableRawPointer?
    ) {
        contexts.append(context)
        record(.data(peer, data), session)
    }
}
