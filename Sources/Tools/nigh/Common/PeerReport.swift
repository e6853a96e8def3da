import JSONText
import NighCore
import NighLoop
import NighRelays

/// Formats peers for the reports of commands.
enum PeerReport {
    /// Everything known about a peer, as members of a JSON object.
    static func members(of peer: Peer) -> [JSON.Member] {
        [
            .init("id", .text(peer.id.description)), .init("short_id", .text(peer.id.short)),
            .init("identity", .text(peer.identity.description)),
            .init("name", .text(peer.name)), .init("state", .text(peer.state.rawValue)),
            .init("transport", JSON(peer.transport)),
            .init(
                "routes",
                .list(
                    peer.routes.map { route in
                        [
                            "address": .text(route.address.description),
                            "transport": .text(route.address.scheme),
                            "through": JSON(carrier(in: route.address).map { "\($0)" }),
                            "signal": JSON(route.quality),
                        ]
                    })),
            .init(
                "info",
                .object(peer.info.sorted { $0.key < $1.key }.map { .init($0.key, .text($0.value)) })),
            .init("full", .bool(peer.isFull)), .init("trust", JSON(peer.trust.map(jsonName))),
        ]
    }

    /// The trust in a peer's identity, as one word for JSON.
    static func jsonName(for trust: PeerTrust) -> String {
        switch trust {
        case .paired: "paired"
        case .known: "known"
        case .new: "new"
        case .newWithKnownName: "new_with_known_name"
        case .falselyAnnounced: "falsely_announced"
        case .guest: "guest"
        }
    }

    /// The trust in a peer's identity, for a person.
    static func line(for trust: PeerTrust?) -> Line {
        switch trust {
        case .paired: Line("paired", .good)
        case .known: "known"
        case .new: Line("new", .faint)
        case .newWithKnownName: Line("new, with the name of a known peer", .warning)
        case .falselyAnnounced: Line("pretends to be a known peer", .warning)
        case .guest: Line("guest, not encrypted", .warning)
        case nil: Line("not proven", .faint)
        }
    }

    /// The discovery info of a peer, for a person. If the peer is a `nigh`, that is the command that runs there.
    static func info(of peer: Peer) -> Line {
        let pairs = peer.info.sorted { $0.key < $1.key }.map { key, value in
            if key == InvitationPurpose.infoKey, let program = InvitationPurpose.program(of: peer) {
                return "runs \(program)"
            }
            return "\(key)=\(value)"
        }
        let info = Line(pairs.joined(separator: " "))
        return peer.isFull ? Line("full", .warning) + Line(pairs.isEmpty ? "" : " ") + info : info
    }

    /// The peer that would carry a connection to this address; nil if the address is of another transport.
    private static func carrier(in address: TransportAddress) -> PeerID? {
        (try? RelayAddress(address))?.carrier
    }

    /// The addresses at which a peer can be reached, for a person. An address that contains the PeerID is shortened to
    /// its scheme, because the PeerID stands next to it. Of one that leads through another peer, that peer is named.
    static func routes(to peer: Peer, naming name: (PeerID) -> String = \.short) -> Line {
        Line(
            peer.routes.map { route in
                if let carrier = carrier(in: route.address) { return "through \(name(carrier))" }
                return route.address.value.contains(peer.id.description)
                    ? route.address.scheme : "\(route.address)"
            }.joined(separator: ", "))
    }

    /// An age in words, as short as possible.
    static func age(_ seconds: Int) -> String {
        switch seconds {
        case ..<120: "\(seconds) s"
        case ..<7_200: "\(seconds / 60) min"
        default: "\(seconds / 3_600) h"
        }
    }
}
