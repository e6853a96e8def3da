import Arguments
import JSONText
import NighLoop
import NighCore

/// `nigh pair`: two people compare digits to make sure that nobody is between their devices.
struct PairCommand: Subcommand {
    let commandName = "pair"
    let output: OutputOptions
    let session: SessionOptions
    /// Nil means that this side waits for a peer that asks.
    let peer: PeerChoice?
    let timeout: Duration

    static let description = Command<any Subcommand>(
        "pair", "Pairs you with another person, so that each trusts the other",
        text: """
            Start it on both devices: without PEER on the one that waits, with PEER on the other. Both show six digits. \
            Compare them, side by side or on the phone. If they are the same, answer y on both: then nobody is in between, \
            and each device remembers the other's identity as paired, for all programs of both of you. If they differ, \
            answer n: then you are not paired.

            PEER may run any program that accepts pairing, not only `nigh pair`: name its service with --service. Answers \
            are read from the standard input.
            """,
        OutputOptions.options, SessionOptions.options,
        Option(
            "wait", .duration(in: .seconds(1) ... .seconds(86_400)), default: .seconds(120),
            "the time limit for the other peer, and for both people's answers"
        ).formerly("timeout"),
        Operand(
            optional: "PEER", .peer,
            "the peer to pair with: a name, the beginning of a PeerID, or an address"),
        examples: [
            Example("", "waits for a peer that wants to pair"), Example("Puma", "asks Puma to pair"),
        ]
    ) { PairCommand(output: $0, session: $1, peer: $3, timeout: $2) }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        if case .ephemeral? = session.identity {
            throw UsageError("a temporary identity cannot be paired: leave --identity ephemeral out")
        }
        if session.security == .none {
            throw UsageError("pairing needs encryption: leave --security none out")
        }
        let commandSession = try CommandSession(session, role: .peer, accepting: [.pair], results: results) {
            $0.acceptsPairing = true
        }
        let pairing = PairingDialog(commandSession, results)
        do {
            let partner = try await pairing.run(with: peer, within: timeout, stopRequest)
            let problem = Self.saveError(commandSession.session.trust)
            await commandSession.close()
            if let problem { throw problem }
            results.summarize(
                [.init("paired", true)] + PeerReport.members(of: partner),
                lines: [
                    Line("Paired", .good) + " with " + Line(partner.name.description, .strong)
                        + " (\(partner.id.description))."
                ])
            return .success
        } catch {
            await commandSession.close()
            throw error
        }
    }

    /// Saves the trust store and returns the error if that fails. The session saves it by itself a little later, but
    /// this command exists for it, so a failure must be reported.
    private static func saveError(_ trust: TrustStore) -> NighError? {
        do throws(NighError) {
            try trust.save()
            return nil
        } catch {
            return error
        }
    }
}
