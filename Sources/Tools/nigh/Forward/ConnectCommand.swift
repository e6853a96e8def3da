import Arguments
import Glibc
import NighCore
import NighForwarding
import NighLoop
import Synchronization

/// `nigh connect`: connects the standard input and output to a port of another device.
struct ConnectCommand: Subcommand {
    let commandName = "connect"
    let output: OutputOptions
    let session: SessionOptions
    let peer: PeerChoice
    let port: UInt16
    let wait: Duration
    let grace: Duration

    static let description = Command<any Subcommand>(
        "connect", "Connects standard input and output to a port of another device",
        text: """
            The other device runs `nigh expose PORT`, and the two are paired. What is read from the standard input goes to that \
            port, and what comes back goes to the standard output. The connection goes on when the conversation moves from one \
            wire to another, and waits for --grace when there is none.

            It is made for ssh, whose ProxyCommand can be any program. In ~/.ssh/config, this makes `ssh puma` work wherever \
            `nigh` reaches it:

            Host puma

            ProxyCommand nigh connect %h --port %p
            """,
        Operand("PEER", .peer, "the device that exposes the port"), OutputOptions.options,
        SessionOptions.options,
        Option("port", short: "p", .port, "the port of PEER"), Forwarding.wait, Forwarding.grace,
        examples: [
            Example("puma --port 22", "what ssh calls with `ProxyCommand nigh connect %h --port %p`"),
            Example("puma --port 5432 --grace 1h", "waits for up to an hour when there is no link"),
        ]
    ) { peer, output, session, port, wait, grace in
        guard let port else { throw UsageError("--port is missing: write --port 22, for example") }
        guard case .text = output.form else {
            throw UsageError(
                "the standard output is for the connection, so it cannot be used with --json or --json-lines")
        }
        return ConnectCommand(
            output: output, session: session, peer: peer, port: port, wait: wait, grace: grace)
    }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let session = try CommandSession(self.session, role: .client, results: results) {
            $0.timings.grace = grace
            // The last bytes of the connection.
            $0.timings.linger = .seconds(2)
        }
        session.start()
        let isConnected = Atomic(false)
        do {
            try await stopRequest.cancelling { [self] in
                let peer = try await session.connect(to: peer, for: .forward, .init(timeLimit: wait))
                let opened = try await open(at: peer, session)
                if let remark = Forwarding.remark(ofTheirs: opened.grace, ours: grace, label: "\(peer.name)")
                {
                    results.remark(remark)
                }
                isConnected.store(true, ordering: .relaxed)
                try await StandardStreamsConnection(opened).run()
            }
        } catch {
            await session.close()
            guard stopRequest.isRequested else { throw error }
            // ssh ends its ProxyCommand in this way, and its user should see nothing of that.
            if isConnected.load(ordering: .relaxed) { return .failed }
            throw CancellationError()
        }
        await session.close()
        return .success
    }

    private func open(at peer: Peer, _ session: CommandSession) async throws -> ForwardingClient.Opened {
        try await withCheckedThrowingContinuation { continuation in
            session.loop.execute { [port] in
                ForwardingClient(session.session).open(port, at: peer.id) { continuation.resume(with: $0) }
            }
        }
    }
}
