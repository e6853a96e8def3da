import Arguments
import JSONText
import NighLoop
import NighCore

/// `nigh host`: waits for peers that run `nigh ping` or `nigh bench`, and takes part in their measurements.
struct HostCommand: Subcommand {
    let commandName = "host"
    let output: OutputOptions
    let session: SessionOptions
    let isOnce: Bool

    static let description = Command<any Subcommand>(
        "host", "Answers peers that run `nigh ping` or `nigh bench`",
        text: """
            It advertises itself, prints its name at once and then its addresses, and answers every peer until Ctrl-C. Any number \
            of peers may ping it. Only one at a time measures throughput, since two would measure each other. It also takes peers \
            that are connected to it only to see or to reach others, with `nigh peers --map` or --through.

            With SERVICE it offers that service instead of "nigh", so that only peers that name it find this host: the other side \
            then needs --service with the same name.
            """,
        OutputOptions.options, SessionOptions.options,
        Option(flag: "once", short: "1", "ends when the first peer has left"),
        Operand(optional: "SERVICE", .serviceName, "the service to offer; the same as --service"),
        examples: [
            Example("", "on one device; then `nigh ping NAME` or `nigh bench NAME` on another"),
            Example("-t tcp:port=4000,mdns=off --name Puma", "on a known port, hidden from discovery"),
            Example(
                "--json-lines --once",
                "for a script, which reads the address from the line of type \"listening\""),
        ]
    ) { output, session, isOnce, service in
        var session = session
        try session.take(service)
        return HostCommand(output: output, session: session, isOnce: isOnce)
    }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let commandSession = try CommandSession(
            session, role: .server, accepting: [.ping, .bench, .join], results: results)
        let host = MeasurementHost(commandSession, isOnce: isOnce, results: results)
        let name = commandSession.session.configuration.name
        results.report(
            MeasurementHost.host,
            [
                .init("name", .text(name.description)),
                .init("peer_id", .text(commandSession.session.id.description)),
                .init("service", .text(session.service.description)),
                .init("security", .text(session.security.rawValue)),
            ],
            lines: [
                Line("\(name)", .strong)
                    + Line(
                        " (\(commandSession.session.identity.short)) waits for nigh ping and nigh bench; Ctrl-C ends it"
                    )
            ])
        commandSession.start(onEvent: { host.handle($0) }, onMessage: { host.receive($0, $1) })
        stopRequest.onRequest { host.finish() }
        let fault = await host.waitUntilDone()
        await commandSession.close()
        if let fault { throw fault }
        return host.summarize()
    }
}
