/// Whether a session lets itself be found, looks for others, or both. In each role it can invite and be invited
/// wherever there is a way.
public enum SessionRole: String, Hashable, Sendable, CaseIterable {
    /// Advertises.
    case server
    /// Browses.
    case client
    /// Both.
    case peer

    var advertises: Bool { self != .client }
    var browses: Bool { self != .server }
}
