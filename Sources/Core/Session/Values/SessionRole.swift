/// Whether a session advertises, browses, or both. In each role it can invite and be invited, wherever there is a
/// route.
public enum SessionRole: String, Hashable, Sendable, CaseIterable {
    /// Only advertises.
    case server
    /// Only browses.
    case client
    /// Advertises and browses.
    case peer

    var advertises: Bool { self != .client }
    var browses: Bool { self != .server }
}
