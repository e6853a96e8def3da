import JSONText
import NighLoop
import NighCore

/// A path to a peer that was found to work.
struct PeerPath: Sendable {
    let scheme: String
    let address: TransportAddress
    let peer: PeerID
    let name: DisplayName
    /// The shortest round trip.
    let roundTrip: Duration

    var json: JSON {
        [
            "transport": .text(scheme), "address": .text("\(address)"), "peer": .text("\(peer)"),
            "name": .text("\(name)"), "round_trip_ms": .number(roundTrip.milliseconds),
        ]
    }
}

/// Checks the path to one other device, step by step: found, its addresses, a connection, TLS, hello, version, ping.
struct PeerExamination: Sendable {
    let choice: PeerChoice
    let service: ServiceName
    let security: SessionSecurity
    /// How long the peer is looked for.
    let patience: Duration
    /// The transports that can be tried.
    let trials: [TransportTrial]

    private static let dialTimeout = Duration.seconds(5)
    private static let pause = Duration.milliseconds(50)
    private static let subject = "peer"

    /// An address to try.
    private struct Place: Sendable {
        let trial: TransportTrial
        let address: TransportAddress
        let expected: PeerID?
    }

    /// Reports how far the path works. Returns it if it works to the end.
    func tell(_ findings: Findings) async throws -> PeerPath? {
        let places = try await places(findings)
        guard !places.isEmpty else { return nil }
        for place in places { findings.lookAt("peer.address \(place.address)") }
        let opened = Opened(plan)
        let outcomes = await dial(places, opened)
        try Task.checkCancellation()
        let isAnyOpen = outcomes.contains { (try? $0.get()) != nil }
        for (place, outcome) in zip(places, outcomes) {
            let subject = "\(place.address)"
            switch outcome {
            case .success(let span):
                findings.tell(Finding("peer.address", subject, .pass, "opens", duration: span.duration))
            case .failure(let error):
                findings.tell(Finding("peer.address", subject, failed: error, as: isAnyOpen ? .warn : .fail))
            }
        }
        guard let first = opened.first else {
            findings.tell(
                Finding(
                    "peer.connect", Self.subject, .fail, "none of \(places.count) addresses opens",
                    advice: "do what the first of them says"))
            return nil
        }
        let place = places[first.index]
        findings.tell(
            Finding("peer.connect", Self.subject, .pass, "\(place.address) was the first to open"))
        return try await LinkExamination(events: first.events, place.trial.transport.scheme, place.address)
            .tell(findings)
    }

    private var plan: LinkProbe.Plan {
        var plan = LinkProbe.Plan(
            identity: .ephemeral(), service: service, name: DoctorErrand.name)
        plan.isEncrypted = security != .none
        return plan
    }

    // MARK: Finding the addresses

    private func places(_ findings: Findings) async throws -> [Place] {
        switch choice {
        case .address(let address):
            guard let trial = trials.first(where: { $0.transport.scheme == address.scheme }) else {
                findings.tell(
                    Finding(
                        "peer.resolve", "\(address)", .fail, "no transport looked at knows such addresses",
                        advice: "name its transport: --transport \(address.scheme)"))
                return []
            }
            return await places(behind: address, expected: nil, by: trial, findings)
        case .named(let text):
            guard let sightings = try await find(text, findings) else { return [] }
            var places: [Place] = []
            for (trial, sighting) in sightings {
                places += await self.places(
                    behind: sighting.address, expected: sighting.advertisement.peer, by: trial, findings)
            }
            return places
        }
    }

    private func places(
        behind address: TransportAddress, expected: PeerID?, by trial: TransportTrial, _ findings: Findings
    ) async -> [Place] {
        findings.lookAt("peer.resolve \(address)")
        do {
            let all = try await trial.places(behind: address, within: Self.dialTimeout)
            guard !all.isEmpty else {
                throw NighError(
                    .connecting, .unreachable, advice: "it is not seen on the network any more: try again")
            }
            let list = all.map(\.value).joined(separator: ", ")
            findings.tell(Finding("peer.resolve", "\(address)", .pass, list))
            return all.map { Place(trial: trial, address: $0, expected: expected) }
        } catch let error as NighError {
            findings.tell(Finding("peer.resolve", "\(address)", failed: error))
        } catch {
            findings.tell(Finding("peer.resolve", "\(address)", .fail, "\(error)"))
        }
        return []
    }

    /// Waits for the peer with that name, or with a PeerID that begins with `text`. Returns its sightings over each
    /// transport; nil if there is no such peer, or several.
    private func find(_ text: String, _ findings: Findings) async throws -> [(TransportTrial, Sighting)]? {
        findings.lookAt("peer.found \(text)")
        let start = ContinuousClock.now
        for trial in trials { trial.browse(service) }
        var seen: [(TransportTrial, Sighting)] = []
        while true {
            try Task.checkCancellation()
            seen = []
            for trial in trials { seen += await trial.seen().map { (trial, $0) } }
            let meant = seen.filter { choice.means($0.1.advertisement) }
            let peers = Set(meant.map(\.1.advertisement.peer))
            let elapsed = ContinuousClock.now - start
            if peers.count > 1 {
                let names = Set(meant.map { "\($0.1.advertisement.name) (\($0.1.advertisement.peer.short))" })
                findings.tell(
                    Finding(
                        "peer.found", text, .fail,
                        "several are meant: \(names.sorted().joined(separator: ", "))",
                        advice: "name one by how its PeerID begins"))
                return nil
            }
            if let peer = peers.first {
                let ways = meant.map(\.0.transport.scheme).joined(separator: " and ")
                findings.tell(
                    Finding("peer.found", text, .pass, "\(peer.short), over \(ways)", duration: elapsed))
                return meant
            }
            if elapsed > patience { break }
            try await Task.sleep(for: Self.pause)
        }
        let others = Set(seen.map { "\($0.1.advertisement.name) (\($0.1.advertisement.peer.short))" })
            .sorted()
        let words = others.isEmpty ? "nobody is seen" : "seen are only \(others.joined(separator: ", "))"
        findings.tell(
            Finding(
                "peer.found", text, .fail, "\(words), of the service \(service)",
                advice:
                    "does its program run, with the service \(service), on the same network? `nigh doctor` there tells "
                    + "more, and --peer with its address goes on without finding"))
        return nil
    }

    // MARK: Connecting

    /// Dials all addresses at once, and probes the link over the first pipe that opens.
    private func dial(_ places: [Place], _ opened: Opened) async -> [Result<Moment.Span, NighError>] {
        let outcomes = await withTaskGroup { group in
            for (index, place) in places.enumerated() {
                group.addTask {
                    let trial = place.trial
                    let outcome = await trial.dial(place.address, timeout: Self.dialTimeout) { pipe in
                        opened.take(
                            pipe, index, over: trial.transport.scheme, expected: place.expected,
                            on: trial.loop)
                    }
                    return (index, outcome)
                }
            }
            return await group.reduce(into: [Int: Result<Moment.Span, NighError>]()) { $0[$1.0] = $1.1 }
        }
        return places.indices.map { outcomes[$0] ?? .failure(NighError(.connecting, .cancelled)) }
    }

    /// The first pipe that opened, and the probe that runs over it. Pipes open on several loops.
    ///
    /// `@unchecked Sendable`: the lock guards all mutable state.
    private final class Opened: @unchecked Sendable {
        private let plan: LinkProbe.Plan
        private let lock = Lock()
        private var taken: (index: Int, events: AsyncStream<LinkProbe.Event>)?

        init(_ plan: LinkProbe.Plan) { self.plan = plan }

        var first: (index: Int, events: AsyncStream<LinkProbe.Event>)? { lock.withLock { taken } }

        func take(
            _ pipe: any Pipe, _ index: Int, over scheme: String, expected: PeerID?, on loop: UVEventLoop
        ) {
            let (stream, continuation) = AsyncStream.makeStream(of: LinkProbe.Event.self)
            let isFirst = lock.withLock {
                guard taken == nil else { return false }
                taken = (index, stream)
                return true
            }
            guard isFirst else { return pipe.close(.now) }
            var plan = plan
            plan.expected = expected
            do throws(NighError) {
                try LinkProbe(pipe, over: scheme, plan, on: loop) { event in
                    continuation.yield(event)
                    if case .ended = event { continuation.finish() }
                }
            } catch {
                pipe.close(.now)
                continuation.yield(.ended(error))
                continuation.finish()
            }
        }
    }
}

extension PeerChoice {
    /// Returns whether the choice names the peer of this advertisement.
    fileprivate func means(_ advertisement: Advertisement) -> Bool {
        guard case .named(let text) = self else { return false }
        return advertisement.name.description == text
            || text.utf8.count >= 4 && advertisement.peer.description.hasPrefix(text)
    }
}
