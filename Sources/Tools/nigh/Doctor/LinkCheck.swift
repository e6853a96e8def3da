import NighLoop
import NighCore

/// Reports the results of a link's probe, stage by stage.
struct LinkCheck {
    private let events: AsyncStream<LinkProbe.Event>
    private let scheme: String
    private let address: TransportAddress
    /// How many pings the probe sends.
    private let pings: Int
    private static let subject = "peer"

    init(
        events: AsyncStream<LinkProbe.Event>, pings: Int, _ scheme: String, _ address: TransportAddress
    ) {
        self.pings = pings
        self.events = events
        self.scheme = scheme
        self.address = address
    }

    /// Reports each stage once it is done. Returns the path if all stages succeeded.
    func report(to reporter: FindingReporter) async throws -> PeerPath? {
        reporter.showProgress("peer.tls")
        var greeting: LinkProbe.Greeting?
        var isSecured = false
        var roundTrips: [Duration] = []
        for await event in events {
            switch event {
            case .secured(let peer, let span):
                isSecured = true
                reporter.report(
                    Finding(
                        "peer.tls", Self.subject, .pass, "TLS 1.3, with the key of \(peer.short)",
                        duration: span))
                reporter.showProgress("peer.hello")
            case .greeted(let hello, let span):
                greeting = hello
                if !isSecured {
                    reporter.report(
                        Finding(
                            "peer.tls", Self.subject, .warn, "none: anybody on the path can read everything",
                            advice: "use this only to measure; leave `security: .none` out of the programs"))
                }
                reporter.report(
                    Finding(
                        "peer.hello", Self.subject, .pass,
                        "\(hello.name) (\(hello.identity.short)), service \(hello.service)", duration: span))
                reporter.report(
                    Finding("peer.version", Self.subject, .pass, "both use version \(hello.version)"))
                reporter.showProgress("peer.ping")
            case .pongReceived(let roundTrip):
                roundTrips.append(roundTrip)
                if let finding = Self.finding(roundTrips, of: pings) {
                    reporter.report(finding)
                    reporter.showProgress("peer.packets")
                }
            case .packetsTried(let outcome): reporter.report(Self.finding(outcome))
            case .ended(let error?):
                reporter.report(Self.finding(error))
                return nil
            case .ended(nil): break
            }
        }
        try Task.checkCancellation()
        guard let greeting, let least = roundTrips.min() else { return nil }
        reporter.report(
            Finding("peer.path", Self.subject, .pass, "\(scheme), to \(address)", duration: least))
        return PeerPath(
            scheme: scheme, address: address, peer: greeting.peer, identity: greeting.identity,
            name: greeting.name, roundTrip: least)
    }

    /// Returns the result of the pings, once all are answered.
    private static func finding(_ roundTrips: [Duration], of count: Int) -> Finding? {
        guard roundTrips.count == count, let least = roundTrips.min(), let most = roundTrips.max() else {
            return nil
        }
        return Finding(
            "peer.ping", subject, .pass,
            "\(count) of \(count), \(Moment.Span(least)) to \(Moment.Span(most))")
    }

    private static func finding(_ outcome: LinkProbe.PacketOutcome) -> Finding {
        let id = "peer.packets"
        return switch outcome {
        case .passed(let roundTrip):
            Finding(id, subject, .pass, "packets pass beside the link, both ways", duration: roundTrip)
        case .blocked:
            Finding(
                id, subject, .warn,
                "no packet passes beside the link, so unreliable messages wait on the link behind all others",
                advice:
                    "let UDP through on the way: run `nigh doctor` as root on both devices to see their firewalls, and look "
                    + "for \"client isolation\" in the access point")
        case .notOffered:
            Finding(
                id, subject, .warn, "the program there sends no packets beside a link",
                advice: "update it, or switch them on in its session's configuration")
        }
    }

    private static func finding(_ error: NighError) -> Finding {
        let id =
            switch (error.stage, error.cause) {
            case (_, .noCommonVersion): "peer.version"
            case (.securing, _): "peer.tls"
            case (.greeting, _): "peer.hello"
            default: "peer.ping"
            }
        switch error.cause {
        case .notPaired:
            // The peer answered correctly: it does not talk to strangers.
            return Finding(
                id, subject, .warn,
                "accepts paired devices only, and the doctor is an unknown peer; everything up to here works",
                advice: "pair the two devices, if they are not paired yet")
        case .wrongService(let service) where !service.isEmpty:
            return Finding(id, subject, .fail, "\(error.cause)", advice: "`--service \(service)`")
        case .noCommonSecurity(theyEncrypt: false):
            return Finding(id, subject, .fail, "\(error.cause)", advice: "`--security none`")
        case .noCommonSecurity(theyEncrypt: true):
            return Finding(id, subject, .fail, "\(error.cause)", advice: "leave --security none out")
        default: return Finding(id, subject, failed: error)
        }
    }
}
