import NighLoop

/// What one `nigh` wants from another. The invitation carries it, so that the invited side knows whether it does that.
enum Purpose: String, CaseIterable, Sendable {
    /// Measuring round trips, which every session answers.
    case ping
    /// Measuring throughput.
    case bench
    /// Sending files.
    case send
    /// Chatting.
    case chat
    /// Pairing: two people check that nobody is between their devices.
    case pair
    /// Being connected only: to be told of others, and to have connections carried to them.
    case join

    private static let prefix = "nigh/1 "

    /// The context of the invitation.
    var context: [UInt8] { Array("\(Self.prefix)\(rawValue)".utf8) }

    /// Reads the purpose from an invitation's context. Returns nil for an invitation from another program or from a
    /// later `nigh`.
    init?(context: [UInt8]) {
        let text = String(decoding: context, as: UTF8.self)
        guard text.hasPrefix(Self.prefix) else { return nil }
        self.init(rawValue: String(text.dropFirst(Self.prefix.count)))
    }

    /// What a session asks for, one after the other, that only wants to be connected. A `nigh` that does not know
    /// `join` takes one of the others.
    ///
    /// - Parameter peer: the peer to be connected to; nil if nothing is known of it.
    static func toJoin(_ peer: Peer?) -> [Purpose] {
        let all: [Purpose] = [.join, .ping, .chat]
        guard let peer else { return all }
        let taken = all.filter { $0.isAccepted(by: peer) != false }
        return taken.isEmpty ? [.join] : taken
    }

    private static let infoKey = "nigh"

    /// The discovery info of a session that takes these purposes.
    static func info(accepting purposes: [Purpose]) -> DiscoveryInfo {
        let names = purposes.map(\.rawValue).joined(separator: " ")
        // Four short names are far below every limit.
        return (try? DiscoveryInfo(names.isEmpty ? [:] : [infoKey: names])) ?? .none
    }

    /// Returns whether `peer` advertises that it takes this purpose, or nil if it advertises nothing about purposes, as
    /// other programs do.
    func isAccepted(by peer: Peer) -> Bool? {
        peer.info[Self.infoKey].map { $0.split(separator: " ").contains { $0 == rawValue } }
    }

    /// The reason with which a session that accepts `purposes` declines other invitations.
    static func refusal(accepting purposes: [Purpose]) -> String {
        let commands = purposes.filter { $0 != .join }.map(\.counterpart).joined(separator: ", ")
        return commands.isEmpty ? "this nigh accepts no invitations" : "this nigh accepts only \(commands)"
    }

    /// The command that asks for this purpose; `join` has none of its own.
    var counterpart: String { "nigh \(rawValue)" }
}
