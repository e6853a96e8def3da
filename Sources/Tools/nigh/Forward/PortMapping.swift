import Arguments

/// A port of this device that leads to a port of another one.
struct PortMapping: Hashable, Sendable {
    /// The port on which this device listens; 0 means a free one.
    var local: UInt16
    /// The port of the other device.
    var remote: UInt16
}

extension Notation where Value == PortMapping {
    /// A port of this device and one of the other device, or one number for both.
    static var portMapping: Notation {
        Notation("LOCALPORT:PORT", write: { "\($0.local):\($0.remote)" }) { text in
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            guard (1...2).contains(parts.count), let remote = UInt16(parts[parts.count - 1]), remote > 0,
                let local = UInt16(parts[0])
            else {
                throw UsageError(
                    "\"\(text)\" is not LOCALPORT:PORT, as in 8022:22, or one port for both, as in 8080")
            }
            return PortMapping(local: local, remote: remote)
        }
    }
}

extension Notation where Value == UInt16 {
    /// A port.
    static var port: Notation {
        Notation("PORT") { text in
            guard let port = UInt16(text), port > 0 else {
                throw UsageError("\"\(text)\" is not a port: 1 to 65535 is allowed, as in 22")
            }
            return port
        }
    }
}

/// The options that `nigh forward`, `nigh connect` and `nigh expose` share.
enum Forwarding {
    /// How long a conversation without a link is kept, so that a connection survives a walk to another room.
    static let grace = Option(
        "grace", .duration(in: .seconds(1)...(.seconds(86_400))), default: .seconds(600),
        "how long connections wait for another link when the link is lost; the other side's --grace counts, too"
    )

    static let wait = Option(
        "wait", .duration(in: .seconds(1)...(.seconds(86_400))), default: .seconds(30),
        "the time limit for finding PEER, reaching it and getting its answer")

    /// Says that the other side waits for a link for a shorter time than this one, so that this time will not help.
    static func remark(ofTheirs theirs: Duration, ours: Duration, label: String) -> String? {
        guard theirs < ours else { return nil }
        return "\(label) keeps connections without a link for \(durationText(theirs)) only; "
            + "a longer --grace of `nigh expose` there changes that"
    }
}
