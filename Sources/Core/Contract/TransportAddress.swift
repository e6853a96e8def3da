/// An address at which a transport can reach a peer, in the notation of that transport: `tcp://[fe80::1%eth0]:4000`,
/// `memory://table-1`.
public struct TransportAddress: Hashable, Sendable, CustomStringConvertible, LosslessStringConvertible {
    /// The scheme of the transport that the address belongs to.
    public let scheme: String
    /// The rest of the address, which that transport interprets.
    public let value: String

    /// Creates an address of the transport `scheme`.
    public init(scheme: String, value: String) {
        self.scheme = scheme
        self.value = value
    }

    /// Parses `scheme://value`, or `scheme:key=value,key=value` as in a spec. Returns nil if scheme or value is empty,
    /// or if the scheme is not valid.
    public init?(_ description: String) {
        let text = description.utf8
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let rest = description[colon...].dropFirst()
        let scheme = String(description[..<colon])
        let isAddress = rest.hasPrefix("//") && rest.count > 2
        guard isAddress || rest.contains("="), TransportSpec.isScheme(scheme) else { return nil }
        self.init(scheme: scheme, value: String(isAddress ? rest.dropFirst(2) : rest))
    }

    /// The form `scheme://value`.
    public var description: String { "\(scheme)://\(value)" }
}
