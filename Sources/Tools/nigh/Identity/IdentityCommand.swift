import Arguments
import JSONText
import NighCore
import NighSystem
import SessionArguments
import Terminal

/// `nigh identity`: shows or changes the user's identity on this device.
struct IdentityCommand: Subcommand {
    /// An action on the identity.
    enum Action: Sendable {
        case show
        case rename(DisplayName)
        case new(isConfirmed: Bool)
        case export
    }

    let commandName = "identity"
    let output: OutputOptions
    let action: Action
    /// Nil means the user's own identity file.
    let file: IdentityFile?

    static let description = Command<any Subcommand>(
        "identity", "Shows or changes your identity",
        text: """
            Your identity is a key pair. The hash of its public key is your PeerID, by which other peers recognise you. \
            Every program of yours acts for it, and any number may run at the same time. The private key is never sent to \
            anybody. Your display name is a label that may change; the PeerID stays the same.
            """,
        OutputOptions.options, fileOption,
        examples: [
            Example("", "shows your PeerID, your name, the identity file, and who uses it now"),
            Example("rename Puma", "changes your name to Puma"),
            Example("export", "prints your public key, for others"),
        ],
        subcommands: [
            Command(
                "rename", "Chooses the name that others see",
                text: "Running programs keep the old name.",
                OutputOptions.options,
                Operand("NAME", .displayName, "the new name"),
                examples: [Example("Puma", "changes your name to Puma")]
            ) { IdentityCommand(output: $0, action: .rename($1), file: nil) },
            Command(
                "new", "Creates a new identity, which no peer knows yet",
                text: """
                    The old identity is kept beside the new one, under another name. You have to pair again with every \
                    peer that you were paired with.
                    """,
                OutputOptions.options, fileOption,
                Option(flag: "yes", short: "y", "does not ask for confirmation"),
                examples: [Example("--yes", "creates it without a question")]
            ) { IdentityCommand(output: $0, action: .new(isConfirmed: $2), file: $1) },
            Command(
                "export", "Prints your public key, for others",
                text: "The output is PEM, which other programs can read. A public key is not secret.",
                OutputOptions.options, fileOption,
                examples: [Example("", "prints the key as PEM"), Example("--json", "also prints its PeerID")]
            ) { IdentityCommand(output: $0, action: .export, file: $1) },
        ]
    ) { IdentityCommand(output: $0, action: .show, file: $1) }

    private static let fileOption = Option(
        "identity", Notation<IdentityFile>("FILE", candidates: .files) { IdentityFile(path: $0) },
        "an identity file other than your own")

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let file = try file ?? IdentityFile()
        switch action {
        case .show: try show(file, results)
        case .rename(let name):
            try NameFile().save(name)
            results.summarize(
                [.init("name", .text(name.description))],
                lines: ["Your name is now \(Line(name.description))."])
        case .new(let isConfirmed): return try await renew(file, isConfirmed, results, stopRequest)
        case .export:
            let identity = try file.load(createIfMissing: false)
            let text = try identity.publicKeyPEM()
            results.summarize(
                [.init("id", .text(identity.peerID.description)), .init("public_key_pem", .text(text))],
                lines: text.split(separator: "\n").map { Line($0) })
        }
        return .success
    }

    private func show(_ file: IdentityFile, _ results: Results) throws {
        let identity = try file.load()
        let name = try DisplayName.ofThisUser()
        let users = IdentityUsers(of: identity.peerID, in: file)
        results.summarize(
            [
                .init("id", .text(identity.peerID.description)),
                .init("short_id", .text(identity.peerID.short)), .init("name", .text(name.description)),
                .init("file", .text(file.path)), .init("in_use", .bool(!users.isEmpty)),
                .init("users", users.json),
                .init("earlier_version", .bool(users.hasEarlierVersion)),
            ],
            lines: [
                "name    " + Line(name.description, .strong),
                "PeerID  " + Line(identity.peerID.description, .strong),
                "short   \(identity.peerID.short)", "file    " + Line(file.path),
            ]
                + (users.isEmpty ? ["no running program"] : users.lines).enumerated().map { index, line in
                    Line((index == 0 ? "in use  by " : "           ") + line)
                })
    }

    private func renew(
        _ file: IdentityFile, _ isConfirmed: Bool, _ results: Results, _ stopRequest: StopRequest
    ) async throws -> ExitStatus {
        if let old = try? file.load(createIfMissing: false) {
            let users = IdentityUsers(of: old.peerID, in: file)
            guard users.isEmpty else {
                throw NighError(
                    .identity,
                    .unavailable("the old identity is in use by \(users.lines.joined(separator: ", "))"),
                    advice: users.lines.count == 1 ? "end it first" : "end them first")
            }
        }
        if !isConfirmed {
            let answer = try await Question.isConfirmed(
                "Your paired peers will not recognise you any more. Create a new identity?", results,
                stopRequest)
            guard let answer else { throw CancellationError() }
            guard answer else { throw NighError(.identity, .cancelled, advice: "--yes skips the question") }
        }
        let kept = try file.setAside()
        let identity = try file.load()
        results.summarize(
            [
                .init("id", .text(identity.peerID.description)),
                .init("short_id", .text(identity.peerID.short)), .init("file", .text(file.path)),
                .init("old_file", JSON(kept)),
            ],
            lines: [
                "Your PeerID is now " + Line(identity.peerID.description, .strong) + ".",
                kept.map { "The old identity is kept in " + Line($0) + "." }
                    ?? "There was no identity before.",
            ])
        return .success
    }
}
