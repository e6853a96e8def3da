import MultipeerConnectivity

/// The module MultipeerConnectivity.
///
/// `@unchecked Sendable`: a session can be used from any thread, and the peers do not change.
struct ModuleContender: Contender, @unchecked Sendable {
    static let name = "MultipeerConnectivity"
    private let party: Party
    private let session: MCSession
    private let peers: [MCPeerID]
    private let answers = DispatchSemaphore(value: 0)

    static func answer(in service: String) async throws {
        let party = Party("Answer", service: service)
        party.onMessage = { [unowned party] data, peer in
            guard data.count < 16 else { return }
            try? party.session.send(data, toPeers: [peer], with: .reliable)
        }
        party.advertiser.startAdvertisingPeer()
        try await onThread { while true { sleep(60) } }
        withExtendedLifetime(party) {}
    }

    init(to process: SecondProcess) async throws {
        let party = Party("Caller", service: process.service)
        self.party = party
        session = party.session
        party.onMessage = { [answers] _, _ in answers.signal() }
        party.browser.startBrowsingForPeers()
        try await onThread {
            party.wait { !party.found.isEmpty }
            party.browser.invitePeer(party.found[0], to: party.session, withContext: nil, timeout: 30)
            party.wait { party.connected == 1 }
        }
        peers = session.connectedPeers
    }

    private func send(_ message: Data) throws {
        try sendWithPatience {
            try session.send(message, toPeers: peers, with: .reliable)
        } unless: {
            ($0 as? MCError)?.code == .unavailable
        }
    }

    func stream(_ count: Int, of size: Int) async throws {
        let message = Data(count: size)
        try await onThread {
            for _ in 0..<count { try send(message) }
            try send(Data("end".utf8))
            answers.wait()
        }
    }

    func roundTrips(_ count: Int) async throws -> [Double] {
        try await onThread {
            try microseconds(count) {
                try send(Data(count: 8))
                answers.wait()
            }
        }
    }
}
