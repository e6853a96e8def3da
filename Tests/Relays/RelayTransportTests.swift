import NighCore
import NighTestKit
import Testing

@testable import NighRelays

/// A transport without a session, under the checks of its contract, and what it has reported.
private final class ReportedRoutes: TransportEvents {
    enum Report: Equatable {
        case found(Sighting)
        case changed(Sighting)
        case lost(TransportAddress)
    }

    let loop = VirtualEventLoop()
    let transport = RelayTransport()
    let checked: CheckedTransport
    private var reports: [Report] = []

    init() {
        checked = CheckedTransport(transport)
        checked.start(on: loop, events: self)
    }

    /// What was reported since the last call.
    func take() throws -> [Report] {
        try loop.runQueued()
        defer { reports = [] }
        return reports
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) { reports.append(.found(sighting)) }
    func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        reports.append(.changed(sighting))
    }
    func routeLost(_ address: TransportAddress, by transport: any Transport) {
        reports.append(.lost(address))
    }
    func addressKnown(_ address: TransportAddress, by transport: any Transport) {}
    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {}
    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {}
    func advertised(as name: DisplayName, by transport: any Transport) {}
    func advertisingFailed(_ error: NighError, by transport: any Transport) {}
    func browsingFailed(_ error: NighError, by transport: any Transport) {}
    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {}
    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        Issue.record("\(condition)")
    }
}

@Suite("The transport of relayed pipes") struct RelayTransportTests {
    private let ids = (1...4).map { Identity.ephemeral(seed: $0).peerID }

    private func advertisement(_ index: Int, _ name: String = "Puma", service: ServiceName = "relays")
        -> Advertisement
    {
        Advertisement(service: service, peer: ids[index], name: DisplayName(fitting: name))
    }

    private func sighting(_ advertisement: Advertisement, through index: Int) -> Sighting {
        Sighting(
            address: RelayAddress(carrier: ids[index], peer: advertisement.peer).transportAddress,
            advertisement: advertisement)
    }

    @Test("reports who can be reached only while it browses, and remembers them meanwhile")
    func browsing() throws {
        let routes = ReportedRoutes()
        let transport = routes.transport
        transport.reached(advertisement(0), through: ids[3])
        transport.reached(advertisement(1), through: ids[3])
        transport.reached(advertisement(2, service: "other"), through: ids[3])
        #expect(try routes.take() == [])
        routes.checked.browse("relays")
        let first = try routes.take()
        #expect(first.count == 2)
        for index in 0..<2 { #expect(first.contains(.found(sighting(advertisement(index), through: 3)))) }

        transport.reached(advertisement(0, "Lynx"), through: ids[3])
        transport.reached(advertisement(1), through: ids[3])
        transport.reached(advertisement(0), through: ids[2])
        let second = try routes.take()
        #expect(second.count == 2)
        #expect(second.contains(.changed(sighting(advertisement(0, "Lynx"), through: 3))))
        #expect(second.contains(.found(sighting(advertisement(0), through: 2))))

        transport.lost(ids[0], through: ids[2])
        transport.lost(ids[0], through: ids[2])
        #expect(try routes.take() == [.lost(sighting(advertisement(0), through: 2).address)])

        routes.checked.browse("relays")
        let third = try routes.take()
        #expect(third.count == 2 && third.contains(.found(sighting(advertisement(0, "Lynx"), through: 3))))

        transport.lostAll(through: ids[3])
        #expect(try routes.take().count == 2)
        transport.reached(advertisement(0), through: ids[3])
        // The search ends before the report comes.
        routes.checked.stopBrowsing()
        #expect(try routes.take() == [])
        routes.checked.shutdown()
        transport.reached(advertisement(1), through: ids[3])
        #expect(try routes.take() == [])
    }

    @Test("keeps a bounded number of addresses, and none of a peer through itself")
    func bounds() throws {
        let routes = ReportedRoutes()
        routes.transport.reached(advertisement(0), through: ids[0])
        for seed in 0..<UInt64(RelayTransport.addressLimit + 10) {
            var bytes = [UInt8](repeating: 0, count: 32)
            for index in 0..<8 { bytes[index] = UInt8(truncatingIfNeeded: seed >> (8 * UInt64(index))) }
            let peer = try #require(PeerID(bytes: bytes))
            routes.transport.reached(
                Advertisement(service: "relays", peer: peer, name: DisplayName(fitting: "m")), through: ids[3]
            )
        }
        routes.checked.browse("relays")
        #expect(try routes.take().count == RelayTransport.addressLimit)
    }

    @Test("says how many peers it reaches through whom, and how many pipes are open")
    func diagnosis() throws {
        let network = RelayNetwork()
        let (a, _, _) = try network.makeRelayedPair()
        let findings = a.relays.transport.diagnose().map { "\($0.subject): \($0.finding)" }
        #expect(findings == ["carriers: 1 peer reachable through 1 carrier", "pipes: 1 open"])
        #expect(RelayTransport().diagnose().map(\.verdict) == [.fail])
        try network.close()
    }

    @Test("lets a dial end in time, and ends what the carrier began for it")
    func timeout() throws {
        let network = RelayNetwork()
        let (a, b, c) = try network.makeChain { $0.timings.loseAfter = .seconds(600) }
        c.faults[1]?.stall(.all, .incoming)
        let failure = try #require(try network.invite(c, from: a, within: .seconds(5)))
        #expect("\(failure)".contains("no answer in time"), "\(failure)")
        try network.run(.seconds(1))
        #expect(a.session.inspection(of: b.id)?.streams == 0)
        c.faults[1]?.release()
        try network.run(.seconds(1))
        #expect(b.relays.carrier.counts.pipes == 0 && !c.isConnected(to: a))
        #expect(try network.invite(c, from: a) == nil)
        try network.close()
    }

    @Test("gives up a dial that is cancelled, wherever its stream is")
    func cancelling() throws {
        for turns in 0..<30 {
            let network = RelayNetwork()
            let (a, b, c) = try network.makeChain()
            try network.loop.runQueued()
            a.session.invite(c.id) { _ in }
            for _ in 0..<turns { try network.loop.runTurn() }
            a.session.cancelInvitation(of: c.id)
            try network.run(.seconds(2))
            for member in [a, b, c] {
                let peers = member.session.inspection.peers
                #expect(peers.allSatisfy { $0.streams == 0 } || a.isConnected(to: c), "after \(turns) turns")
            }
            try network.close()
        }
    }
}
