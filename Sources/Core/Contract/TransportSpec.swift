/// A transport and its options as a person writes them: `tcp`, or with options `tcp:port=4000,interface=wlan0`.
public struct TransportSpec: Hashable, Sendable, CustomStringConvertible {
    /// The scheme of the transport.
    public let scheme: String
    /// The values of the options by key, as written.
    public let options: [String: String]

    /// Creates a spec of the transport `scheme` with `options`.
    public init(scheme: String, options: [String: String] = [:]) {
        self.scheme = scheme
        self.options = options
    }

    /// Parses `scheme` or `scheme:key=value,key=value`.
    public init(parsing text: String) throws(NighError) {
        let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        scheme = String(halves[0])
        guard Self.isScheme(scheme) else {
            throw NighError(
                .configuring, .invalid("transport \"\(text)\""),
                advice: "write a scheme, or scheme:key=value,key=value")
        }
        var options: [String: String] = [:]
        let parts = halves.dropFirst().flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
        for part in parts {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, !pair[0].isEmpty else {
                throw NighError(
                    .configuring, .invalid("option \"\(part)\" in \"\(text)\""), transport: scheme,
                    advice: "options are written key=value, separated by commas")
            }
            guard options.updateValue(String(pair[1]), forKey: String(pair[0])) == nil else {
                throw NighError(
                    .configuring, .invalid("option \"\(pair[0])\", given twice in \"\(text)\""),
                    transport: scheme)
            }
        }
        self.options = options
    }

    /// Parses several specs separated by commas, as in `tcp,bluetooth:adapter=hci1,memory`. A part that begins with a
    /// scheme and is not `key=value` begins the next transport.
    public static func list(parsing text: String) throws(NighError) -> [TransportSpec] {
        var texts: [String] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let head = part.prefix { $0 != ":" && $0 != "=" }
            let continues = part.dropFirst(head.count).first == "=" && !texts.isEmpty
            if continues { texts[texts.count - 1] += "," + part } else { texts.append(String(part)) }
        }
        var specs: [TransportSpec] = []
        for text in texts { specs.append(try TransportSpec(parsing: text)) }
        return specs
    }

    /// The form that ``init(parsing:)`` parses, with the options sorted by key.
    public var description: String {
        let pairs = options.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        return pairs.isEmpty ? scheme : "\(scheme):\(pairs.joined(separator: ","))"
    }

    /// Returns whether `text` can name a transport: 1 to 15 of a-z and 0-9, beginning with a letter.
    package static func isScheme(_ text: String) -> Bool {
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        return (1...15).contains(text.utf8.count) && letters.contains(text.utf8.first ?? 0)
            && text.utf8.allSatisfy { letters.contains($0) || digits.contains($0) }
    }
}
