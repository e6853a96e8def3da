import NighCore
import NighIntroductions
import NighLoop
import NighRelays
import SessionArguments

/// Asks a peer that is connected to the wanted one, and finds out why there is no direct way to that: which transports
/// the two have in common, which of its addresses answer, and whether the other peer carries a connection.
///
/// It joins the mesh of that peer for a few seconds, so the programs there see it.
struct ThroughCheck: Sendable {
    let wanted: PeerChoice
    let through: PeerChoice
    /// The session with which it asks.
    let options: SessionOptions
    /// The schemes of the transports that are checked.
    let schemes: [String]
    /// How long each step may take.
    let timeout: Duration

    private static let dialTimeout = Duration.seconds(5)
    private static let pause = Duration.milliseconds(50)
    private static let advice = "start `nigh doctor` on the other devices, too"

    /// Reports the other peer's knowledge of the wanted one.
    func report(to reporter: FindingReporter, _ results: Results) async throws {
        reporter.showProgress("peer.through \(through)")
        var options = options
        options.through = through
        options.relays = .everyone
        let session = try CommandSession(
            options, role: .peer, acceptsAllInvitations: true, isMesh: true, asksForPaths: true,
            results: results)
        session.start(onEvent: {
            if case .invited(let invitation) = $0 { invitation.accept() }
        })
        do {
            try await check(session, reporter)
        } catch {
            await session.close()
            throw error
        }
        await session.close()
    }

    private func check(_ session: CommandSession, _ reporter: FindingReporter) async throws {
        let reached = try await value(of: session) { session -> (id: PeerID, label: String)? in
            session.throughPeer.map { ($0, session.label(of: $0)) }
        }
        guard let (carrier, name) = reached else {
            return reporter.report(
                Finding(
                    "peer.through", "\(through)", .fail,
                    "it could not be asked within \(Moment.Span(timeout))",
                    advice:
                        "check that it runs, and that `nigh doctor --peer \(ShellWord.quoted("\(through)"))` passes"
                ))
        }
        let wanted = wanted
        // Name and path come in one message, if the peer there reports paths.
        let reported = try await value(of: session) { session -> ReportedPeer? in
            guard case .named(let text) = wanted else { return nil }
            return PeerName(text).matching(session.peers(reportedBy: carrier)) {
                ($0.report.advertisement.knownID, $0.report.advertisement.shownName)
            }.first
        }
        guard let reported else {
            return reporter.report(
                Finding(
                    "peer.through", name, .fail, "it tells of no \(wanted)",
                    advice:
                        "connect the two first, both in one mesh, or both letting \(name) carry connections (--relays)"
                ))
        }
        let peer = reported.report.advertisement
        reporter.report(finding(reported, by: name))
        reporter.report(try await common(reported, session, name))
        try await dialAddresses(of: peer.peer, session, reporter, name)
        reporter.report(try await carried(peer.peer, session, name))
    }

    private func finding(_ reported: ReportedPeer, by name: String) -> Finding {
        let peer = reported.report.advertisement
        let label = "\(peer.shownName) (\(peer.knownID.short))"
        return switch reported.path {
        case .over(let scheme, _)?:
            Finding("peer.through", name, .pass, "is connected to \(label) over \(scheme)")
        case .interrupted?:
            Finding(
                "peer.through", name, .warn, "has a conversation with \(label), but no link now",
                advice: "try again when the two are near each other")
        case nil:
            Finding(
                "peer.through", name, .pass, "is connected to \(label); its version does not say over what")
        }
    }

    /// Whether the wanted peer is reached over a transport that this machine has, too.
    private func common(
        _ reported: ReportedPeer, _ session: CommandSession, _ name: String
    ) async throws -> Finding {
        let checked = schemes.joined(separator: " and ")
        guard case .over(let scheme, _)? = reported.path, scheme != RelayAddress.scheme else {
            return Finding(
                "peer.common", "transports", .pass, "\(name) does not say what would be missing here")
        }
        guard schemes.contains(scheme) else {
            return Finding(
                "peer.common", "transports", .fail,
                "\(name) reaches it over \(scheme), which is not checked here; this machine uses \(checked)",
                advice: "add \(scheme) with --transport if this machine has it, or bring both to one network")
        }
        return Finding(
            "peer.common", "transports", .pass, "\(name) reaches it over \(scheme), which is used here, too")
    }

    /// Calls each address at which the wanted peer says that it listens.
    private func dialAddresses(
        of peer: PeerID, _ session: CommandSession, _ reporter: FindingReporter, _ name: String
    ) async throws {
        let addresses = try await value(of: session, within: .seconds(6)) { session -> [TransportAddress]? in
            let direct = session.peers[peer]?.routes.map(\.address).filter {
                $0.scheme != RelayAddress.scheme
            }
            return direct?.isEmpty == false ? direct : nil
        }
        guard let addresses else {
            return reporter.report(
                Finding(
                    "peer.address", "\(wanted)", .fail,
                    "\(name) knows no address of it that \(schemes.joined(separator: " or ")) could call",
                    advice:
                        "the two have no transport in common, or are in no mesh; `nigh peers --map` shows who is"
                ))
        }
        for made in try options.makeTransports().used
        where addresses.contains(where: { $0.scheme == made.scheme }) {
            let runner = try TransportRunner(of: made)
            for address in addresses where address.scheme == made.scheme {
                reporter.showProgress("peer.address \(address)")
                let outcome = await runner.dial(address, timeout: Self.dialTimeout) { $0.close(.now) }
                switch outcome {
                case .success(let span):
                    reporter.report(
                        Finding(
                            "peer.address", "\(address)", .pass, "can be reached", duration: span.duration))
                case .failure(let error):
                    reporter.report(Finding("peer.address", "\(address)", failed: error))
                }
            }
            await runner.end()
        }
    }

    /// Whether the other peer carries connections to the wanted one. Nobody is invited, because that might ask a
    /// person.
    private func carried(_ peer: PeerID, _ session: CommandSession, _ name: String) async throws -> Finding {
        let path = try await value(of: session, within: .seconds(5)) { session -> String? in
            guard let peer = session.peers[peer], peer.state == .connected else { return nil }
            return session.wholePath(to: peer)
        }
        if let path {
            let roundTrip = try? await session.session.ping(peer)
            return Finding("peer.carried", "\(wanted)", .pass, "is connected \(path)", duration: roundTrip)
        }
        let isOffered = await session.onLoop { session in
            session.peers[peer]?.routes.contains { $0.address.scheme == RelayAddress.scheme } == true
        }
        return isOffered
            ? Finding("peer.carried", "\(wanted)", .pass, "\(name) carries connections to it")
            : Finding(
                "peer.carried", "\(wanted)", .fail, "\(name) carries no connections to it",
                advice: "all three have to allow that: --relays everyone, or pair them")
    }

    /// Waits until `read` returns a value on the session's loop; nil if it does not in time.
    private func value<Value: Sendable>(
        of session: CommandSession, within limit: Duration? = nil,
        _ read: @escaping @Sendable (CommandSession) -> Value?
    ) async throws -> Value? {
        let end = ContinuousClock.now + (limit ?? timeout)
        while true {
            try Task.checkCancellation()
            if let value = await session.onLoop(read) { return value }
            guard ContinuousClock.now < end else { return nil }
            try await Task.sleep(for: Self.pause)
        }
    }
}
