import Nigh

/// Nigh's own interface.
struct NighContender: Contender {
    static let name = "Nigh"
    private let session: Nigh.Session
    private let peer: Nigh.Peer

    private static func session(_ service: String) throws -> Nigh.Session {
        try Nigh.Session(service: service, transports: transports) {
            $0.identity = .temporary
            $0.connectsAutomatically = true
        }
    }

    static func answer(in service: String) async throws {
        let session = try session(service)
        for await message in session.messages where message.count < 16 {
            try await session.peer(message.sender).send(bytes: message.bytes)
        }
    }

    init(to process: SecondProcess) async throws {
        session = try Self.session(process.service)
        for await case .connected(let peer) in session.events {
            self.peer = peer
            return
        }
        throw CancellationError()
    }

    func stream(_ count: Int, of size: Int) async throws {
        let message = [UInt8](repeating: 0, count: size)
        for _ in 0..<count { try await peer.send(bytes: message) }
        try await peer.send(bytes: Array("end".utf8))
        _ = await session.messages.next()
    }

    func roundTrips(_ count: Int) async throws -> [Double] {
        var times: [Double] = []
        for _ in 0..<count {
            let start = ContinuousClock.now
            try await peer.send(bytes: [UInt8](repeating: 0, count: 8))
            _ = await session.messages.next()
            times.append(start.duration(to: .now) / .microseconds(1))
        }
        return times
    }
}
