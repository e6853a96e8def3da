import Arguments
import Glibc
import NighCore
import NighLoop
import NighSystem
import ProgramSupport
import SessionArguments

/// `nigh complete`: prints the words that a shell offers where a command line needs a peer, a transfer or a guide. The
/// completion scripts run it; people do not see it.
struct CompleteCommand: Subcommand {
    /// The kind of words.
    enum Kind: String, CaseIterable, Sendable {
        /// The names of the known peers, and of those that are nearby now.
        case peers
        /// The IDs of unfinished transfers.
        case transfers
        /// The guides, and the checks of the doctor.
        case guides
    }

    let commandName = "complete"
    let output = OutputOptions()
    let kind: Kind
    let session: SessionOptions

    static let description = Command<any Subcommand>(
        "complete", "Prints words for the completion of command lines",
        Operand("KIND", .choice(of: Kind.self), "the kind of words"), SessionOptions.options,
        isHidden: true
    ) { CompleteCommand(kind: $0, session: $1) }

    /// The command line that prints the words of a kind.
    static func line(for kind: Kind) -> String { "nigh complete \(kind.rawValue)" }

    /// The time for which peers nearby are looked for: a person waits at the shell.
    private static let searchTime = Duration.milliseconds(400)

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        var words: [String]
        switch kind {
        case .peers: words = try await peers(results)
        case .transfers: words = SavedTransfer.all().map(\.id)
        case .guides:
            words = (GuideFolder.ofThisProgram?.guides.map(\.name) ?? []) + CheckCode.all.map(\.code)
        }
        words = Set(words).sorted()
        LineOutput.write(words.map { "\(Line($0).text(colours: false))\n" }.joined(), to: STDOUT_FILENO)
        return .success
    }

    private func peers(_ results: Results) async throws -> [String] {
        let known = (try? TrustStore.standard().peers.map { "\($0.name)" }) ?? []
        var options = session
        options.identity = .delegate
        // Bluetooth takes longer than a person waits for a shell.
        options.transports = options.transports ?? "tcp"
        guard let commandSession = try? CommandSession(options, role: .client, results: results) else {
            return known
        }
        commandSession.start()
        try? await Task.sleep(for: Self.searchTime)
        let seen = await commandSession.onLoop {
            $0.peers.values.filter { !$0.routes.isEmpty }.map { "\($0.name)" }
        }
        await commandSession.close()
        return known + seen
    }
}
