/// The kinds of connections that a picker offers.
public struct GKPeerPickerConnectionType: OptionSet, Sendable {
    /// The bits.
    public let rawValue: UInt

    /// Creates a set of kinds from its bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Connections that the program makes itself, over the Internet.
    public static let online = GKPeerPickerConnectionType(rawValue: 1 << 0)
    /// Connections to devices nearby.
    public static let nearby = GKPeerPickerConnectionType(rawValue: 1 << 1)
}
