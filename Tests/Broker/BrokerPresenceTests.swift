import NighCore
import NighTestKit
import Testing

@testable import NighBroker

/// How many announcements a realm carries, and how soon everybody knows of a change.
@Suite struct BrokerPresenceTests {
    private let loop = VirtualEventLoop(workLimit: 100_000_000)

    /// A transport that advertises and browses, and the peers that it sees.
    private final class Member: TransportEventHandler, @unchecked Sendable {  // Confined to the one loop.
        let transport: BrokerTransport
        let advertisement: Advertisement
        var seen: Set<TransportAddress> = []

        init(_ number: Int, on broker: SimulatedBroker) {
            transport = broker.makeTransport()
            let identity = Identity.ephemeral(seed: UInt64(number + 1))
            transport.prepare(for: identity.peerID, of: identity.peerID)
            advertisement = Advertisement(
                service: "crowd", peer: identity.peerID, name: DisplayName(fitting: "Member \(number)"))
            transport.start(on: broker.loop, events: self)
            transport.browse("crowd")
            transport.advertise(advertisement)
        }

        func handle(_ event: TransportEvent, by transport: any Transport) {
            switch event {
            case .routeFound(let sighting): seen.insert(sighting.address)
            case .routeLost(let address): seen.remove(address)
            case .pipeOpened(let pipe, _): pipe.close(.now)
            default: break
            }
        }
    }

    @Test func `a crowd knows of who comes and goes within 5 s, with at most 50 announcements a second`()
        throws
    {
        let broker = SimulatedBroker(on: loop)
        let count = 100
        var members = (0..<count).map { Member($0, on: broker) }
        let all = { members.allSatisfy { $0.seen.count == count - 1 } }
        #expect(try loop.run(until: all, within: .seconds(5)))
        // The beginning, when all come at once, is over.
        try loop.run(for: .seconds(60))
        let before = broker.published["here"] ?? 0
        try loop.run(for: .seconds(120))
        let perSecond = Double((broker.published["here"] ?? 0) - before) / 120
        #expect(perSecond <= Double(BrokerPresence.announcementsPerSecond) && perSecond > 1)
        #expect(members.allSatisfy { $0.seen.count == count - 1 })
        members.append(Member(count, on: broker))
        let known = { members.allSatisfy { $0.seen.count == count } }
        #expect(try loop.run(until: known, within: .seconds(5)))
        members.removeLast().transport.shutdown()
        #expect(try loop.run(until: all, within: .seconds(5)))
        for member in members { member.transport.shutdown() }
    }

    /// The announcements that so many sessions make in a second, once each has heard how many there are. A session
    /// hears all others, so the sum of what they say is what each of them counts.
    private func announcementsPerSecond(of population: Int) -> Double {
        var now = Moment(nanoseconds: 0)
        var presence = BrokerPresence(scheme: "sim", seed: 1, at: now)
        let identity = Identity.ephemeral(seed: 1)
        let advertisement = Advertisement(
            service: "crowd", peer: identity.peerID, name: DisplayName(fitting: "One"))
        presence.beginAdvertising(at: now)
        var pause = 30.0
        for _ in 0..<8 {
            // The others announce themselves evenly, with the pause that this session has come to.
            let end = now + .seconds(60)
            let perSecond = Double(population) / pause
            let step = Int64(1_000_000_000 / perSecond)
            var number = 0
            while now < end {
                now = now + Moment.Span(nanoseconds: step)
                let address = BrokerAddress(
                    identity: "i\(number % population)", peer: "p", service: "crowd")
                number += 1
                _ = presence.heard(
                    advertisement, from: address, again: .seconds(Int64(pause.rounded(.up))), at: now)
                for case .announce(let again) in presence.due(at: now).actions {
                    pause = Double(again.components.seconds)
                }
            }
        }
        return Double(population) / pause
    }

    @Test(arguments: [100, 1_000, 10_000, 100_000]) func `the larger the crowd, the longer the pauses`(
        population: Int
    ) {
        let rate = announcementsPerSecond(of: population)
        // Pauses vary by a quarter.
        #expect(rate <= Double(BrokerPresence.announcementsPerSecond) * 1.4, "\(rate) a second")
    }

    @Test func `a storm of questions is answered at a bounded rate`() {
        let now = Moment(nanoseconds: 0)
        var presence = BrokerPresence(scheme: "sim", seed: 1, at: now)
        presence.beginAdvertising(at: now)
        for number in 0..<10_000 {
            presence.asked(by: BrokerReplyAddress(identity: "i", nonce: "n\(number)"), at: now)
        }
        let answers = presence.due(at: now + .seconds(1)).actions.filter {
            if case .answer = $0 { true } else { false }
        }
        #expect(answers.count == BrokerPresence.answersPerSecond)
    }

    @Test func `a session that was not found is asked for a minute whether it is back, until it is`() {
        let start = Moment(nanoseconds: 0)
        var presence = BrokerPresence(scheme: "sim", seed: 1, at: start)
        let address = BrokerAddress(identity: "i", peer: "p", service: "crowd")
        let peer = Identity.ephemeral(seed: 1).peerID
        let advertisement = Advertisement(service: "crowd", peer: peer, name: DisplayName(fitting: "One"))
        func asked(from first: Moment, for seconds: Int64) -> [Int64] {
            (0...seconds).filter { second in
                presence.due(at: first + .seconds(second)).actions.contains(.ask(address))
            }
        }
        #expect(presence.missed(address, at: start) == nil, "it was not known")
        #expect(asked(from: start, for: 90) == [])
        for _ in 0..<2 {
            _ = presence.heard(advertisement, from: address, again: .seconds(30), at: start)
            #expect(presence.missed(address, at: start) != nil)
        }
        #expect(
            asked(from: start, for: 90) == [1, 3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47, 51, 55, 59])
        _ = presence.heard(advertisement, from: address, again: .seconds(30), at: start)
        _ = presence.missed(address, at: start)
        #expect(asked(from: start, for: 2) == [1])
        _ = presence.heard(advertisement, from: address, again: .seconds(30), at: start)
        #expect(asked(from: start, for: 20) == [])
    }
}
