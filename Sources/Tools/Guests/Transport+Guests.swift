import NighCore
import NighWeb

extension Transport {
    /// Whether those who come over this transport are guests.
    public var hasGuests: Bool { CheckedTransport.transport(inside: self) is any GuestTransport }

    /// Returns how long a session waits for a peer whose link over this transport broke, if it usually waits for
    /// `usual`.
    public func grace(usual: Duration) -> Duration { max(usual, capabilities.suggestedGrace ?? .zero) }
}

/// The transport that has guests.
public enum TransportForGuests {
    /// The scheme of the transport for guests.
    public static let scheme = WebTransport.schemeName
}
