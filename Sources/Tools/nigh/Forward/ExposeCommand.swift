import Arguments
import JSONText
import NighCore
import NighForwarding
import NighLoop

/// `nigh expose`: lets other devices connect to ports of this one.
struct ExposeCommand: Subcommand {
    let commandName = "expose"
    let output: OutputOptions
    let session: SessionOptions
    let ports: [UInt16]
    let peers: ForwardingPolicy.Peers
    let grace: Duration

    static let description = Command<any Subcommand>(
        "expose", "Lets paired devices connect to ports of this one",
        text: """
            Until Ctrl-C, other devices may connect to the named TCP ports of this device, and to no others. Connections go to \
            127.0.0.1, or to ::1 if nothing listens there: never to another device. They are encrypted between the two \
            devices, and go on when the conversation moves from one wire to another.

            Only paired devices may connect (`nigh pair`), unless --accept says otherwise. A device that may connect to a port \
            can do there whatever the program behind it allows.
            """,
        Operand(repeated: "PORT", isRequired: true, .port, "the ports to which others may connect"),
        OutputOptions.options, SessionOptions.options,
        Option(
            "accept", .choice(of: ForwardingPolicy.Peers.self), default: .paired,
            "who may connect: paired devices, or any device that reaches this one"),
        Forwarding.grace,
        examples: [
            Example("22", "lets paired devices use ssh to this one, through `nigh connect`"),
            Example("8080 5432 --grace 1h", "two ports; connections wait for an hour while there is no link"),
        ]
    ) { ports, output, session, peers, grace in
        ExposeCommand(output: output, session: session, ports: ports, peers: peers, grace: grace)
    }

    var kinds: [Results.Kind] { [ConnectionReports.listening, ConnectionReports.connection] }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let dialler = LoopbackDialler()
        let exposed = ExposedPorts(ForwardingPolicy(ports: Set(ports), peers: peers), dialling: dialler)
        let session = try CommandSession(
            self.session, role: .server, accepting: [.forward], results: results
        ) {
            $0.layers.append(exposed)
            $0.timings.grace = grace
        }
        dialler.begin(on: session.loop)
        if peers == .any {
            results.remark("any device that reaches this one may connect to \(Self.words(ports))")
        }
        report(session, results)
        exposed.report(to: observer(session, results))
        session.start(onEvent: { [peers] event in
            switch event {
            case .invited(let invitation):
                guard peers == .any || invitation.peer.trust == .paired else {
                    return invitation.decline(
                        because: "its ports are for paired devices only; run `nigh pair` on both first")
                }
                invitation.accept()
            case .listening(let transport, let addresses): Self.report(addresses, of: transport, results)
            default: break
            }
        })
        let unusable = await session.waitForEnd(stopRequest)
        let counts = await session.onLoop { _ in exposed.counts }
        await session.close()
        if let unusable { throw unusable }
        results.summarize(counts)
        return .success
    }

    private static func words(_ ports: [UInt16]) -> String {
        (ports.count == 1 ? "port " : "ports ") + ports.map { "\($0)" }.joined(separator: ", ")
    }

    private func report(_ session: CommandSession, _ results: Results) {
        guard results.isText else { return }
        let name = session.session.configuration.name
        results.report(
            ConnectionReports.listening, [],
            lines: [
                Line("\(name)", .strong) + Line(" (\(session.session.identity.short)) exposes ")
                    + Line(Self.words(ports), .strong)
                    + Line(peers == .paired ? " to paired devices" : " to any device", .plain)
                    + Line("; Ctrl-C ends it", .faint)
            ])
    }

    private static func report(
        _ addresses: [TransportAddress], of transport: String, _ results: Results
    ) {
        guard !addresses.isEmpty else { return }
        results.report(
            ConnectionReports.listening,
            [
                .init("transport", .text(transport)),
                .init("addresses", .list(addresses.map { .text($0.description) })),
            ], lines: addresses.map { Line("  reached at ", .faint) + Line($0.description) })
    }

    private func observer(_ session: CommandSession, _ results: Results) -> ExposedPorts.Observer {
        var observer = ExposedPorts.Observer()
        let reports = ConnectionReports(results)
        func report(_ peer: PeerID, _ change: String, _ members: [JSON.Member], _ words: String) {
            reports.report(
                change,
                [
                    .init("peer_id", .text(peer.description)),
                    .init("peer_name", JSON(session.peers[peer].map { "\($0.name)" })),
                ] + members, Line(session.label(of: peer), .strong) + Line(" \(words)"))
        }
        observer.opened = { peer, port in
            report(peer, "opened", [.init("port", .integer(Int(port)))], "is connected to port \(port)")
        }
        observer.refused = { peer, name, refusal in
            report(
                peer, "refused", [.init("port", JSON(ForwardingName.port(name).map(Int.init)))],
                "is not connected to port \(name): \(refusal.reason)")
        }
        observer.closed = { peer, port, sent, received, error in
            let bytes = CarriedBytes(sent: sent, received: received)
            report(
                peer, "closed",
                [.init("port", .integer(Int(port)))] + bytes.members
                    + [.init("cause", JSON(error?.cause.label))],
                "is \(bytes.endOfConnection(to: port, error))")
        }
        return observer
    }
}
