/// What a session tells the neighbourhood before anybody connects: a few short pairs, such as `table=open`.
///
/// Bounded to 400 bytes in the form it travels in (`key=value` with a length byte each), because it must fit into a
/// DNS text record and a Bluetooth service record.
public struct DiscoveryInfo: Hashable, Sendable {
    /// The most bytes all pairs may take together.
    public static let maximumByteCount = 400

    /// The pairs.
    public let pairs: [String: String]

    /// No pairs.
    public static let none = DiscoveryInfo(unchecked: [:])

    private init(unchecked pairs: [String: String]) { self.pairs = pairs }

    /// Checks `pairs`: keys of 1 to 9 printable ASCII characters without `=`, not `v` or `id` (those are Nigh's own), no
    /// two that differ in case only (DNS text records ignore it), no pair over 255 bytes, 400 bytes in all.
    public init(_ pairs: [String: String]) throws(NighError) {
        var folded: Set<String> = []
        for (key, value) in pairs {
            guard (1...9).contains(key.utf8.count),
                key.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") })
            else {
                throw NighError(
                    .configuring, .invalid("discovery info key \"\(key)\""),
                    advice: "keys are 1 to 9 printable ASCII characters without '='")
            }
            guard !["v", "id"].contains(key.lowercased()) else {
                throw NighError(
                    .configuring, .invalid("discovery info key \"\(key)\""),
                    advice: "'v' and 'id' are taken; choose another key")
            }
            guard folded.insert(key.lowercased()).inserted else {
                throw NighError(
                    .configuring, .invalid("discovery info key \"\(key)\", given twice"),
                    advice: "upper and lower case are the same in a key")
            }
            guard key.utf8.count + value.utf8.count + 1 <= 255 else {
                throw NighError(
                    .configuring, .limit("discovery info pair", 255),
                    advice: "shorten the value of \"\(key)\"")
            }
        }
        let checked = DiscoveryInfo(unchecked: pairs)
        guard checked.byteCount <= Self.maximumByteCount else {
            throw NighError(
                .configuring, .limit("discovery info", Self.maximumByteCount),
                advice: "send what is large as a message once connected")
        }
        self = checked
    }

    /// How many bytes the pairs take on the way.
    public var byteCount: Int { pairs.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 2 } }

    /// The value of `key`.
    public subscript(key: String) -> String? { pairs[key] }
}
