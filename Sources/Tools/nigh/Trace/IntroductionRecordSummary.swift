import NighCore
import NighIntroductions

extension IntroductionRecord {
    /// The content of a record, for a line of `nigh trace`.
    var summary: String {
        switch self {
        case .here(let presence):
            Self.summary(
                "here", presence.advertisement, presence.isMesh, "may be relayed", presence.acceptsRelays)
                + (presence.wantsPaths ? ", asks for paths" : "")
        case .member(let report):
            Self.summary("member", report.advertisement, report.isMesh, "relayed", report.isCarried)
        case .gone(let peer): "gone \(peer.short)"
        case .ask(let peer): "ask for \(peer.short)"
        case .introduction(let peer, let addresses, _):
            "introduction to \(peer.short) at \(addresses.count) address\(addresses.count == 1 ? "" : "es")"
        case .path(let peer, .over(let scheme, let carrier)):
            "path to \(peer.short) over \(scheme)" + (carrier.map { " through \($0.short)" } ?? "")
        case .path(let peer, .interrupted): "path to \(peer.short) is interrupted"
        }
    }

    private static func summary(
        _ name: String, _ advertisement: Advertisement, _ isMesh: Bool, _ relay: String, _ isRelay: Bool
    ) -> String {
        let abilities = (isMesh ? ["in the mesh"] : []) + (isRelay ? [relay] : [])
        return (["\(name) \(advertisement.name) \(advertisement.peer.short)"] + abilities).joined(
            separator: ", ")
    }

    /// The name of a record in JSON.
    var step: String {
        switch self {
        case .here: "here"
        case .member: "member"
        case .gone: "gone"
        case .ask: "ask"
        case .introduction: "introduction"
        case .path: "path"
        }
    }
}
