import Arguments
import Guests
import JSONText
import NighCore
import NighFiles
import SessionArguments

/// `nigh guests`: shows the guests of this user's programs that run now, sends one away, and invites another.
struct GuestsCommand: Subcommand {
    /// The things that the command can do.
    enum Action: Sendable {
        case list
        case invite
        case revoke(String)
    }

    let commandName = "guests"
    let output: OutputOptions
    let action: Action

    static let description = Command<any Subcommand>(
        "guests", "Shows the guests in browsers, and sends them away",
        text: """
            A guest is a person with a browser who has scanned the code of `nigh receive --web`, `nigh send --web`, `nigh chat \
            --web` or `fourinarow host --web`. It may come back for 12 h, as long as that program runs. A guest that was sent \
            away needs a new code.
            """,
        OutputOptions.options,
        examples: [
            Example("", "shows the guests of all programs that run here"),
            Example("invite", "shows a code for one more guest"),
            Example("revoke Anna", "sends Anna away"),
        ],
        subcommands: [
            Command(
                "invite", "Shows a code for one more guest", OutputOptions.options,
                examples: [Example("", "of each program that takes guests")]
            ) { GuestsCommand(output: $0, action: .invite) },
            Command(
                "revoke", "Sends a guest away", OutputOptions.options,
                Operand("GUEST", .text("GUEST"), "the name of the guest, or the beginning of its PeerID"),
                examples: [Example("Anna", "who then needs a new code to come back")]
            ) { GuestsCommand(output: $0, action: .revoke($1)) },
        ]
    ) { GuestsCommand(output: $0, action: .list) }

    static let kind = Results.Kind("guest", plural: "guests")
    var kinds: [Results.Kind] {
        switch action {
        case .list: [Self.kind]
        case .invite: [GuestCode.kind]
        case .revoke: []
        }
    }

    /// A guest of a program.
    private struct Entry {
        let process: Int32
        let service: String
        let id: PeerID
        let name: String
        let address: String
        let seconds: Int
        let isHere: Bool

        var members: [JSON.Member] {
            [
                .init("peer_id", .text("\(id)")), .init("name", .text(name)),
                .init("service", .text(service)),
                .init("process", .integer(Int(process))), .init("address", .text(address)),
                .init("seconds", .integer(seconds)), .init("here", .bool(isHere)),
            ]
        }
    }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        switch action {
        case .list: list(results)
        case .invite: try invite(results)
        case .revoke(let text): try revoke(text, results)
        }
        return .success
    }

    private func entries() -> (programs: Int, guests: [Entry]) {
        let answers = GuestDeskFolder.ask("list")
        let entries = answers.flatMap { answer -> [Entry] in
            guard let program = answer.lines.first, program.count == 3 else { return [] }
            return answer.lines.dropFirst().compactMap { fields in
                guard fields.count == 6, let id = PeerID(fields[1]), let seconds = Int(fields[4]) else {
                    return nil
                }
                return Entry(
                    process: answer.process, service: program[1], id: id, name: fields[2], address: fields[3],
                    seconds: seconds, isHere: fields[5] == "here")
            }
        }
        return (answers.count, entries)
    }

    private func list(_ results: Results) {
        let (programs, guests) = entries()
        var table = TextTable([
            ("NAME", .left), ("GUEST", .left), ("SERVICE", .left), ("FROM", .left), ("SINCE", .right),
            ("", .left),
        ])
        for guest in guests {
            results.report(Self.kind, guest.members, lines: [])
            table.add([
                Line(guest.name, .strong), Line(guest.id.short), Line(guest.service), Line(guest.address),
                Line("\(guest.seconds / 60) min"), guest.isHere ? Line("here", .good) : Line("away", .faint),
            ])
        }
        let nobody: Line =
            programs == 0
            ? "No program takes guests now; `nigh receive --web` does." : "No guest has come yet."
        results.summarize(
            [.init("count", .integer(guests.count)), .init("programs", .integer(programs))],
            lines: guests.isEmpty ? [nobody] : table.lines)
    }

    private func invite(_ results: Results) throws {
        let answers = GuestDeskFolder.ask("invite")
        let urls = answers.map { answer in
            answer.lines.filter { $0.count == 2 && $0[0] == "url" }.map { $0[1] }
        }
        for urls in urls {
            guard let url = urls.first else { continue }
            let invitation = GuestInvitation(
                url: url, alternatives: Array(urls.dropFirst()), validity: .seconds(5 * 60))
            GuestCode.report(invitation, isRenewed: false, results)
        }
        guard urls.contains(where: { !$0.isEmpty }) else {
            throw FileFailure("no program takes guests now; `nigh receive --web` does")
        }
        results.summarize([], lines: [])
    }

    private func revoke(_ text: String, _ results: Results) throws {
        let guests = entries().guests
        let name = PeerName(text)
        let found = name.matching(guests) { ($0.id, DisplayName(fitting: $0.name)) }
        guard let guest = found.first else {
            throw NighError(.trusting, .unknownPeer, peer: text, advice: "`nigh guests` lists the guests")
        }
        guard found.count == 1 else {
            let names = found.map { "\($0.name) (\($0.id.short))" }.joined(separator: ", ")
            throw NighError(
                .trusting, .invalid("choice \"\(text)\": it matches \(names)"),
                advice: "choose one by the beginning of its PeerID")
        }
        _ = GuestDeskFolder.ask("revoke \(guest.id)")
        results.summarize(
            guest.members, lines: [Line(guest.name, .strong) + " (\(guest.id.short)) was sent away."])
    }
}
