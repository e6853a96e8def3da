import NighLoop

/// The reason why one `nigh` invites another. The invitation carries it, so that the invited side can decline.
enum InvitationPurpose: String, CaseIterable, Sendable {
    /// Measuring round trips, which every session answers.
    case ping
    /// Measuring throughput.
    case bench
    /// Sending files.
    case send
    /// Taking the files for which a one-time code is shown.
    case code
    /// Taking the files that are offered to guests.
    case fetch
    /// Chatting.
    case chat
    /// Pairing: two people check that nobody is between their devices.
    case pair
    /// Connecting to ports of the other device.
    case forward
    /// Being connected only, for introductions and relayed connections.
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

    /// The purposes that a session asks for, one after the other, to be connected and nothing more. A `nigh` that does
    /// not know `join` accepts one of the others.
    ///
    /// - Parameter peer: the peer to be connected to; nil if nothing is known of it.
    static func toJoin(_ peer: Peer?) -> [InvitationPurpose] {
        let all: [InvitationPurpose] = [.join, .ping, .chat]
        guard let peer else { return all }
        let taken = all.filter { $0.isAccepted(by: peer) != false }
        return taken.isEmpty ? [.join] : taken
    }

    static let infoKey = "nigh"

    /// The key of the number of a one-time code.
    private static let codeKey = "code"

    /// The discovery info of a session that takes these purposes, and shows a one-time code with this number.
    static func info(accepting purposes: [InvitationPurpose], codeNumber: Int? = nil) -> DiscoveryInfo {
        var info: [String: String] = [:]
        if !purposes.isEmpty { info[infoKey] = purposes.map(\.rawValue).joined(separator: " ") }
        if let codeNumber { info[codeKey] = "\(codeNumber)" }
        // A few short names are far below every limit.
        return (try? DiscoveryInfo(info)) ?? .none
    }

    /// The number of the one-time code that a peer shows; nil if it shows none.
    static func codeNumber(of peer: Peer) -> Int? { peer.info[codeKey].flatMap { Int($0) } }

    /// Returns whether `peer` advertises that it takes this purpose, or nil if it advertises nothing about purposes, as
    /// other programs do.
    func isAccepted(by peer: Peer) -> Bool? {
        Self.accepted(by: peer).map { $0.contains(self) }
    }

    /// The purposes that `peer` advertises; nil if it advertises nothing about purposes.
    static func accepted(by peer: Peer) -> [InvitationPurpose]? {
        peer.info[infoKey]?.split(separator: " ").compactMap { InvitationPurpose(rawValue: String($0)) }
    }

    /// The command that a peer runs, by what it advertises; nil if that is no command of this version.
    static func program(of peer: Peer) -> String? { accepted(by: peer).flatMap(program(accepting:)) }

    private static func program(accepting purposes: [InvitationPurpose]) -> String? {
        purposes.lazy.compactMap(\.acceptor).first
    }

    /// The reason for declining an invitation for `wanted` at a session that accepts `purposes`. `wanted` is nil for an
    /// invitation of another program.
    static func refusal(of wanted: InvitationPurpose?, accepting purposes: [InvitationPurpose]) -> String {
        guard let program = program(accepting: purposes) else { return "this nigh accepts no invitations" }
        return "it runs `\(program)`, which accepts only \(list(purposes))" + remedy(wanted)
    }

    /// Why a session does not call `peer` for this purpose, because it advertises others, and what to do there.
    func mismatch(with peer: Peer) -> String {
        let purposes = Self.accepted(by: peer) ?? []
        let what = Self.program(accepting: purposes).map {
            "runs `\($0)`, which accepts only \(Self.list(purposes))"
        }
        return (what ?? "does not accept `\(counterpart)`") + Self.remedy(self)
    }

    private static func list(_ purposes: [InvitationPurpose]) -> String {
        purposes.filter { $0.acceptor != nil }.map { "`\($0.counterpart)`" }.joined(separator: " and ")
    }

    private static func remedy(_ wanted: InvitationPurpose?) -> String {
        guard let wanted, let program = wanted.acceptor else { return "" }
        return "; for `\(wanted.counterpart)`, run `\(program)` there"
    }

    /// The command that asks for this purpose; `join` has none of its own.
    var counterpart: String { self == .code ? "nigh receive CODE" : "nigh \(rawValue)" }

    /// The command that accepts this purpose on the other device; nil for `join`, which is no command's own.
    var acceptor: String? {
        switch self {
        case .ping, .bench: "nigh host"
        case .send: "nigh receive"
        case .code: "nigh send FILE"
        case .fetch: "nigh send --web FILE"
        case .chat: "nigh chat"
        case .pair: "nigh pair"
        case .forward: "nigh expose"
        case .join: nil
        }
    }
}
