import Arguments
import JSONText
import NighCore
import SessionArguments
import Terminal

/// `nigh identity`: shows or changes the user's identity on this device.
struct IdentityErrand: Errand {
    /// What the command does with the identity.
    enum Deed: Sendable {
        case show
        case rename(DisplayName)
        case new(isAgreed: Bool)
        case export
    }

    let command = "identity"
    let output: OutputOptions
    let deed: Deed
    /// Nil means the user's own identity file.
    let file: IdentityFile?

    static let description = Command<any Errand>(
        "identity", "Shows who you are to others, or changes it",
        text: """
            Your identity is a key pair that this user's programs share; the hash of its public key is your PeerID, by which others know \
            you again. The private key never leaves its file. A name is a label that may change; the PeerID stays.
            """,
        OutputOptions.options, fileOption,
        examples: [
            Example("", "your PeerID, your name, and where they are kept"),
            Example("rename Puma", "be called Puma from now on"),
            Example("export", "your public key, for others"),
        ],
        subcommands: [
            Command(
                "rename", "Chooses the name that others see",
                text: "Programs that run now keep the one they have.",
                OutputOptions.options,
                Operand("NAME", .displayName, "the name from now on"),
                examples: [Example("Puma", "be called Puma")]
            ) { IdentityErrand(output: $0, deed: .rename($1), file: nil) },
            Command(
                "new", "Becomes a new peer, whom nobody knows yet",
                text: """
                    The old identity is kept beside the new one, under another name. Everybody you were paired with has to be paired with anew.
                    """,
                OutputOptions.options, fileOption,
                Option(flag: "yes", short: "y", "does not ask whether you are sure"),
                examples: [Example("--yes", "without being asked")]
            ) { IdentityErrand(output: $0, deed: .new(isAgreed: $2), file: $1) },
            Command(
                "export", "Prints your public key, for others",
                text: "As PEM, which other programs read; what it says is no secret.",
                OutputOptions.options, fileOption,
                examples: [Example("", "the key in PEM"), Example("--json", "with the PeerID that it makes")]
            ) { IdentityErrand(output: $0, deed: .export, file: $1) },
        ]
    ) { IdentityErrand(output: $0, deed: .show, file: $1) }

    private static let fileOption = Option(
        "identity", Notation<IdentityFile>("FILE", candidates: .files) { IdentityFile(path: $0) },
        "another identity file than your own")

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        let file = try file ?? IdentityFile()
        switch deed {
        case .show: try show(file, results)
        case .rename(let name):
            try NameFile().keep(name)
            results.sumUp(
                [.init("name", .text(name.description))], words: ["You are \(Line(name.description)) now."])
        case .new(let isAgreed): return try renew(file, isAgreed, results)
        case .export:
            let identity = try file.load(createIfMissing: false)
            let text = try identity.publicKeyPEM()
            results.sumUp(
                [.init("id", .text(identity.peerID.description)), .init("public_key_pem", .text(text))],
                words: text.split(separator: "\n").map { Line($0) })
        }
        return .well
    }

    private func show(_ file: IdentityFile, _ results: Results) throws {
        let identity = try file.load()
        let name = try DisplayName.ofThisUser()
        let isInUse = file.isClaimed
        results.sumUp(
            [
                .init("id", .text(identity.peerID.description)),
                .init("short_id", .text(identity.peerID.short)), .init("name", .text(name.description)),
                .init("file", .text(file.path)), .init("in_use", .bool(isInUse)),
            ],
            words: [
                "name    " + Line(name.description, .strong),
                "PeerID  " + Line(identity.peerID.description, .strong),
                "short   \(identity.peerID.short)", "file    " + Line(file.path),
                isInUse ? "in use  by a program that runs now" : "in use  by no program now",
            ])
    }

    private func renew(_ file: IdentityFile, _ isAgreed: Bool, _ results: Results) throws -> ExitStatus {
        guard !file.isClaimed else {
            throw NighError(
                .identity, .unavailable("a program that runs now goes by the old identity"),
                advice: "end it first")
        }
        if !isAgreed {
            guard
                Question.isAgreed(
                    "Those you were paired with will not know you any more. Become a new peer?", results)
            else { throw NighError(.identity, .cancelled, advice: "with --yes nobody is asked") }
        }
        let kept = try file.setAside()
        let identity = try file.load()
        results.sumUp(
            [
                .init("id", .text(identity.peerID.description)),
                .init("short_id", .text(identity.peerID.short)), .init("file", .text(file.path)),
                .init("old_file", JSON(kept)),
            ],
            words: [
                "You are " + Line(identity.peerID.description, .strong) + " now.",
                kept.map { "Who you were is kept in " + Line($0) + "." } ?? "There was nobody before.",
            ])
        return .well
    }
}
