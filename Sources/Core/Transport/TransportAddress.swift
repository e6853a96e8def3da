/// Where a transport can reach somebody, in that transport's own words: `tcp://[fe80::1%eth0]:4000`,
/// `memory://table-1`.
public struct TransportAddress: Hashable, Sendable, CustomStringConvertible, LosslessStringConvertible {
    /// The scheme of the transport it belongs to.
    public let scheme: String
    /// What that transport makes of it.
    public let value: String

    /// An address of the transport `scheme`.
    public init(scheme: String, value: String) {
        self.scheme = scheme
        self.value = value
    }

    /// Reads `scheme://value`, or `scheme:key=value,key=value`, as transports are chosen; nil when one of the two is empty
    /// or the scheme is no scheme.
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
