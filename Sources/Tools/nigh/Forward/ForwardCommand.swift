import Arguments
import JSONText
import NighCore
import NighForwarding
import NighLoop

/// `nigh forward`: makes ports of another device ports of this one.
struct ForwardCommand: Subcommand {
    let commandName = "forward"
    let output: OutputOptions
    let session: SessionOptions
    let peer: PeerChoice
    let mappings: [PortMapping]
    let wait: Duration
    let grace: Duration

    static let description = Command<any Subcommand>(
        "forward", "Makes ports of another device ports of this one",
        text: """
            The other device runs `nigh expose PORT`, and the two are paired. Programs here then connect to LOCALPORT of \
            127.0.0.1, and reach PORT of the other device. One number means the same port on both. LOCALPORT 0 takes a free port.

            Connections go on when the conversation moves from one wire to another, and wait for --grace when there is none. If \
            the other device comes back later, new connections work again. Ctrl-C ends all.
            """,
        Operand("PEER", .peer, "the device that exposes the ports"),
        Operand(
            repeated: "LOCALPORT:PORT", isRequired: true, .portMapping,
            "a port of this device, and the port of PEER to which it leads"),
        OutputOptions.options, SessionOptions.options, Forwarding.wait, Forwarding.grace,
        examples: [
            Example("puma 8022:22", "then `ssh -p 8022 localhost` is ssh to puma"),
            Example("puma 8080 15432:5432", "a web server and a database of puma"),
        ]
    ) { peer, mappings, output, session, wait, grace in
        ForwardCommand(
            output: output, session: session, peer: peer, mappings: mappings, wait: wait, grace: grace)
    }

    var kinds: [Results.Kind] { [ConnectionReports.listening, ConnectionReports.connection] }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let session = try CommandSession(self.session, role: .client, results: results) {
            $0.timings.grace = grace
        }
        let forwarder = PortForwarder(session, grace: grace, results)
        session.start(onEvent: { forwarder.handle($0) })
        let calls: Task<Void, Never>
        do {
            // Before the search, since a port that is taken is an error at once.
            try await session.onLoop { [mappings] _ in
                Result { try mappings.forEach { try forwarder.listen($0) } }
            }.get()
            let first = try await stopRequest.cancelling { [peer, wait] in
                try await session.connect(to: peer, for: .forward, .init(timeLimit: wait))
            }
            calls = await forwarder.keepConnected(to: first, calledAs: peer)
        } catch {
            _ = await session.onLoop { _ in forwarder.end() }
            await session.close()
            throw stopRequest.isRequested ? CancellationError() : error
        }
        let unusable = await session.waitForEnd(stopRequest)
        calls.cancel()
        let counts = await session.onLoop { _ in forwarder.end() }
        await session.close()
        if let unusable { throw unusable }
        results.summarize(counts)
        return .success
    }
}
