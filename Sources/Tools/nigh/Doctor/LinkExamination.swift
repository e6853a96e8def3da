import NighLoop
import NighCore

/// Reports what a probe of a link found, stage by stage.
struct LinkExamination {
    private let events: AsyncStream<LinkProbe.Event>
    private let scheme: String
    private let address: TransportAddress
    private static let subject = "peer"

    init(events: AsyncStream<LinkProbe.Event>, _ scheme: String, _ address: TransportAddress) {
        self.events = events
        self.scheme = scheme
        self.address = address
    }

    /// Reports each stage once it is done. Returns the path if all stages succeeded.
    func tell(_ findings: Findings) async throws -> PeerPath? {
        findings.lookAt("peer.tls")
        var greeting: LinkProbe.Greeting?
        var isSecured = false
        var roundTrips: [Duration] = []
        for await event in events {
            switch event {
            case .secured(let peer, let span):
                isSecured = true
                findings.tell(
                    Finding(
                        "peer.tls", Self.subject, .pass, "TLS 1.3, with the key of \(peer.short)",
                        duration: span))
                findings.lookAt("peer.hello")
            case .greeted(let words, let span):
                greeting = words
                if !isSecured {
                    findings.tell(
                        Finding(
                            "peer.tls", Self.subject, .warn, "none: everybody on the way can read along",
                            advice: "for measurements only; leave `security: .none` out in the programs"))
                }
                findings.tell(
                    Finding(
                        "peer.hello", Self.subject, .pass,
                        "\(words.name) (\(words.peer.short)), service \(words.service)", duration: span))
                findings.tell(
                    Finding("peer.version", Self.subject, .pass, "both speak version \(words.version)"))
                findings.lookAt("peer.ping")
            case .ponged(let roundTrip): roundTrips.append(roundTrip)
            case .ended(let error?):
                findings.tell(Self.finding(error))
                return nil
            case .ended(nil): break
            }
        }
        try Task.checkCancellation()
        guard let greeting, let least = roundTrips.min(), let most = roundTrips.max() else { return nil }
        findings.tell(
            Finding(
                "peer.ping", Self.subject, .pass,
                "\(roundTrips.count) of \(roundTrips.count), \(Moment.Span(least)) to \(Moment.Span(most))"))
        findings.tell(
            Finding("peer.path", Self.subject, .pass, "\(scheme), to \(address)", duration: least))
        return PeerPath(
            scheme: scheme, address: address, peer: greeting.peer, name: greeting.name, roundTrip: least)
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
                "talks to paired devices only, and this calls as a stranger; all up to here works",
                advice: "pair the two devices, if they are not")
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
