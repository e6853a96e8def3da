import JSONText
import NighLoop
import NighCore
import SessionArguments

/// A path to a peer that was found to work.
struct PeerPath: Sendable {
    let scheme: String
    let address: TransportAddress
    let peer: PeerID
    /// The identity that the peer acts for.
    let identity: PeerID
    /// The identity that it was announced to act for; nil if that is the one that it has proven.
    var announcedFalsely: PeerID?
    let name: DisplayName
    /// The shortest round trip.
    let roundTrip: Duration

    var json: JSON {
        [
            "transport": .text(scheme), "address": .text("\(address)"), "peer": .text("\(peer)"),
            "identity": .text("\(identity)"), "name": .text("\(name)"),
            "round_trip_ms": .number(roundTrip.milliseconds),
        ]
    }
}

/// Checks the path to one other device, step by step: found, its addresses, a connection, TLS, hello, version, ping.
struct PeerCheck: Sendable {
    let choice: PeerChoice
    let service: ServiceName
    let security: SessionSecurity
    /// How long the peer is looked for.
    let timeout: Duration
    /// The transports that can be tried.
    let runners: [TransportRunner]

    private static let dialTimeout = Duration.seconds(5)
    private static let pause = Duration.milliseconds(50)
    private static let subject = "peer"

    /// An address to try.
    private struct Candidate: Sendable {
        let runner: TransportRunner
        let address: TransportAddress
        /// The advertisement of the peer there; nil for an address that the user has named.
        let announced: Advertisement?
        var expected: PeerID? { announced?.peer }
    }

    /// Reports how far the path works. Returns it if it works to the end.
    func report(to reporter: FindingReporter) async throws -> PeerPath? {
        let candidates = try await candidates(reporter)
        guard !candidates.isEmpty else { return nil }
        for candidate in candidates { reporter.showProgress("peer.address \(candidate.address)") }
        let firstPipe = FirstPipe(plan)
        let outcomes = await dial(candidates, firstPipe)
        try Task.checkCancellation()
        let isAnyOpen = outcomes.contains { (try? $0.get()) != nil }
        for (candidate, outcome) in zip(candidates, outcomes) {
            let subject = "\(candidate.address)"
            switch outcome {
            case .success(let span):
                reporter.report(
                    Finding("peer.address", subject, .pass, "can be reached", duration: span.duration))
            case .failure(let error):
                reporter.report(
                    Finding("peer.address", subject, failed: error, as: isAnyOpen ? .warn : .fail))
            }
        }
        guard let first = firstPipe.opening else {
            reporter.report(
                Finding(
                    "peer.connect", Self.subject, .fail,
                    "none of \(candidates.count) addresses can be reached",
                    advice: "follow the advice for the first one"))
            return nil
        }
        let candidate = candidates[first.index]
        reporter.report(
            Finding("peer.connect", Self.subject, .pass, "\(candidate.address) was reached first"))
        var path = try await LinkCheck(
            events: first.events, pings: plan.pings, candidate.runner.transport.scheme, candidate.address
        ).report(to: reporter)
        if let identity = candidate.announced?.identity, identity != path?.identity {
            path?.announcedFalsely = identity
        }
        return path
    }

    private var plan: LinkProbe.Plan {
        var plan = LinkProbe.Plan(
            identity: .ephemeral(), service: service, name: DoctorCommand.name)
        plan.isEncrypted = security != .none
        return plan
    }

    // MARK: Finding the addresses

    private func candidates(_ reporter: FindingReporter) async throws -> [Candidate] {
        switch choice {
        case .address(let address):
            guard let runner = runners.first(where: { $0.transport.scheme == address.scheme }) else {
                reporter.report(
                    Finding(
                        "peer.resolve", "\(address)", .fail,
                        "none of the checked transports has such addresses",
                        advice: "name its transport: --transport \(address.scheme)"))
                return []
            }
            return await candidates(behind: address, announced: nil, by: runner, reporter)
        case .code: return []
        case .named(let text):
            guard let sightings = try await find(text, reporter) else { return [] }
            var candidates: [Candidate] = []
            for (runner, sighting) in sightings {
                candidates += await self.candidates(
                    behind: sighting.address, announced: sighting.advertisement, by: runner, reporter)
            }
            return candidates
        }
    }

    private func candidates(
        behind address: TransportAddress, announced: Advertisement?, by runner: TransportRunner,
        _ reporter: FindingReporter
    ) async -> [Candidate] {
        reporter.showProgress("peer.resolve \(address)")
        do {
            let all = try await runner.places(behind: address, within: Self.dialTimeout)
            guard !all.isEmpty else {
                throw NighError(
                    .connecting, .unreachable, advice: "it is no longer visible on the network: try again")
            }
            let list = all.map(\.value).joined(separator: ", ")
            reporter.report(Finding("peer.resolve", "\(address)", .pass, list))
            return all.map { Candidate(runner: runner, address: $0, announced: announced) }
        } catch let error as NighError {
            reporter.report(Finding("peer.resolve", "\(address)", failed: error))
        } catch {
            reporter.report(Finding("peer.resolve", "\(address)", .fail, "\(error)"))
        }
        return []
    }

    /// Returns the sightings of the peer that the name stands for. Of several programs of one person it is one, the one
    /// with the identity's own key if it is there.
    private static func meant(
        by name: PeerName, _ seen: [(TransportRunner, Sighting)]
    ) -> [(TransportRunner, Sighting)] {
        let all = name.matching(seen) { ($0.1.advertisement.knownID, $0.1.advertisement.shownName) }
        let identities = Set(all.map(\.1.advertisement.knownID))
        guard identities.count == 1, let identity = identities.first else { return all }
        let peers = Set(all.map(\.1.advertisement.peer))
        let chosen = peers.contains(identity) ? identity : peers.min()
        return all.filter { $0.1.advertisement.peer == chosen }
    }

    /// Waits for the peer with that name, or with a PeerID that begins with `text`. Returns its sightings over each
    /// transport; nil if there is no such peer, or several.
    private func find(_ text: String, _ reporter: FindingReporter) async throws -> [(
        TransportRunner, Sighting
    )]? {
        reporter.showProgress("peer.found \(text)")
        let start = ContinuousClock.now
        for runner in runners { runner.browse(service) }
        var seen: [(TransportRunner, Sighting)] = []
        while true {
            try Task.checkCancellation()
            seen = []
            for runner in runners { seen += await runner.seen().map { (runner, $0) } }
            let meant = Self.meant(by: PeerName(text), seen)
            let peers = Set(meant.map(\.1.advertisement.peer))
            let elapsed = ContinuousClock.now - start
            if peers.count > 1 {
                let names = Set(
                    meant.map { "\($0.1.advertisement.shownName) (\($0.1.advertisement.knownID.short))" })
                reporter.report(
                    Finding(
                        "peer.found", text, .fail,
                        "several peers match: \(names.sorted().joined(separator: ", "))",
                        advice: "choose one by the beginning of its PeerID"))
                return nil
            }
            if let peer = peers.first {
                let schemes = meant.map(\.0.transport.scheme).joined(separator: " and ")
                reporter.report(
                    Finding("peer.found", text, .pass, "\(peer.short), over \(schemes)", duration: elapsed))
                return meant
            }
            if elapsed > timeout { break }
            try await Task.sleep(for: Self.pause)
        }
        let others = Set(seen.map { "\($0.1.advertisement.shownName) (\($0.1.advertisement.knownID.short))" })
            .sorted()
        let finding =
            others.isEmpty
            ? "no peer with the service \(service) is visible"
            : "only these peers with the service \(service) are visible: \(others.joined(separator: ", "))"
        let suggestion = PeerName(text).suggestion(among: seen.map(\.1.advertisement.shownName))
            .map { "did you mean \($0)? Otherwise " }
        reporter.report(
            Finding(
                "peer.found", text, .fail, finding,
                advice: (suggestion ?? "")
                    + "check that its program runs, with the service \(service), on the same network; run `nigh doctor` "
                    + "there, or use --peer with its address, or --through with a peer that is connected to it"
            ))
        return nil
    }

    // MARK: Connecting

    /// Dials all addresses at once, and probes the link over the first pipe that opens.
    private func dial(
        _ candidates: [Candidate], _ firstPipe: FirstPipe
    ) async -> [Result<Moment.Span, NighError>] {
        let outcomes = await withTaskGroup { group in
            for (index, candidate) in candidates.enumerated() {
                group.addTask {
                    let runner = candidate.runner
                    let outcome = await runner.dial(candidate.address, timeout: Self.dialTimeout) { pipe in
                        firstPipe.opened(
                            pipe, index, over: runner.transport, expected: candidate.expected,
                            on: runner.loop)
                    }
                    return (index, outcome)
                }
            }
            return await group.reduce(into: [Int: Result<Moment.Span, NighError>]()) { $0[$1.0] = $1.1 }
        }
        return candidates.indices.map { outcomes[$0] ?? .failure(NighError(.connecting, .cancelled)) }
    }

    /// The first pipe that opened, and the probe that runs over it. Pipes open on several loops.
    ///
    /// `@unchecked Sendable`: the lock guards all mutable state.
    private final class FirstPipe: @unchecked Sendable {
        private let plan: LinkProbe.Plan
        private let lock = Lock()
        private var first: (index: Int, events: AsyncStream<LinkProbe.Event>)?

        init(_ plan: LinkProbe.Plan) { self.plan = plan }

        var opening: (index: Int, events: AsyncStream<LinkProbe.Event>)? { lock.withLock { first } }

        func opened(
            _ pipe: any Pipe, _ index: Int, over transport: any Transport, expected: PeerID?,
            on loop: UVEventLoop
        ) {
            let (stream, continuation) = AsyncStream.makeStream(of: LinkProbe.Event.self)
            let isFirst = lock.withLock {
                guard first == nil else { return false }
                first = (index, stream)
                return true
            }
            guard isFirst else { return pipe.close(.now) }
            var plan = plan
            plan.expected = expected
            plan.triesPackets = transport.capabilities.datagrams
            do throws(NighError) {
                try LinkProbe(pipe, over: transport.scheme, plan, on: loop) { event in
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
