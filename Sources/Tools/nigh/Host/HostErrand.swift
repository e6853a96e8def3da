import Arguments
import JSONText
import NighLoop
import NighCore

/// `nigh host`: waits for peers that run `nigh ping` or `nigh bench`, and takes part in their measurements.
struct HostErrand: Errand {
    let command = "host"
    let output: OutputOptions
    let session: SessionOptions
    let isOnce: Bool

    static let description = Command<any Errand>(
        "host", "Waits for `nigh ping` and `nigh bench` of others, and takes part",
        text: """
            It lets itself be found, tells at once who it is and where it is reached, and answers whoever comes, until Ctrl-C. \
            Any number may ping it; one at a time measures throughput, since two would measure each other.

            SERVICE is another than "nigh", for those who want to be among themselves; the other side then needs --service with the same.
            """,
        OutputOptions.options, SessionOptions.options,
        Option(flag: "once", "ends when the first who came has left"),
        Operand(optional: "SERVICE", .serviceName, "what it offers, as --service"),
        examples: [
            Example("", "on one device; then `nigh ping NAME` or `nigh bench NAME` on another"),
            Example("-t tcp:port=4000,mdns=off --name Puma", "at a known port, found by nobody"),
            Example(
                "--json-lines --once",
                "for a script, which reads the address from the line of type \"listening\""),
        ]
    ) { output, session, isOnce, service in
        var session = session
        if let service { session.service = service }
        return HostErrand(output: output, session: session, isOnce: isOnce)
    }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        let mine = try CommandSession(session, role: .server, taking: [.ping, .bench], results: results)
        let keeper = HostKeeper(mine, isOnce: isOnce, results: results)
        let name = mine.session.configuration.name
        results.tell(
            HostKeeper.host,
            [
                .init("name", .text(name.description)), .init("peer_id", .text(mine.session.id.description)),
                .init("service", .text(session.service.description)),
                .init("security", .text(session.security.rawValue)),
            ],
            words: [
                Line("\(name)", .strong)
                    + Line(" (\(mine.session.id.short)) waits for nigh ping and nigh bench; Ctrl-C ends it")
            ])
        mine.start(onEvent: { keeper.took($0) }, onMessage: { keeper.take($0, $1) })
        interruption.onRequest { keeper.finish() }
        let fault = await keeper.untilDone()
        await mine.close()
        if let fault { throw fault }
        return keeper.sumUp()
    }
}
