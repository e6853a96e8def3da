import Arguments
import JSONText
import NighLoop
import NighCore

/// `nigh pair`: two people compare digits to make sure that nobody is between their devices.
struct PairErrand: Errand {
    let command = "pair"
    let output: OutputOptions
    let session: SessionOptions
    /// Nil means that this side waits for a peer that asks.
    let peer: PeerChoice?
    let patience: Duration

    static let description = Command<any Errand>(
        "pair", "Pairs this device with another, so that each knows the other for sure",
        text: """
            Start it on both devices: without PEER on the one that waits, with PEER on the other. Both show six digits. Compare them, by \
            looking or on the phone, and answer y on both if they are the same: then nobody is in between, and each device remembers the \
            other's key as paired, for all your programs. Answer n if they differ; nobody is paired then.

            PEER may be in any program that lets itself be paired, not just in `nigh pair`: say which service it offers. Answers are \
            read from the standard input.
            """,
        OutputOptions.options, SessionOptions.options,
        Option(
            "timeout", .duration(in: .seconds(1) ... .seconds(86_400)), default: .seconds(120),
            "for how long somebody is waited for"),
        Operand(optional: "PEER", .peer, "with whom: a name, how a PeerID begins, or an address"),
        examples: [
            Example("", "waits for somebody who wants to be paired"), Example("Puma", "asks Puma"),
        ]
    ) { PairErrand(output: $0, session: $1, peer: $3, patience: $2) }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        if case .ephemeral? = session.identity {
            throw Misuse("who is somebody new each time cannot be paired: leave --identity ephemeral out")
        }
        if session.security == .none { throw Misuse("without encryption nobody can be paired") }
        let mine = try CommandSession(session, role: .peer, taking: [.pair], results: results) {
            $0.acceptsPairing = true
        }
        guard mine.isOwnIdentity else {
            await mine.close()
            throw NighError(
                .pairing, .sameIdentity, advice: "end it, or pair there, and try again")
        }
        let pairing = PairingTalk(mine, results)
        do {
            let partner = try await pairing.run(with: peer, within: patience, interruption)
            let problem = Self.savingProblem(mine.session.trust)
            await mine.close()
            if let problem { throw problem }
            results.sumUp(
                [.init("paired", true)] + PeerTelling.members(of: partner),
                words: [
                    Line("Paired", .good) + " with " + Line(partner.name.description, .strong)
                        + " (\(partner.id.description))."
                ])
            return .well
        } catch {
            await mine.close()
            throw error
        }
    }

    /// Saves the trust store and returns the error if that fails. The session saves it by itself a little later, but
    /// this command exists for it, so a failure must be reported.
    private static func savingProblem(_ trust: TrustStore) -> NighError? {
        do throws(NighError) {
            try trust.save()
            return nil
        } catch {
            return error
        }
    }
}
