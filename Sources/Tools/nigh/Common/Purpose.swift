import Nigh

/// What a `nigh` asks another for: its invitation says so, and who is asked can tell whether it does that.
enum Purpose: String, CaseIterable, Sendable {
    /// Measuring round trips, which any session answers.
    case ping
    /// Measuring throughput.
    case bench
    /// Handing over a file.
    case send
    /// Talking.
    case chat
    /// Two people making sure that nobody is between their devices.
    case pair

    private static let mark = "nigh/1 "

    /// What the invitation says.
    var context: [UInt8] { Array("\(Self.mark)\(rawValue)".utf8) }

    /// What an invitation says it is for; nil where it comes from another program, or a later `nigh`.
    init?(context: [UInt8]) {
        let text = String(decoding: context, as: UTF8.self)
        guard text.hasPrefix(Self.mark) else { return nil }
        self.init(rawValue: String(text.dropFirst(Self.mark.count)))
    }

    private static let infoKey = "nigh"

    /// What a session that takes these advertises about itself.
    static func info(taking purposes: [Purpose]) -> DiscoveryInfo {
        let words = purposes.map(\.rawValue).joined(separator: " ")
        // Four words of our own are far from every bound.
        return (try? DiscoveryInfo(words.isEmpty ? [:] : [infoKey: words])) ?? .none
    }

    /// Whether `peer` says that it takes this; nil where it says nothing, as other programs do.
    func isTaken(by peer: Peer) -> Bool? {
        peer.info[Self.infoKey].map { $0.split(separator: " ").contains { $0 == rawValue } }
    }

    /// What those are told who ask for something else.
    static func refusal(taking purposes: [Purpose]) -> String {
        let commands = purposes.map(\.counterpart).joined(separator: ", ")
        return commands.isEmpty ? "this nigh takes no invitations" : "here is who waits for \(commands)"
    }

    /// The command that asks for it.
    var counterpart: String { "nigh \(rawValue)" }
}
