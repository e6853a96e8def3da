import GameKit

/// The module GameKit.
final class GameKitContender: NSObject, Contender, @unchecked Sendable {
    static let name = "GameKit"
    private let session: GKSession
    private let connected = DispatchSemaphore(value: 0)
    private let answers = DispatchSemaphore(value: 0)
    private let answersMessages: Bool
    private var peer = ""

    private init(_ service: String, _ mode: GKSessionMode) {
        session = GKSession(sessionID: service, displayName: "Trial", sessionMode: mode)
        answersMessages = mode == .server
        super.init()
        session.delegate = self
        session.setDataReceiveHandler(self, withContext: nil)
        NighGameKit.configure { $0.transports = transports }
        session.isAvailable = true
    }

    static func answer(in service: String) async throws {
        let contender = GameKitContender(service, .server)
        try await onThread { while true { sleep(60) } }
        withExtendedLifetime(contender) {}
    }

    convenience init(to process: SecondProcess) async throws {
        self.init(process.service, .client)
        try await onThread { [connected] in connected.wait() }
    }

    private func send(_ message: Data) throws {
        try sendWithPatience {
            try session.send(message, toPeers: [peer], with: .reliable)
        } unless: {
            ($0 as? GKSessionError)?.code == .transportError
        }
    }

    func stream(_ count: Int, of size: Int) async throws {
        let message = Data(count: size)
        try await onThread { [self] in
            for _ in 0..<count { try send(message) }
            try send(Data("end".utf8))
            answers.wait()
        }
    }

    func roundTrips(_ count: Int) async throws -> [Double] {
        try await onThread { [self] in
            try microseconds(count) {
                try send(Data(count: 8))
                answers.wait()
            }
        }
    }
}

extension GameKitContender: GKSessionDelegate, GKSessionDataReceiver {
    func session(_ session: GKSession, peer peerID: String, didChange state: GKPeerConnectionState) {
        switch state {
        case .stateAvailable: session.connect(toPeer: peerID, withTimeout: 30)
        case .stateConnected:
            peer = peerID
            connected.signal()
        default: break
        }
    }

    func session(_ session: GKSession, didReceiveConnectionRequestFromPeer peerID: String) {
        try? session.acceptConnection(fromPeer: peerID)
    }

    func receiveData(
        _ data: Data, fromPeer peer: String, inSession session: GKSession, context: UnsafeMutableRawPointer?
    ) {
        if !answersMessages {
            answers.signal()
        } else if data.count < 16 {
            try? session.send(data, toPeers: [peer], with: .reliable)
        }
    }
}
