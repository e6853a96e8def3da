/// A few short keys and values that a session shows to everybody nearby, such as `table=open`.
///
/// Limited to 400 bytes in encoded form (`key=value` with a length byte each), because it must fit into a DNS text
/// record and into a Bluetooth service record.
public struct DiscoveryInfo: Hashable, Sendable {
    /// The maximum size of all pairs together, in bytes.
    public static let maximumByteCount = 400

    /// The keys and their values.
    public let pairs: [String: String]

    /// Discovery info without any pairs.
    public static let none = DiscoveryInfo(unchecked: [:])

    private init(unchecked pairs: [String: String]) { self.pairs = pairs }

    /// Creates discovery info from `pairs`. Fails if they break a rule.
    ///
    /// A key has 1 or more printable ASCII characters without `=`. It is not `v` or `id`, which are Nigh's own. A
    /// session whose program uses the key `full` does not advertise that it accepts no more peers. A peer that speaks
    /// version 0.1 leaves out pairs whose key is longer than 9. No two keys differ only in case, because DNS text
    /// records ignore case. A pair has at most 255 bytes, and all pairs together at most 400.
    public init(_ pairs: [String: String]) throws(NighError) {
        var folded: Set<String> = []
        for (key, value) in pairs {
            guard !key.isEmpty,
                key.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") })
            else {
                throw NighError(
                    .configuring, .invalid("discovery info key \"\(key)\""),
                    advice: "keys are one or more printable ASCII characters without '='")
            }
            guard !["v", "id"].contains(key.lowercased()) else {
                throw NighError(
                    .configuring, .invalid("discovery info key \"\(key)\""),
                    advice: "'v' and 'id' are reserved; choose another key")
            }
            guard folded.insert(key.lowercased()).inserted else {
                throw NighError(
                    .configuring, .invalid("discovery info key \"\(key)\", given twice"),
                    advice: "upper and lower case are the same in a key")
            }
            guard key.utf8.count + value.utf8.count + 1 <= 255 else {
                throw NighError(
                    .configuring, .limit("discovery info pair", 255),
                    advice: "shorten \"\(key)\" or its value")
            }
        }
        let checked = DiscoveryInfo(unchecked: pairs)
        guard checked.byteCount <= Self.maximumByteCount else {
            throw NighError(
                .configuring, .limit("discovery info", Self.maximumByteCount),
                advice: "send large data as a message once connected")
        }
        self = checked
    }

    /// The size of the pairs in encoded form, in bytes.
    public var byteCount: Int { pairs.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 2 } }

    /// The value of `key`.
    public subscript(key: String) -> String? { pairs[key] }
}
